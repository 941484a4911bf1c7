"""Records what Flink makes of the window queries of the tests: the type of their rows and the rows, or why not.

Run it with a Python that has PyFlink 2.3; it writes tests/integration/table/windows/recorded/results.json. Each row
brings its watermark (an interval of 0), so which rows are late does not depend on the clock.
"""

from __future__ import annotations

import csv
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

FOLDER = Path(__file__).parents[1] / "tests" / "integration" / "table" / "windows"


def main() -> None:
    """Records all queries."""
    tables = json.loads((FOLDER / "recorded" / "tables.json").read_text("utf-8"))
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = environment.get_config()
    config.set("parallelism.default", "1")
    config.set("pipeline.auto-watermark-interval", "0 ms")
    config.set("table.local-time-zone", tables["zoned"]["zone"])
    with tempfile.TemporaryDirectory() as directory:
        for name, table in tables.items():
            rows = tables[table["rows_of"]] if "rows_of" in table else table
            _create(environment, name, {**rows, **table}, Path(directory))
        recorded = {
            query: _outcome(environment, query) for query in (FOLDER / "queries.sql").read_text("utf-8").splitlines()
        }
    lines = (f" {json.dumps(query)}: {json.dumps(found, ensure_ascii=False)}" for query, found in recorded.items())
    (FOLDER / "recorded" / "results.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _create(environment: TableEnvironment, name: str, table: dict[str, Any], directory: Path) -> None:
    path = directory / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["" if value is None else value for value in row] for row in table["rows"]])
    columns = list(table["columns"])
    if "zone" in table:
        columns.append("tl AS TO_TIMESTAMP_LTZ(ms, 3)")
    if "watermark" in table:
        column, delay = table["watermark"]
        number, unit = delay.split()
        columns.append(f"WATERMARK FOR {column} AS {column} - INTERVAL '{number}' {unit.rstrip('s').upper()}")
    environment.execute_sql(
        f"CREATE TEMPORARY TABLE {name} ({', '.join(columns)}) WITH ('connector' = 'filesystem', 'format' = 'csv', "
        f"'path' = '{path}', 'csv.null-literal' = '')"
    )


def _outcome(environment: TableEnvironment, query: str) -> dict[str, Any]:
    outcome: dict[str, Any] = {}
    try:
        table = environment.sql_query(query)
        columns = table._j_table.getResolvedSchema().getColumns()
        outcome["type"] = ", ".join(map(_column_text, columns))
        with table.execute().collect() as results:
            rows = [[str(row.get_row_kind().name), *map(_value, row)] for row in results]
        outcome["rows"] = sorted(rows, key=json.dumps)
    except Exception as error:  # noqa: BLE001 - whatever Flink refuses it with
        reasons = re.findall(r"Exception: (.*)", str(error))
        return {**outcome, "error": reasons[-1] if reasons else str(error).splitlines()[0]}
    return outcome


def _value(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _column_text(column: Any) -> str:
    return f"`{column.getName()}` {column.getDataType().getLogicalType().asSummaryString()}"


if __name__ == "__main__":
    main()
