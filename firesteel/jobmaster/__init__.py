"""The control plane of one job: state machines that take events and give instructions, without any I/O."""
