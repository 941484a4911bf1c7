"""Subqueries and grouping functions of bounded queries on Spark SQL: the rows are those recorded from Flink 2.3."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from firesteel.table.rules.joins.subqueries_to_joins import subqueries_to_joins
from firesteel.table.spark_sql.queries import SparkQueryPrinter, UnsupportedInSparkError
from tests.support.sql.running import bound, comparable, final_rows
from tests.support.sql.tables import TABLES

RECORDED = json.loads(
    (Path(__file__).parents[1] / "integration" / "table" / "recorded" / "corpus.json").read_text("utf-8")
)
COLUMNS = {
    "o": "id BIGINT, k INT, s STRING, n BIGINT, d DECIMAL(10, 2), f DOUBLE, b BOOLEAN, ts TIMESTAMP_NTZ",
    "p": "oid BIGINT, k INT, amount BIGINT, way STRING, ts TIMESTAMP_NTZ",
    "c": "k INT, city STRING, points BIGINT",
}
NESTED = "EXISTS (SELECT 1 FROM p WHERE p.k = o.k AND EXISTS (SELECT 1 FROM c WHERE c.k = o.k AND c.k = p.k))"
QUERIES = [
    f"SELECT id FROM o WHERE {NESTED}",
    "SELECT id FROM o WHERE n <= ANY (SELECT amount FROM p WHERE p.k = o.k)",
    "SELECT id, k IN (SELECT k FROM p) AS v FROM o",
    "SELECT id, (SELECT city FROM c WHERE c.k = o.k) AS v FROM o",
    "SELECT id, (SELECT COUNT(*) FROM p WHERE p.amount > o.n) AS v FROM o",
    "SELECT c.k, t.v FROM c LEFT JOIN LATERAL (SELECT c.points + p.amount AS v FROM p WHERE p.k = c.k) t ON TRUE",
    "SELECT k, GROUP_ID() AS g, COUNT(*) AS n FROM o GROUP BY GROUPING SETS ((k), (k), ())",
]


def text_of(sql: str) -> str:
    plan = bound(sql)
    try:
        return SparkQueryPrinter(lambda scan: f"corpus_{scan.identifier.object_name}").print(plan)
    except UnsupportedInSparkError:
        return SparkQueryPrinter(lambda scan: f"corpus_{scan.identifier.object_name}").print(subqueries_to_joins(plan))


def test_rows_are_flinks(sql_session: SparkSession) -> None:
    for name, table in TABLES.items():
        sql_session.createDataFrame(final_rows(table), COLUMNS[name]).createOrReplaceTempView(f"corpus_{name}")
    wrong: list[Any] = []
    for sql in QUERIES:
        found = Counter(comparable(tuple(row)) for row in sql_session.sql(text_of(sql)).collect())
        if found != Counter(map(tuple, RECORDED[sql]["rows"])):
            wrong.append((sql, found))
    for name in TABLES:
        sql_session.catalog.dropTempView(f"corpus_{name}")
    assert not wrong
