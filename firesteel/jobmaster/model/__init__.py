"""Events, instructions and settings of a JobMaster. No I/O."""
