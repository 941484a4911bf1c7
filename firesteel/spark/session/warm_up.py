"""Warm-up of Spark, which shortens the start of the first job."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator

from pyspark import SparkContext

__all__ = ["warm_up"]

_SLOT = "firesteel.spark.pipelined.slot_main"


def warm_up(context: SparkContext) -> None:
    """Runs an empty barrier stage: the JVM loads its classes, the daemon of the Python workers starts."""
    context.parallelize([0], 1).barrier().mapPartitions(_import_slot).collect()


def _import_slot(_partition: Iterable[int]) -> Iterator[int]:
    importlib.import_module(_SLOT)
    return iter(())
