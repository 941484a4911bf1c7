"""Sinks and sources of Iceberg and Delta Lake: rows per second of CPU time, and how long a commit takes.

``python -m benchmarks.lakes [rows]`` writes rows of datagen (BIGINT, STRING, DOUBLE) with one writer in this process,
and reads them back into ``blackhole``. CPU time is that of the process: of the generator, the engine and the libraries.
The time of the generator alone, into ``blackhole``, is measured first and subtracted from that of the sink.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from firesteel.connectors.delta.table import DeltaTable
from firesteel.connectors.iceberg.sink import TableLoader
from firesteel.connectors.lakes.sink import LakeSink
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.testing import SinkHarness
from firesteel.testing.in_process import InProcessExecutor

COLUMNS = "id BIGINT, name STRING, price DOUBLE"
COMMITS = 20


def environment() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found._session.environment._executor = InProcessExecutor()
    found.get_config().set("parallelism.default", "1")
    return found


def cpu_seconds(run: Callable[[], Any]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def commit_seconds(table: Any) -> list[float]:
    """From the notification that a checkpoint is complete until the row is visible."""
    task = SinkHarness(LakeSink(table), job_id="job", run_id="run")
    task.initialize_state(None)
    task.open()
    took = []
    for number in range(1, COMMITS + 1):
        task._chained.operator.process_batch([(number, "name", 1.0)], None)
        task.snapshot(number)
        begin = time.perf_counter()
        task.notify_checkpoint_complete(number)
        took.append(time.perf_counter() - begin)
    task.close()
    return took


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        env = environment()
        fast = "'rows-per-second' = '1000000000'"
        datagen = f"'connector' = 'datagen', 'number-of-rows' = '{rows}', {fast}, 'fields.name.length' = '12'"
        env.execute_sql(f"CREATE TABLE generated ({COLUMNS}) WITH ({datagen})")
        env.execute_sql(f"CREATE TABLE nowhere ({COLUMNS}) WITH ('connector' = 'blackhole')")
        catalog = {
            "catalog-type": "sql",
            "uri": f"sqlite:///{directory}/catalog.db",
            "warehouse": f"file://{directory}",
        }
        options = ", ".join(f"'{key}' = '{value}'" for key, value in catalog.items())
        env.execute_sql(
            f"CREATE TABLE iceberg ({COLUMNS}) WITH ('connector' = 'iceberg', 'catalog-name' = 'c', "
            f"'catalog-database' = 'db', {options})"
        )
        env.execute_sql(f"CREATE TABLE delta ({COLUMNS}) WITH ('connector' = 'delta', 'table-path' = '{directory}/d')")
        tables = {
            "iceberg": TableLoader.from_catalog("c", catalog, "db.iceberg"),
            "delta": DeltaTable(str(Path(directory, "d"))),
        }
        env.execute_sql("INSERT INTO nowhere SELECT * FROM generated").wait()  # imports, and generated code
        generator = cpu_seconds(env.execute_sql("INSERT INTO nowhere SELECT * FROM generated").wait)
        print(f"generator: {rows / generator:,.0f} rows/s of CPU time")
        for name, table in tables.items():
            env.execute_sql(f"INSERT INTO {name} VALUES (1, 'x', 1.0)").wait()
            sink = cpu_seconds(lambda name=name: env.execute_sql(f"INSERT INTO {name} SELECT * FROM generated").wait())
            source = cpu_seconds(lambda name=name: env.execute_sql(f"INSERT INTO nowhere SELECT * FROM {name}").wait())
            took = commit_seconds(table)
            print(
                f"{name}: sink {rows / max(sink - generator, 1e-9):,.0f} rows/s, source {rows / source:,.0f} rows/s of "
                f"CPU time; commit {statistics.median(took) * 1000:.0f} ms (median), {max(took) * 1000:.0f} ms (max)"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
