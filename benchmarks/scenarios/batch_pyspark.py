"""keyed_sum over Parquet with plain PySpark: the Python way, applyInPandas, and the native ones of Spark SQL."""

from __future__ import annotations

import time
from typing import Any

import pandas as pd

from benchmarks.runner import Run
from benchmarks.scenarios.parquet_data import pairs
from benchmarks.scenarios.spark_peer import session

__all__ = ["run"]


def _running_sum(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"key": frame["key"], "total": frame["value"].cumsum()})


def run(run: Run) -> dict[str, Any]:
    """Running sums of every key, one result for each row; or, as the limit of what Spark can do, one sum for each."""
    records = run.params["records"]
    path = pairs(records)
    spark = session(run)
    try:
        rows = spark.read.parquet(str(path))
        begin = time.monotonic()
        if run.params["way"] == "pandas":
            sums = rows.groupBy("key").applyInPandas(_running_sum, "key long, total long")
        elif run.params["way"] == "window":
            sums = rows.selectExpr("key", "sum(value) OVER (PARTITION BY key ORDER BY value) AS total")
        else:
            sums = rows.groupBy("key").sum("value")
        sums.write.format("noop").mode("overwrite").save()
        took = time.monotonic() - begin
        return {"records": records, "seconds": took, "records_per_s": records / took}
    finally:
        spark.stop()
