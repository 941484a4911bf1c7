"""Executions that run a job as stages. The pipelined one is ``runtime.slot`` with ``runtime.network``."""
