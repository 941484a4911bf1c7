"""Plans of queries run as Spark SQL: the rows are those recorded from Flink 2.3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from firesteel.table.plan.nodes import TableScan
from firesteel.table.spark_sql.queries import SparkQueryPrinter, UnsupportedInSparkError
from tests.unit.table.test_queries import RECORDED, plan

TABLES = json.loads(
    (Path(__file__).parents[1] / "unit" / "table" / "recorded" / "query_tables.json").read_text("utf-8")
)
UNSUPPORTED = ("COLLECT", "FIRST_VALUE", "SELECT k, i IN (SELECT")
"""Parts of queries that are not printed as Spark SQL yet."""
ANY_ROWS = (
    "SELECT k FROM t LIMIT 10 OFFSET 5",
    "SELECT k FROM t OFFSET 2 ROWS FETCH FIRST 3 ROWS ONLY",
)
"""Queries that may return any of several rows."""


@pytest.fixture(scope="module")
def spark(sql_session: SparkSession) -> Iterator[SparkSession]:
    for name, table in TABLES.items():
        columns = [column.split(" ", 1) for column in table["columns"]]
        rows = ", ".join(
            "(" + ", ".join(_cast(value, type_) for value, (_, type_) in zip(row, columns, strict=True)) + ")"
            for row in table["rows"]
        )
        names = ", ".join(name for name, _ in columns)
        sql_session.sql(f"SELECT * FROM VALUES {rows} AS v ({names})").createOrReplaceTempView(name)
    yield sql_session
    for name in TABLES:
        sql_session.catalog.dropTempView(name)


def _cast(value: str, type_: str) -> str:
    return f"CAST({value} AS {type_.removesuffix(' NOT NULL')})"


def _view(scan: TableScan) -> str:
    return scan.identifier.object_name


def _comparable(rows: list[Any]) -> list[str]:
    plain = ([value if isinstance(value, (bool, int, float)) else str(value) for value in row] for row in rows)
    return sorted(map(repr, plain))


def _about(rows: list[Any]) -> list[str]:
    """The rows of variances, whose last digits depend on the order of additions."""
    return [f"{float(value):.12g}" for row in rows for value in row]


def test_rows_are_flinks(spark: SparkSession) -> None:
    printer = SparkQueryPrinter(_view)
    wrong, refused, compared = [], [], 0
    for sql, outcome in RECORDED.items():
        if "rows" not in outcome or sql in ANY_ROWS:
            continue
        try:
            text = printer.print(plan(sql))
        except UnsupportedInSparkError:
            refused.append(sql)
            continue
        comparable = _about if "STDDEV" in sql else _comparable
        found = comparable(spark.sql(text).collect())
        compared += 1
        if found != comparable(outcome["rows"]):
            wrong.append((sql, text, found, outcome["rows"]))
    assert not wrong
    assert all(any(part in sql for part in UNSUPPORTED) for sql in refused), refused
    assert compared > 50


UNNESTED = [
    ("SELECT x FROM UNNEST(ARRAY[1, 2]) AS e (x)", [(1,), (2,)]),
    ("SELECT x, n FROM UNNEST(ARRAY['a', 'b']) WITH ORDINALITY AS e (x, n)", [("a", 1), ("b", 2)]),
    ("SELECT k, v FROM UNNEST(MAP['a', 1, 'b', 2]) AS e (k, v)", [("a", 1), ("b", 2)]),
    ("SELECT y, x FROM (VALUES (1), (2)) AS t (y) CROSS JOIN UNNEST(ARRAY[y, 7]) AS e (x) WHERE x > 1",
     [(1, 7), (2, 2), (2, 7)]),
    ("SELECT y, x FROM (VALUES (1)) AS t (y) LEFT JOIN UNNEST(CASE WHEN y > 1 THEN ARRAY[y] END) AS e (x) ON TRUE",
     [(1, None)]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "rows"), UNNESTED)
def test_elements_of_collections(spark: SparkSession, sql: str, rows: list[Any]) -> None:
    assert [tuple(row) for row in spark.sql(SparkQueryPrinter(_view).print(plan(sql))).collect()] == rows
