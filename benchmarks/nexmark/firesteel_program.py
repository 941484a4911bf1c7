"""NEXMark in Firesteel on embedded Spark: one JSON object a line, with the seconds of each run.

Arguments: the queries, and the numbers of events. The query ``source`` is that of all events.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from benchmarks.nexmark.queries import QUERIES, SOURCE, VIEWS, events_table
from firesteel.table import EnvironmentSettings, TableEnvironment

__all__ = ["SLOTS", "environment", "insert", "measure", "tell"]

RATE = 100_000
SLOTS = 2


def environment(count: int, parallelism: int = SLOTS) -> TableEnvironment:
    """Tables and views of NEXMark with so many events."""
    table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table_env.get_config().set("parallelism.default", str(parallelism))
    table_env.get_config().set("spark.master", f"local[{SLOTS}]")
    options = {"connector": "nexmark", "events.num": str(count), "next-event.rate": str(RATE)}
    for statement in (events_table(options), *VIEWS):
        table_env.execute_sql(statement)
    return table_env


def insert(table_env: TableEnvironment, name: str) -> float:
    """Runs a query into a sink that drops everything; returns the seconds from its submission to its end."""
    query = SOURCE if name == "source" else QUERIES[name]
    columns = table_env.sql_query(query).get_resolved_schema().get_columns()
    kinds = (" *ROWTIME*", " *PROCTIME*", " NOT NULL")
    declared = []
    for column in columns:
        text = column.get_data_type().as_summary_string()
        for kind in kinds:
            text = text.replace(kind, "")
        declared.append(f"`{column.get_name()}` {text}")
    table_env.execute_sql(f"CREATE TEMPORARY TABLE dropped ({', '.join(declared)}) WITH ('connector' = 'blackhole')")
    began = time.monotonic()
    table_env.execute_sql(f"INSERT INTO dropped {query}").wait()
    return time.monotonic() - began


def measure(names: list[str], counts: list[int]) -> None:
    """Runs each query over each number of events, after one that starts Spark and its workers."""
    insert(environment(100_000), "q0")
    for name in names:
        for count in counts:
            seconds = insert(environment(count), name)
            tell({"query": name, "events": count, "seconds": seconds})


def tell(found: dict[str, Any]) -> None:
    """Prints a line for the program that compares."""
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    measure(sys.argv[1].split(","), [int(part) for part in sys.argv[2].split(",")])
