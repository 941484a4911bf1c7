"""Windows of bounded queries: Spark SQL and the streaming operators have the same rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from firesteel.table.plan.nodes import TableScan
from firesteel.table.spark_sql.queries import SparkQueryPrinter, UnsupportedInSparkError
from tests.support.sql_windows.running import bind, comparable, stream_of
from tests.support.sql_windows.tables import RECORDED

RESULTS: dict[str, Any] = json.loads((RECORDED / "results.json").read_text("utf-8"))
TABLES_OF_TEST: dict[str, Any] = json.loads((RECORDED / "tables.json").read_text("utf-8"))
ORDERED = ("LISTAGG", "FIRST_VALUE", "ORDER BY window_time")
"""Parts of queries whose results depend on the order in which rows come."""
TABLES = ("bids20", "asks20")
"""Without late rows: bounded queries have none."""


@pytest.fixture(scope="module")
def spark(sql_session: SparkSession) -> Iterator[SparkSession]:
    for name in TABLES:
        table = TABLES_OF_TEST[TABLES_OF_TEST[name]["rows_of"]]
        columns = [column.replace("TIMESTAMP(3)", "TIMESTAMP_NTZ").split(" ", 1) for column in table["columns"]]
        rows = (
            ", ".join(_literal(value, type_) for value, (_, type_) in zip(row, columns, strict=True))
            for row in table["rows"]
        )
        names = ", ".join(column for column, _ in columns)
        values = ", ".join(f"({row})" for row in rows)
        sql_session.sql(f"SELECT * FROM VALUES {values} AS v ({names})").createOrReplaceTempView(name)
    yield sql_session
    for name in TABLES:
        sql_session.catalog.dropTempView(name)


def _literal(value: Any, type_: str) -> str:
    return f"CAST(NULL AS {type_})" if value is None else f"CAST('{value}' AS {type_})"


def _view(scan: TableScan) -> str:
    return scan.identifier.object_name


def test_rows_are_those_of_streams(spark: SparkSession, in_process_env: Any) -> None:
    compared, wrong = 0, []
    for recorded, outcome in RESULTS.items():
        query = re.sub(r"\b(bids|asks)\b", r"\g<1>20", recorded)
        if "rows" not in outcome or any(row[0] != "INSERT" for row in outcome["rows"]) or "zoned" in query:
            continue
        if any(part in query for part in ORDERED):
            continue
        try:
            text = SparkQueryPrinter(_view).print(bind(query))
        except UnsupportedInSparkError:
            continue
        streamed = [comparable(row)[1:] for row in stream_of(query, in_process_env(1)).execute_and_collect()]
        found = [[_value(value) for value in row] for row in spark.sql(text).collect()]
        compared += 1
        if sorted(found, key=json.dumps) != sorted(streamed, key=json.dumps):
            wrong.append(query)
    assert not wrong
    assert compared >= 30


def _value(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)
