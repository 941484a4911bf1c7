"""The keyed case on PySpark Structured Streaming: transformWithStateInPandas over RocksDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from benchmarks.cases import CORES, KEYS
from benchmarks.runner import Run
from benchmarks.scenarios.spark_peer import session

ROWS_PER_BATCH = 500_000


class RunningSum(StatefulProcessor):
    """Running sum per key; a key's rows of a micro-batch are summed by pandas, its fastest way."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state."""
        self._sum = handle.getValueState("sum", "total long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """One output row for each input row, as in the other systems."""
        state = self._sum.get()
        total = state[0] if state is not None else 0
        for frame in rows:
            sums = frame["value"].to_numpy().cumsum() + total
            total = int(sums[-1])
            yield pd.DataFrame({"key": key[0], "total": sums})
        self._sum.update((total,))

    def close(self) -> None:
        """Nothing to close."""


class SparkJob:
    """A streaming query, read through its progress reports."""

    stepwise = True

    def __init__(self, spark: SparkSession, query: Any) -> None:
        self._spark = spark
        self._query = query
        self._batch = -1
        self._records = 0

    def progress(self) -> tuple[int, dict[int, int]]:
        """Rows of the finished micro-batches."""
        if not self._query.isActive:
            raise RuntimeError(f"the query ended: {self._query.exception()}")
        last = self._query.lastProgress
        if last is not None and last["batchId"] > self._batch:
            self._records += last["numInputRows"] * (last["batchId"] - self._batch)
            self._batch = last["batchId"]
        return self._records, {}

    def stop(self) -> None:
        """Stops the query and Spark."""
        self._query.stop()
        self._spark.stop()


def keyed_sum(run: Run) -> SparkJob:
    """Running sum over 10,000 keys."""
    rows = run.params.get("rows_per_batch", ROWS_PER_BATCH)
    spark = session(run, **{"spark.sql.streaming.noDataMicroBatches.enabled": "false"})
    numbers = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", CORES).load()
    )
    pairs = numbers.selectExpr(f"value % {KEYS} AS key", "value")
    sums = pairs.groupBy("key").transformWithStateInPandas(
        statefulProcessor=RunningSum(),
        outputStructType="key long, total long",
        outputMode="Update",
        timeMode="None",
    )
    query = (
        sums.writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", str(Path(run.scratch, "checkpoint")))
        .start()
    )
    return SparkJob(spark, query)
