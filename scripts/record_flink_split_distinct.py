"""Records from Flink which queries with distinct aggregates it splits into buckets.

Runs with the Python of an installation of PyFlink 2.3. Reads the queries of recorded/split_distinct.json of
tests/unit/table/aggregate, and writes for each whether its plan has buckets.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

FILE = Path(__file__).parents[1] / "tests" / "unit" / "table" / "aggregate" / "recorded" / "split_distinct.json"
TABLE = """CREATE TABLE t (k INT, s STRING, n INT, t TINYINT NOT NULL, d DECIMAL(10, 8), b BOOLEAN, ts TIMESTAMP(3),
    p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'datagen')"""


def main() -> None:
    """Records all queries."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("table.optimizer.distinct-agg.split.enabled", "true")
    environment.execute_sql(TABLE)
    queries = json.loads(FILE.read_text("utf-8"))
    found = {sql: "HASH_CODE(" in environment.explain_sql(sql) for sql in queries}
    FILE.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
