"""The Spark session of the peers' scenarios."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.cases import CORES
from benchmarks.runner import Run

__all__ = ["session"]


def session(run: Run, **settings: str) -> SparkSession:
    """Embedded Spark with as many partitions as there are cores, and RocksDB for state."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    builder = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", str(CORES))
        .config("spark.sql.streaming.stateStore.providerClass", provider)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .config("spark.sql.warehouse.dir", str(Path(run.scratch, "warehouse")))
        .config("spark.local.dir", run.scratch)
    )
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
