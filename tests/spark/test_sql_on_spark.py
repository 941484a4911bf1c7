"""Bounded queries as Spark SQL, and streaming ones as jobs, on real embedded Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from firesteel.common import Row
from firesteel.common.errors import JobExecutionError
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import EvaluationError, Position

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


@pytest.mark.parametrize(
    ("sql", "message", "expression", "row", "place"),
    [
        (
            "SELECT id,\n CAST(who AS INT) FROM orders",
            "Cannot cast 'a' to INT",
            "CAST(who AS INT)",
            "(who = 'a')",
            (2, 2),
        ),
        (
            "SELECT 10 / (id - 2) FROM orders",
            "/ by zero",
            "DIVIDE(10, MINUS(id, 2))",
            "(id = 2)",
            (1, 8),
        ),
        (
            "SELECT who FROM orders WHERE CAST(who || '!' AS DOUBLE) > 1",
            "Cannot cast 'a!' to DOUBLE",
            "CAST(||(who, '!') AS DOUBLE)",
            "(who = 'a')",
            (1, 30),
        ),
    ],
)
def test_an_expression_that_fails_is_named(
    batch: TableEnvironment, sql: str, message: str, expression: str, row: str, place: tuple[int, int]
) -> None:
    assert "Spark SQL:\nSELECT" in batch.explain_sql(sql)
    with pytest.raises(EvaluationError) as caught:
        list(batch.execute_sql(sql).collect())
    error = caught.value
    assert error.message == f"{message}, in {expression} (line {place[0]}, column {place[1]}) for the row {row}."
    assert (error.expression, error.row, error.position) == (expression, row, Position(*place))


def test_an_insert_names_the_expression_that_fails(batch: TableEnvironment) -> None:
    batch.execute_sql("CREATE TABLE dropped (n INT) WITH ('connector' = 'blackhole')")
    with pytest.raises(JobExecutionError, match=r"/ by zero, in DIVIDE\(10, MINUS\(id, 3\)\) \(line 1, column 28\)"):
        batch.execute_sql("INSERT INTO dropped SELECT 10 / (id - 3) FROM orders").wait()
