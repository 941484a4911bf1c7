"""The I/O around a JobMaster: calls to the host and the checkpoint storage, and client requests."""
