"""Records what Flink makes of the join queries in tests/unit/table/joins/queries.txt.

Run it with PyFlink 2.3: ``python scripts/record_sql_joins.py``. All queries are one job over one source that emits a
row a second, so the rows of a second are what one source row causes, in each query. Input tables are recorded too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

DIRECTORY = Path(__file__).parents[1] / "tests" / "unit" / "table" / "joins"
PAUSE_S = 0.4


def read_statements(path: Path) -> dict[str, str]:
    """The statements of a file by their names: ``-- name`` is the line before one."""
    found: dict[str, str] = {}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith("-- "):
            name = line[3:].strip()
            found[name] = ""
        elif line.strip():
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def run_flink() -> None:
    """Runs the job; each line that it prints has the name of a query."""
    from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = environment.get_config()
    config.set("parallelism.default", "1")
    config.set("execution.buffer-timeout.interval", "0 ms")
    config.set("pipeline.auto-watermark-interval", "5 ms")
    config.set("table.local-time-zone", "UTC")
    events = (DIRECTORY / "events.txt").read_text().split()
    environment.execute_sql(f"""
        CREATE TABLE source (
          id BIGINT,
          e AS SPLIT_INDEX('{"|".join(events)}', '|', CAST(id AS INT) - 1),
          side AS SPLIT_INDEX(SPLIT_INDEX('{"|".join(events)}', '|', CAST(id AS INT) - 1), ',', 0),
          ts AS CAST(TIMESTAMPADD(SECOND, CAST(SPLIT_INDEX(
            SPLIT_INDEX('{"|".join(events)}', '|', CAST(id AS INT) - 1), ',', 4) AS INT),
            TIMESTAMP '2020-01-01 00:00:00') AS TIMESTAMP(3)),
          WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
        ) WITH ('connector' = 'datagen', 'rows-per-second' = '1', 'number-of-rows' = '{len(events)}',
          'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{len(events)}')""")
    environment.execute_sql("""
        CREATE VIEW fields AS SELECT side, CAST(NULLIF(SPLIT_INDEX(e, ',', 1), '') AS INT) AS k,
          CAST(NULLIF(SPLIT_INDEX(e, ',', 2), '') AS INT) AS v, NULLIF(SPLIT_INDEX(e, ',', 3), '') AS s, ts
        FROM source""")
    views = read_statements(DIRECTORY / "inputs.txt")
    for name, query in views.items():
        environment.execute_sql(f"CREATE VIEW {name} AS {query}")
    queries = {name: f"SELECT * FROM {name}" for name in views}  # noqa: S608 - our own names
    queries |= read_statements(DIRECTORY / "queries.txt")
    statements = environment.create_statement_set()
    for name, query in queries.items():
        try:
            table = environment.sql_query(query)
            environment.explain_sql(query)
        except Exception as error:  # noqa: BLE001 - the message is what is recorded
            causes = [line for line in str(error).splitlines() if "Exception" in line and "at " not in line[:5]]
            sys.stdout.write(f"{name}> !{causes[-1] if causes else error}\n")
            continue
        sink = TableDescriptor.for_connector("print").option("print-identifier", name).build()
        statements.add_insert(sink, table)
    statements.execute().wait()


def record() -> None:
    """Writes steps.json: for each source row the lines of each query; and errors.json."""
    process = subprocess.Popen(  # noqa: S603 - this script
        [sys.executable, __file__, "run"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    steps: list[dict[str, list[str]]] = []
    errors: dict[str, str] = {}
    last = 0.0
    for line in process.stdout:
        name, found, text = line.rstrip("\n").partition("> ")
        if not found:
            sys.stderr.write(line)
            continue
        if text.startswith("!"):
            errors[name] = text[1:]
            continue
        if time.monotonic() - last > PAUSE_S:
            steps.append({})
        last = time.monotonic()
        steps[-1].setdefault(name, []).append(text)
    process.wait()
    sorted_steps = [{name: step[name] for name in sorted(step)} for step in steps]
    (DIRECTORY / "steps.json").write_text(json.dumps(sorted_steps, indent=0) + "\n")
    (DIRECTORY / "errors.json").write_text(json.dumps(errors, indent=1) + "\n")


if __name__ == "__main__":
    run_flink() if "run" in sys.argv else record()
