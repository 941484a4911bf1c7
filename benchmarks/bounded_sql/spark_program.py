"""The texts of the queries as they are on plain Spark SQL: one JSON object a line, with the seconds of each run.

Arguments: the queries, how often each runs, and the directories of the events, the first for the run that warms up. A
text that Spark cannot read has no runs. What Spark computes may differ from Flink's result: this is the time that the
same work takes there.
"""

from __future__ import annotations

import sys
import tempfile
import time

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from benchmarks.bounded_sql.tables import TABLES, view_statement
from benchmarks.nexmark.firesteel_program import tell
from benchmarks.nexmark.queries import QUERIES
from benchmarks.runner import Run
from benchmarks.scenarios.spark_peer import session

__all__ = ["measure"]


def measure(spark: SparkSession, names: list[str], repeats: int, directories: list[str]) -> None:
    """Runs each query over each directory into a sink that drops everything."""
    warm, *measured = directories
    _run(spark, "q0", warm)
    for name in names:
        for directory in measured:
            for _ in range(repeats):
                seconds = _run(spark, name, directory)
                if seconds is not None:
                    tell({"query": name, "data": directory, "seconds": seconds})


def _run(spark: SparkSession, name: str, directory: str) -> float | None:
    for table in TABLES:
        spark.sql(view_statement(directory, table))
    began = time.monotonic()
    try:
        rows: DataFrame = spark.sql(QUERIES[name])
    except (ParseException, AnalysisException):
        return None
    rows.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        started = session(Run("pyspark", {}, scratch), **{"spark.sql.timestampType": "TIMESTAMP_NTZ"})
        try:
            measure(started, sys.argv[1].split(","), int(sys.argv[2]), sys.argv[3:])
        finally:
            started.stop()
