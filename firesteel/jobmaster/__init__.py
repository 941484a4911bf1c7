"""The JobMaster, the control plane of one job: state machines that take events and return instructions, without I/O."""
