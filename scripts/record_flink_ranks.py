"""Records the changelogs that Flink makes of queries with OVER, Top-N, deduplication, sorts, limits and set operations.

Run it with a Python that has PyFlink 2.3; it writes tests/integration/table/ranks/recorded.json. Queries are executed
in streaming mode, one row at a time, with a watermark after each row.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Row, RowKind, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import Schema, StreamTableEnvironment

FOLDER = Path(__file__).parents[1] / "tests" / "integration" / "table" / "ranks"
TYPES = {
    "INT": Types.INT(),
    "BIGINT": Types.LONG(),
    "STRING": Types.STRING(),
    "DOUBLE": Types.DOUBLE(),
    "TIMESTAMP(3)": Types.LONG(),
}
KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}


def main() -> None:
    """Records all queries."""
    configuration = Configuration()
    configuration.set_string("parallelism.default", "1")
    configuration.set_string("pipeline.auto-watermark-interval", "0 ms")
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    tables = StreamTableEnvironment.create(environment)
    tables.get_config().set("table.local-time-zone", "UTC")
    for name, table in json.loads((FOLDER / "tables.json").read_text("utf-8")).items():
        _create(environment, tables, name, table)
    queries = [line for line in (FOLDER / "queries.sql").read_text("utf-8").splitlines() if line]
    recorded = {query: _outcome(tables, query) for query in queries}
    lines = (f" {json.dumps(query)}: {json.dumps(found, ensure_ascii=False)}" for query, found in recorded.items())
    (FOLDER / "recorded.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _create(environment: Any, tables: Any, name: str, table: dict[str, Any]) -> None:
    columns = [column.split(" ", 1) for column in table["columns"]]
    kinds = [type_.removesuffix(" NOT NULL") for _, type_ in columns]
    rows = []
    for kind, *values in table["rows"]:
        row = Row(*values)
        row.set_row_kind(KINDS[kind])
        rows.append(row)
    names = [column + "_ms" * (type_ == "TIMESTAMP(3)") for column, type_ in columns]
    info = Types.ROW_NAMED(names, [TYPES[type_] for type_ in kinds])
    stream = environment.from_collection(rows, info)
    schema = Schema.new_builder()
    for column, type_ in columns:
        if type_ == "TIMESTAMP(3)":
            schema.column(f"{column}_ms", "BIGINT")
            schema.column_by_expression(column, f"CAST(TO_TIMESTAMP_LTZ({column}_ms, 3) AS TIMESTAMP(3))")
        else:
            schema.column(column, type_)
    if table.get("primary_key"):
        schema.primary_key(*table["primary_key"])
    if table.get("watermark"):
        schema.column_by_expression("pt", "PROCTIME()")
        schema.watermark("ts", table["watermark"])
    if all(row[0] == "+I" for row in table["rows"]):
        tables.create_temporary_view(name, tables.from_data_stream(stream, schema.build()))
    else:
        tables.create_temporary_view(name, tables.from_changelog_stream(stream, schema.build()))


def _outcome(tables: Any, query: str) -> dict[str, Any]:
    try:
        with tables.sql_query(query).execute().collect() as results:
            return {"rows": [[str(row.get_row_kind()), *map(_value, row)] for row in results]}
    except Exception as error:  # noqa: BLE001 - whatever Flink refuses it with
        reasons = re.findall(r"Exception: (.*)", str(error))
        return {"error": reasons[-1] if reasons else str(error).splitlines()[0]}


def _value(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


if __name__ == "__main__":
    main()
