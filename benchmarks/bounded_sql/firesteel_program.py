"""Bounded queries in Firesteel on embedded Spark: one JSON object a line, with the seconds of each run.

Arguments: the queries, how often each runs, and the directories of the events, the first for the run that warms up.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from benchmarks.bounded_sql.tables import TABLES, create_statement, options_of
from benchmarks.nexmark.firesteel_program import SLOTS, insert, tell
from firesteel.table import EnvironmentSettings, TableEnvironment

__all__ = ["environment", "measure"]


SETTINGS = {
    "parallelism.default": str(SLOTS),
    "spark.master": f"local[{SLOTS}]",
    "spark.sql.shuffle.partitions": str(SLOTS),
}


def environment(directory: str, settings: Mapping[str, str] = SETTINGS) -> TableEnvironment:
    """The tables of a directory in batch mode."""
    table_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in settings.items():
        table_env.get_config().set(key, value)
    table_env.get_config().set_local_timezone("UTC")
    for table in TABLES:
        table_env.execute_sql(create_statement(table, options_of(directory, table)))
    return table_env


def measure(names: list[str], repeats: int, directories: list[str]) -> None:
    """Runs each query over each directory."""
    warm, *measured = directories
    insert(environment(warm), "q0")
    for name in names:
        for directory in measured:
            for _ in range(repeats):
                tell({"query": name, "data": directory, "seconds": insert(environment(directory), name)})


if __name__ == "__main__":
    measure(sys.argv[1].split(","), int(sys.argv[2]), sys.argv[3:])
