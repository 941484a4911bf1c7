"""Micro-batches of Structured Streaming over transformWithStateInPandas: what one costs, and what it carries."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.cases import CORES, KEYS
from benchmarks.runner import Run
from benchmarks.scenarios.spark_peer import session
from benchmarks.systems.pyspark import RunningSum

__all__ = ["run"]


def _sums(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").transformWithStateInPandas(
        statefulProcessor=RunningSum(),
        outputStructType="key long, total long",
        outputMode="Update",
        timeMode="None",
    )


def run(run: Run) -> dict[str, Any]:
    """``rows`` a micro-batch through one or two stateful operators; with 0 rows it is the cost of having one at all."""
    rows, epochs = run.params["rows"], run.params["epochs"]
    # a source with nothing to read makes no micro-batch at all: one row is as near to none as can be
    spark = session(run)
    try:
        numbers = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", max(rows, 1))
            .option("numPartitions", CORES)
            .load()
        )
        sums = _sums(numbers.selectExpr(f"value % {KEYS} AS key", "value"))
        if run.params["stages"] == 2:
            sums = _sums(sums.selectExpr("key", "total AS value"))
        query = (
            sums.writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", str(Path(run.scratch, "checkpoint")))
            .start()
        )
        return _figures(query, epochs, run.params["skip"], run.params["patience_s"])
    finally:
        spark.stop()


def _figures(query: Any, epochs: int, skip: int, patience_s: float) -> dict[str, Any]:
    seen: dict[int, dict[str, Any]] = {}
    deadline = time.monotonic() + patience_s
    while len(seen) < epochs + skip:
        if not query.isActive or time.monotonic() > deadline:
            raise RuntimeError(f"{len(seen)} micro-batches in {patience_s:.0f} s: {query.exception()}")
        for progress in query.recentProgress:
            seen[progress["batchId"]] = progress
        time.sleep(0.1)
    query.stop()
    counted = [seen[number] for number in sorted(seen)][skip:]
    took = [progress["durationMs"]["triggerExecution"] for progress in counted]
    records = sum(progress["numInputRows"] for progress in counted)
    return {
        "epochs": len(counted),
        "epoch_ms": median(took),
        "epoch_max_ms": max(took),
        "records_per_s": records / (sum(took) / 1000),
    }
