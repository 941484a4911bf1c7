"""Async I/O: functions that are coroutines, and retries.

PyFlink's modules ``async_data_stream``, ``async_retry_strategies`` and ``async_retry_predicates`` are found here by
their own names too.
"""
