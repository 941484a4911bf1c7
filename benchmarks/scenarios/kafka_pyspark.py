"""From Kafka through a keyed sum to Kafka, with Structured Streaming."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.runner import Run
from benchmarks.scenarios.kafka_peer import KafkaStage
from benchmarks.scenarios.spark_peer import session
from benchmarks.systems.pyspark import RunningSum

__all__ = ["run"]


def run(run: Run) -> dict[str, Any]:
    """``way``: Spark's own aggregation (one row for each key and micro-batch), or a sum in Python for every record.

    Its Kafka sink has no transactions: it gives at-least-once.
    """
    params = run.params
    with KafkaStage() as stage:
        stage("fill", records=params["records"])
        spark = session(run, **{"spark.jars": ",".join(stage("jars", connector="spark"))})
        try:
            rows = (
                spark.readStream.format("kafka")
                .option("kafka.bootstrap.servers", stage("servers"))
                .option("subscribe", "input")
                .option("startingOffsets", "earliest")
                .option("maxOffsetsPerTrigger", params["per_trigger"])
                .load()
                .selectExpr("split(CAST(value AS STRING), ',') AS parts")
                .selectExpr("CAST(parts[0] AS LONG) AS key", "CAST(parts[1] AS LONG) AS value")
            )
            query = (
                _sums(rows, params["way"])
                .selectExpr("concat(key, ',', total) AS value")
                .writeStream.format("kafka")
                .option("kafka.bootstrap.servers", stage("servers"))
                .option("topic", "output")
                .option("checkpointLocation", str(Path(run.scratch, "checkpoint")))
                .outputMode("update")
                .start()
            )
            return _figures(query, params["batches"], params["skip"])
        finally:
            spark.stop()


def _sums(rows: DataFrame, way: str) -> DataFrame:
    if way == "aggregate":
        return rows.groupBy("key").sum("value").withColumnRenamed("sum(value)", "total")
    return rows.groupBy("key").transformWithStateInPandas(
        statefulProcessor=RunningSum(),
        outputStructType="key long, total long",
        outputMode="Update",
        timeMode="None",
    )


def _figures(query: Any, batches: int, skip: int) -> dict[str, Any]:
    seen: dict[int, dict[str, Any]] = {}
    deadline = time.monotonic() + 600
    while len(seen) < batches + skip:
        if not query.isActive or time.monotonic() > deadline:
            raise RuntimeError(f"only {len(seen)} micro-batches: {query.exception()}")
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                seen[progress["batchId"]] = progress
        time.sleep(0.1)
    query.stop()
    counted = [seen[number] for number in sorted(seen)][skip : skip + batches]
    records = sum(progress["numInputRows"] for progress in counted)
    seconds = sum(progress["durationMs"]["triggerExecution"] for progress in counted) / 1000
    return {"records": records, "records_per_s": records / seconds}
