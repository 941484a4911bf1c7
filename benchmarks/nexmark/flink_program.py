"""NEXMark in Flink, run with PyFlink's Python: one JSON object a line, with the seconds of each run.

Arguments: the jar of the connector, the directory of its texts, the queries, and the numbers of events. With ``rows``,
a number of events and a rate in place of numbers of events, the rows of the queries are printed instead.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment

RATE = 100_000
UPSERTS = {"q9"}
"""Queries for which Flink emits no rows before updates; the first column is the key."""
SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
    "table.local-time-zone": "UTC",
}


def _queries() -> Any:
    spec = importlib.util.spec_from_file_location("queries", Path(__file__).with_name("queries.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _environment(
    queries: Any, jar: str, texts: str, count: int, settings: dict[str, str], rate: int = RATE
) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {**SETTINGS, **settings, "pipeline.jars": f"file://{jar}"}.items():
        env.get_config().set(key, value)
    options = {"connector": "nexmark-index", "count": str(count), "rate": str(rate), "texts": texts}
    env.execute_sql(queries.events_table(options))
    for view in queries.VIEWS:
        env.execute_sql(view)
    return env


def measure(jar: str, texts: str, names: list[str], counts: list[int]) -> None:
    """Runs each query over each number of events into a sink that drops everything."""
    queries = _queries()
    for name in names:
        for count in counts:
            env = _environment(queries, jar, texts, count, {})
            table = env.sql_query(queries.SOURCE if name == "source" else queries.QUERIES[name])
            began = time.monotonic()
            table.execute_insert(TableDescriptor.for_connector("blackhole").build()).wait()
            _tell({"query": name, "events": count, "seconds": time.monotonic() - began})


def print_rows(jar: str, texts: str, names: list[str], count: int, rate: int) -> None:
    """Prints the rows that are left of each query."""
    queries = _queries()
    settings = {"parallelism.default": "1", "table.exec.mini-batch.enabled": "false"}
    for name in names:
        env = _environment(queries, jar, texts, count, settings, rate)
        rows: dict[str, int] = {}
        latest: dict[Any, str] = {}
        for row in env.execute_sql(queries.QUERIES[name]).collect():
            text = json.dumps([_plain(value) for value in row])
            if name in UPSERTS:
                latest[row[0]] = text
                continue
            rows[text] = rows.get(text, 0) + (1 if row.get_row_kind().value in (0, 2) else -1)
        rows.update(dict.fromkeys(latest.values(), 1))
        _tell({"query": name, "rows": sorted([text, times] for text, times in rows.items() if times)})


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def _tell(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    jar_, texts_, chosen, what = sys.argv[1:5]
    if what == "rows":
        print_rows(jar_, texts_, chosen.split(","), int(sys.argv[5]), int(sys.argv[6]))
    else:
        measure(jar_, texts_, chosen.split(","), [int(part) for part in what.split(",")])
