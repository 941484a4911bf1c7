"""Files that bounded queries read by Spark's own readers: the rows are those of the connector ``filesystem``."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from firesteel.common import Row
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.testing.in_process import InProcessExecutor

COLUMNS = (
    "id INT, name STRING, price DECIMAL(10, 2), at_ TIMESTAMP(3), tags ARRAY<STRING>, nested ROW<x INT, y STRING>, "
    "d STRING, h INT"
)
VALUES = """
    (1, 'a,b', CAST(1.5 AS DECIMAL(10, 2)), TIMESTAMP '2020-01-01 10:00:00.123', ARRAY['x', CAST(NULL AS STRING)],
     CAST(ROW(1, 'q') AS ROW<x INT, y STRING>), '2020', 1),
    (2, CAST(NULL AS STRING), CAST(NULL AS DECIMAL(10, 2)), CAST(NULL AS TIMESTAMP(3)), CAST(NULL AS ARRAY<STRING>),
     CAST(NULL AS ROW<x INT, y STRING>), 'a b%c', 2),
    (3, 'say "z"', CAST(2.25 AS DECIMAL(10, 2)), TIMESTAMP '1900-01-01 10:00:00.123', ARRAY['w'],
     CAST(ROW(2, CAST(NULL AS STRING)) AS ROW<x INT, y STRING>), CAST(NULL AS STRING), 3)
"""
ROWS = [
    Row(1, "a,b", Decimal("1.50"), dt.datetime(2020, 1, 1, 10, 0, 0, 123000), ["x", None], Row(1, "q"), "2020", 1),  # noqa: DTZ001
    Row(2, None, None, None, None, None, "a b%c", 2),
    Row(3, 'say "z"', Decimal("2.25"), dt.datetime(1900, 1, 1, 10, 0, 0, 123000), ["w"], Row(2, None), None, 3),  # noqa: DTZ001
]


def create(environment: TableEnvironment, path: Path, name: str, columns: str = COLUMNS, others: str = "") -> None:
    options = f"'connector' = 'filesystem', 'path' = '{path}/{name}', 'format' = '{name}'{others}"
    environment.execute_sql(f"CREATE TABLE {name}_table ({columns}) PARTITIONED BY (d, h) WITH ({options})")


@pytest.fixture
def writing() -> TableEnvironment:
    """An environment without Spark."""
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment._session.environment._executor = InProcessExecutor()
    return environment


@pytest.fixture
def batch(spark_context: object) -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set_local_timezone("UTC")
    return environment


READERS = {
    "parquet": "read by Spark (parquet), 3 files",
    "json": "read by Spark (text, decoded by the format of the table), 3 files",
    "orc": "read by a job of Firesteel, since the column 'at_'",
    "avro": "read by a job of Firesteel, since Spark has no reader of avro",
}


def test_all_formats(writing: TableEnvironment, batch: TableEnvironment, tmp_path: Path) -> None:
    for name, reader in READERS.items():
        for environment in (writing, batch):
            create(environment, tmp_path, name)
        writing.execute_sql(f"INSERT INTO {name}_table SELECT * FROM (VALUES {VALUES}) AS v").wait()
        sql = f"SELECT * FROM {name}_table ORDER BY id"
        assert reader in batch.explain_sql(sql)
        with batch.execute_sql(sql).collect() as rows:
            assert list(rows) == ROWS, name


def test_conditions_and_columns_are_pushed_into_the_reader(batch: TableEnvironment, tmp_path: Path) -> None:
    for partition in ("d=2020/h=1", "d=2020/h=2", "d=__DEFAULT_PARTITION__/h=1"):
        directory = tmp_path / "parquet" / partition
        directory.mkdir(parents=True)
        table = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"], "rest": [1.5, 2.5]})
        pa.parquet.write_table(table, directory / "part-0")
    create(batch, tmp_path, "parquet", "id INT, name STRING, rest DOUBLE, other STRING, d STRING, h INT")
    query = batch.sql_query("SELECT name, d, other FROM parquet_table WHERE id > 1 AND h < 2")
    frame = query.to_dataframe()
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<id:int,name:string,other:string>" in plan
    assert "PushedFilters: [IsNotNull(id), GreaterThan(id,1)]" in plan
    assert "PartitionFilters: [" in plan
    assert "cast(nullif" in plan or "h#" in plan.split("PartitionFilters: [")[1].split("]")[0]
    assert sorted(frame.collect(), key=str) == sorted([("b", "2020", None), ("b", None, None)], key=str)


def test_what_spark_would_read_otherwise_is_read_by_a_job(batch: TableEnvironment, tmp_path: Path) -> None:
    def explained(columns: str, written: dict[str, object], partition: str = "d=2020/h=1") -> str:
        directory = tmp_path / "parquet" / partition
        directory.mkdir(parents=True, exist_ok=True)
        pa.parquet.write_table(pa.table(written), directory / "part-0")
        batch.execute_sql("DROP TABLE IF EXISTS parquet_table")
        create(batch, tmp_path, "parquet", f"{columns}, d STRING, h INT")
        return batch.explain_sql("SELECT * FROM parquet_table").split("read by ")[1]

    ints, times = pa.array([1], pa.int64()), pa.array([0], pa.timestamp("us", "UTC"))
    assert "'ID', whose name differs in case" in explained("id BIGINT", {"ID": ints})
    assert "has the type int64" in explained("id INT", {"id": ints})
    assert "has the type timestamp[us, tz=UTC]" in explained("id TIMESTAMP(3)", {"id": times})
    assert explained("id TIMESTAMP_LTZ(3)", {"id": times}).startswith("Spark (parquet)")
    assert explained("id BIGINT", {"id": ints}).startswith("Spark (parquet)")
    assert "is not one of the partitions" in explained("id BIGINT", {"id": ints}, "d=2020/x=1")


def test_lines_are_decoded_into_the_columns_that_are_read(batch: TableEnvironment, tmp_path: Path) -> None:
    directory = tmp_path / "json" / "d=1" / "h=1"
    directory.mkdir(parents=True)
    (directory / "lines").write_bytes(b'{"id": 1, "name": "a", "rest": [1]}\n{"id": 2, "name": "b", "rest": 5}\n')
    create(batch, tmp_path, "json", "id INT, name STRING, rest ARRAY<INT>, d STRING, h INT")
    sql = "SELECT COUNT(*) AS n, MAX(id) AS m FROM json_table WHERE name <> 'c'"
    explained = " ".join(batch.explain_sql(sql).split("== Execution ==")[1].split())
    assert re.search(r"SELECT `id`, `name` FROM firesteel_table_\d+", explained)
    assert "`rest`" not in explained
    with batch.execute_sql(sql).collect() as rows:
        assert list(rows) == [Row(2, 2)]


def test_bad_lines(batch: TableEnvironment, tmp_path: Path) -> None:
    directory = tmp_path / "json" / "d=1" / "h=1"
    directory.mkdir(parents=True)
    (directory / "lines").write_bytes(b'{"id": "7"}\r\n\n{"id": \n{"id": 8, "name": 5}\n')
    create(batch, tmp_path, "json", "id INT, name STRING, d STRING, h INT", ", 'json.ignore-parse-errors' = 'true'")
    with batch.execute_sql("SELECT id, name, h FROM json_table ORDER BY id").collect() as rows:
        assert list(rows) == [Row(7, None, 1), Row(8, "5", 1)]
    hint = "/*+ OPTIONS('json.ignore-parse-errors' = 'false') */"
    with (
        pytest.raises(Exception, match="Failed to deserialize JSON"),
        batch.execute_sql(f"SELECT id FROM json_table {hint}").collect() as rows,
    ):
        list(rows)


def test_lines_of_csv_without_quotes(batch: TableEnvironment, tmp_path: Path) -> None:
    directory = tmp_path / "csv" / "d=1" / "h=1"
    directory.mkdir(parents=True)
    (directory / "lines").write_text('7,"a\n8,\n')
    create(batch, tmp_path, "csv", "id INT, name STRING, d STRING, h INT", ", 'csv.disable-quote-character' = 'true'")
    sql = "SELECT id, name FROM csv_table ORDER BY id"
    assert "read by Spark (text" in batch.explain_sql(sql)
    with batch.execute_sql(sql).collect() as rows:
        assert list(rows) == [Row(7, '"a'), Row(8, "")]


def test_tables_of_a_catalog_of_spark(batch: TableEnvironment, tmp_path: Path) -> None:
    session = SparkSession.builder.getOrCreate()
    session.sql(f"CREATE TABLE orders (id INT, price DECIMAL(10, 2)) USING parquet LOCATION '{tmp_path}/orders'")
    try:
        session.sql("INSERT INTO orders VALUES (1, 1.5), (2, NULL)")
        batch.execute_sql("CREATE CATALOG s WITH ('type' = 'spark')")
        batch.execute_sql("USE CATALOG s")
        with batch.execute_sql("SHOW TABLES").collect() as rows:
            assert list(rows) == [Row("orders")]
        with batch.execute_sql("DESCRIBE orders").collect() as rows:
            assert [tuple(row)[:3] for row in rows] == [("id", "INT", True), ("price", "DECIMAL(10, 2)", True)]
        sql = "SELECT id * 2 AS twice, price FROM orders WHERE id > 0 ORDER BY id"
        assert "read by Spark, as the table `spark_catalog`.`default`.`orders`" in batch.explain_sql(sql)
        with batch.execute_sql(sql).collect() as rows:
            assert list(rows) == [Row(2, Decimal("1.50")), Row(4, None)]
        with pytest.raises(ValidationError, match="can only be used as a source"):
            batch.execute_sql("INSERT INTO orders VALUES (3, 1)")
        with pytest.raises(ValidationError, match="The catalog 'none' cannot read the catalog 'nowhere' of Spark"):
            batch.execute_sql("CREATE CATALOG `none` WITH ('type' = 'spark', 'catalog' = 'nowhere')")
    finally:
        session.sql("DROP TABLE orders")


def test_a_table_of_a_catalog_of_spark_that_grows(spark_context: object, tmp_path: Path) -> None:
    """The rows that Spark adds while the query runs come too."""
    session = SparkSession.builder.getOrCreate()
    session.sql(f"CREATE TABLE growing (id INT, ds STRING) USING parquet PARTITIONED BY (ds) LOCATION '{tmp_path}/g'")
    session.sql(f"CREATE TABLE texts (id INT) USING csv LOCATION '{tmp_path}/t'")
    try:
        session.sql("INSERT INTO growing VALUES (1, 'a')")
        environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        environment._session.environment._executor = InProcessExecutor()
        environment.execute_sql("CREATE CATALOG s WITH ('type' = 'spark')")
        hint = "/*+ OPTIONS('source.monitor-interval' = '50 ms') */"
        with environment.execute_sql(f"SELECT id, ds FROM s.`default`.growing {hint}").collect() as rows:
            assert next(rows) == Row(1, "a")
            session.sql("INSERT INTO growing VALUES (2, 'b')")
            assert next(rows) == Row(2, "b")
        with pytest.raises(ValidationError, match="its provider is 'csv'"):
            environment.execute_sql(f"SELECT * FROM s.`default`.texts {hint}")
    finally:
        session.sql("DROP TABLE growing")
        session.sql("DROP TABLE texts")
