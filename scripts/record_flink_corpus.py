"""Runs the queries of tests/support/sql/corpus.py in Flink, and stores their rows.

With the Python of an environment in which PyFlink is installed, in the repository::

    python scripts/record_flink_corpus.py tables   # with Firesteel's own environment: writes the tables as JSON
    python scripts/record_flink_corpus.py rows     # with PyFlink's

Queries run in batch mode, or in streaming mode where Flink's batch mode refuses them.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLES = Path(tempfile.gettempdir()) / "firesteel-corpus"
RECORDED = ROOT / "tests" / "integration" / "table" / "recorded" / "corpus.json"


def write_tables() -> None:
    """Writes the rows of each table, and its columns in DDL."""
    from tests.support.sql.running import final_rows
    from tests.support.sql.tables import TABLES as GENERATED

    TABLES.mkdir(exist_ok=True)
    for table in GENERATED.values():
        names = table.row_type.field_names
        lines = [json.dumps(dict(zip(names, map(_json, row), strict=True))) for row in final_rows(table)]
        (TABLES / f"{table.name}.json").write_text("\n".join(lines) + "\n", "utf-8")
        parts = [f"`{part.name}` {part.type.as_summary_string().split(' *')[0]}" for part in table.row_type.fields]
        if table.rowtime is not None:
            name = names[table.rowtime]
            parts.append(f"WATERMARK FOR `{name}` AS `{name}` - INTERVAL '2' SECOND")
        (TABLES / f"{table.name}.ddl").write_text(", ".join(parts), "utf-8")


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return float(value) if isinstance(value, Decimal) else value


def record_rows() -> None:
    """Runs every query that is not recorded yet, and stores what it gives."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    spec = importlib.util.spec_from_file_location("corpus", ROOT / "tests" / "support" / "sql" / "corpus.py")
    assert spec is not None
    assert spec.loader is not None
    corpus = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(corpus)
    known = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    environments = []
    for settings in (EnvironmentSettings.in_batch_mode(), EnvironmentSettings.in_streaming_mode()):
        env = TableEnvironment.create(settings)
        env.get_config().set("parallelism.default", "1")
        env.get_config().set("table.local-time-zone", "UTC")
        for file in sorted(TABLES.glob("*.ddl")):
            path = file.with_suffix(".json")
            options = f"'connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'json'"
            env.execute_sql(f"CREATE TABLE {file.stem} ({file.read_text('utf-8')}) WITH ({options})")
        environments.append(env)
    recorded = {}
    for number, sql in enumerate(corpus.QUERIES):
        recorded[sql] = known[sql] if "rows" in known.get(sql, {}) else _rows_of(environments, sql)
        sys.stdout.write(f"{number + 1} of {len(corpus.QUERIES)} {recorded[sql].get('error', '')}\n")
        if number % 20 == 0 or number == len(corpus.QUERIES) - 1:
            RECORDED.parent.mkdir(exist_ok=True)
            lines = (f"{json.dumps(sql)}: {json.dumps(found)}" for sql, found in recorded.items())
            RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _rows_of(environments: list[Any], sql: str) -> dict[str, Any]:
    for env in environments:
        try:
            result = env.execute_sql(sql)
            rows: list[Any] = []
            for row in result.collect():
                values = [_plain(value) for value in row]
                if row.get_row_kind().value in (0, 2):
                    rows.append(values)
                else:
                    rows.remove(values)
            return {"rows": sorted(rows, key=str)}
        except Exception as error:  # noqa: BLE001 - Java's, of any kind
            causes = [line for line in str(error).splitlines() if "Exception: " in line]
            message = (causes or [str(error)])[-1][:300]
    return {"error": message}


def _plain(value: Any) -> Any:
    """As ``comparable`` of tests/support/sql has it, in JSON."""
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float):
        return "NaN" if value != value else value
    if isinstance(value, dict):
        return sorted([_plain(key), _plain(item)] for key, item in value.items())
    if isinstance(value, (list, tuple)) or hasattr(value, "_fields"):
        return [_plain(part) for part in value]
    return value


if __name__ == "__main__":
    {"tables": write_tables, "rows": record_rows}[sys.argv[1]]()
