"""Bounded queries as Spark SQL, and streaming ones as jobs, on real embedded Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from firesteel.common import Row
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment

ORDERS = [
    (1, "a", Decimal("1.50"), dt.datetime(2020, 1, 1, 10)),  # noqa: DTZ001
    (2, "b", Decimal("2.25"), dt.datetime(2020, 1, 1, 11)),  # noqa: DTZ001
    (3, "a", None, None),
]
ORDER_TYPE = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.INT()),
        DataTypes.FIELD("who", DataTypes.STRING()),
        DataTypes.FIELD("price", DataTypes.DECIMAL(10, 2)),
        DataTypes.FIELD("at_", DataTypes.TIMESTAMP(3)),
    ]
)


@pytest.fixture
def batch(spark_context: object) -> TableEnvironment:
    """An environment in batch mode with a table of orders."""
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set_local_timezone("UTC")
    environment.create_temporary_view("orders", environment.from_elements(ORDERS, ORDER_TYPE))
    return environment


def test_a_bounded_query_runs_as_spark_sql(batch: TableEnvironment) -> None:
    session = SparkSession.builder.getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        sql = "SELECT who, COUNT(*) AS n, SUM(price) AS total, MAX(at_) AS l FROM orders GROUP BY who ORDER BY who"
        assert "Spark SQL:\nSELECT" in batch.explain_sql(sql)
        with batch.execute_sql(sql).collect() as rows:
            assert list(rows) == [
                Row("a", 2, Decimal("1.50"), ORDERS[0][3]),
                Row("b", 1, Decimal("2.25"), ORDERS[1][3]),
            ]
        assert session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert session.catalog.listTables() == []
    finally:
        session.conf.unset("spark.sql.session.timeZone")


def test_what_spark_cannot_do_runs_on_own_operators(batch: TableEnvironment) -> None:
    sql = "SELECT id, INTERVAL '1' DAY AS d FROM orders WHERE id > 1"
    assert "Operators of Firesteel, since Spark SQL cannot run it: a column of type INTERVAL" in batch.explain_sql(sql)
    with batch.execute_sql(sql).collect() as rows:
        assert sorted(row[0] for row in rows) == [2, 3]


def test_dataframes(batch: TableEnvironment) -> None:
    session = SparkSession.builder.getOrCreate()
    frame = session.createDataFrame([(1, "x"), (3, "z")], "id INT, label STRING")
    batch.create_temporary_view("labels", batch.from_dataframe(frame))
    table = batch.sql_query("SELECT o.who, l.label FROM orders AS o JOIN labels AS l ON o.id = l.id")
    assert sorted(map(tuple, table.to_dataframe().collect())) == [("a", "x"), ("a", "z")]


def test_insert_of_a_bounded_query(batch: TableEnvironment, capfd: pytest.CaptureFixture[str]) -> None:
    batch.execute_sql(
        "CREATE TABLE target (who STRING NOT NULL, n BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'T')"
    )
    batch.execute_sql("INSERT INTO target SELECT who, COUNT(*) FROM orders GROUP BY who").wait()
    printed = [line for line in capfd.readouterr().out.splitlines() if "T" in line]
    assert len(printed) == 2


def test_a_streaming_query(spark_context: object) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", "2")
    table = environment.from_elements([(1, "a"), (2, "b")], ["i", "s"])
    environment.create_temporary_view("t", table)
    with environment.execute_sql("SELECT s, i + 1 FROM t WHERE i > 1").collect() as rows:
        assert list(rows) == [Row("b", 3)]
