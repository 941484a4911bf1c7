"""The patterns in Flink's JVM, run with PyFlink's Python: one JSON object a line with the seconds of a run.

Arguments: the queries, and the numbers of rows, the first for the run that warms up.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "taskmanager.numberOfTaskSlots": "2",
    "taskmanager.memory.managed.size": "256m",
    "table.local-time-zone": "UTC",
}


def _queries() -> Any:
    path = Path(__file__).resolve().parent / "queries.py"
    spec = importlib.util.spec_from_file_location("queries", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


queries = _queries()


def _run(name: str, rows: int) -> tuple[float, float]:
    """The seconds from submission to the end, and those of the JVM's processor time."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in SETTINGS.items():
        env.get_config().set(key, value)
    for statement in (queries.CREATE.format(rows=rows, last=rows - 1), queries.VIEW, queries.SINKS):
        env.execute_sql(statement)
    system = get_gateway().jvm.java.lang.management.ManagementFactory.getOperatingSystemMXBean()
    used, began = system.getProcessCpuTime(), time.monotonic()
    env.execute_sql(f"INSERT INTO dropped {queries.QUERIES[name]}").wait()
    return time.monotonic() - began, (system.getProcessCpuTime() - used) / 1e9


def measure(names: list[str], warm: int, counts: list[int]) -> None:
    """Runs each query over each number of rows into a sink that drops everything."""
    for name in names:
        _run(name, warm)
        for rows in counts:
            seconds, cpu = _run(name, rows)
            sys.stdout.write(json.dumps({"query": name, "rows": rows, "seconds": seconds, "cpu": cpu}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    first, *others = [int(part) for part in sys.argv[2].split(",")]
    measure(sys.argv[1].split(","), first, others)
