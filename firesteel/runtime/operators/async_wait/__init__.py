"""The operator of async I/O: calls coroutines for records and emits their results."""
