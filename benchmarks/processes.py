"""Which processes of a run are Spark's Python workers."""

from __future__ import annotations

import psutil

__all__ = ["is_python_worker"]

_DAEMONS = frozenset({"pyspark.daemon", "firesteel.spark.session.worker_daemon"})


def is_python_worker(process: psutil.Process) -> bool:
    """Whether it is a Python worker of Spark, or the daemon that forks them.

    The daemon's module is an argument of its own; the JVM has it as a part of a setting.
    """
    return not _DAEMONS.isdisjoint(process.cmdline())
