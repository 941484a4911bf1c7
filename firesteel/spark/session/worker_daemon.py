"""Daemon of an embedded Spark's Python workers: has Firesteel's modules imported when it forks a worker.

Spark's own daemon imports nothing, so each worker would spend half a second of processor time on the imports.
Only modules that start no thread may be imported here: a forked process has none of its parent's threads.
"""

from __future__ import annotations

import gc
import importlib

from pyspark.daemon import manager

_MODULES = ("pyspark.worker", "firesteel.spark.pipelined.slot_main", "firesteel.spark.blocking.worker")

if __name__ == "__main__":
    for name in _MODULES:
        importlib.import_module(name)
    # what is imported stays: a collection in a worker would copy its pages
    gc.freeze()
    manager()
