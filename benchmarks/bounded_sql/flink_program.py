"""Bounded queries in Flink's batch mode, run with PyFlink's Python: one JSON object a line with the seconds of a run.

Arguments: the jars of the Parquet format, the queries, how often each runs, and the directories of the events, the
first for the run that warms up.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment

SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "taskmanager.memory.managed.size": "1g",
    "taskmanager.numberOfTaskSlots": "2",
    "table.local-time-zone": "UTC",
}


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HERE = Path(__file__).resolve().parent
tables = _module(HERE / "tables.py")
queries = _module(HERE.parent / "nexmark" / "queries.py")


def _run(jars: str, name: str, directory: str) -> float:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in {**SETTINGS, "pipeline.jars": jars}.items():
        env.get_config().set(key, value)
    for table in tables.TABLES:
        options = {**tables.options_of(directory, table), "parquet.utc-timezone": "true"}
        env.execute_sql(tables.create_statement(table, options))
    result = env.sql_query(queries.QUERIES[name])
    began = time.monotonic()
    result.execute_insert(TableDescriptor.for_connector("blackhole").build()).wait()
    return time.monotonic() - began


def measure(jars: str, names: list[str], repeats: int, directories: list[str]) -> None:
    """Runs each query over each directory into a sink that drops everything."""
    warm, *measured = directories
    _run(jars, "q0", warm)
    for name in names:
        for directory in measured:
            for _ in range(repeats):
                try:
                    seconds = _run(jars, name, directory)
                except Exception as error:  # the other queries are measured all the same
                    sys.stderr.write(f"{name}: {error}\n")
                    break
                sys.stdout.write(json.dumps({"query": name, "data": directory, "seconds": seconds}) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    measure(sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), sys.argv[4:])
