"""The name of the task that a thread is running, for log lines."""

from __future__ import annotations

import threading

__all__ = ["CURRENT_TASK"]


class _CurrentTask(threading.local):
    name: str = ""
    """As Flink prints it, ``Map (1/2)#0``; empty in a thread that runs no task."""


CURRENT_TASK = _CurrentTask()
