"""Streams as tables, tables as streams, and rows of the program as tables."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.common.job_status import JobStatus
from firesteel.common.types import RowKind
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.table import DataTypes, ExplainDetail, Schema, StreamTableEnvironment, TableDescriptor
from firesteel.table.bound.errors import ValidationError
from firesteel.testing.in_process import InProcessExecutor

TYPE = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    """A stream environment whose jobs run in process."""
    created = StreamExecutionEnvironment.get_execution_environment()
    created.set_parallelism(2)
    created._executor = InProcessExecutor()
    return created


@pytest.fixture
def t_env(env: StreamExecutionEnvironment) -> StreamTableEnvironment:
    """A table environment on it."""
    created = StreamTableEnvironment.create(env)
    created.get_config().set_local_timezone("UTC")
    return created


def test_from_stream_to_stream(env: StreamExecutionEnvironment, t_env: StreamTableEnvironment) -> None:
    stream = env.from_collection([Row(1, "a"), Row(2, "b"), Row(3, None)], TYPE).map(lambda row: row, TYPE)
    t_env.create_temporary_view("people", t_env.from_data_stream(stream))
    table = t_env.sql_query("SELECT id * 10 AS ten, UPPER(name) AS name FROM people WHERE id <> 2")
    results = t_env.to_data_stream(table).map(lambda row: (row.ten, row["name"])).execute_and_collect()
    assert sorted(results) == [(10, "A"), (30, None)]


def test_a_stream_of_values(env: StreamExecutionEnvironment, t_env: StreamTableEnvironment) -> None:
    t_env.create_temporary_view("numbers", env.from_collection([1, 2, 3], Types.INT()))
    with t_env.sql_query("SELECT f0 + 1 FROM numbers").execute().collect() as rows:
        assert sorted(row[0] for row in rows) == [2, 3, 4]


class _Seconds(TimestampAssigner):
    def extract_timestamp(self, value: Row, record_timestamp: int) -> int:
        return int(value[0]) * 1000


def test_timestamps_and_watermarks_of_a_stream(env: StreamExecutionEnvironment, t_env: StreamTableEnvironment) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Seconds())
    stream = env.from_collection([Row(1, "a"), Row(2, "b")], TYPE).assign_timestamps_and_watermarks(strategy)
    schema = (
        Schema.new_builder()
        .column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")
        .column_by_expression("later", "rowtime + INTERVAL '1' SECOND")
        .watermark("rowtime", "SOURCE_WATERMARK()")
        .build()
    )
    table = t_env.from_data_stream(stream, schema)
    assert str(table.get_resolved_schema()) == (
        "(\n  `id` INT,\n  `name` STRING,\n  `rowtime` TIMESTAMP_LTZ(3) *ROWTIME*,\n  `later` TIMESTAMP_LTZ(3)\n)"
    )
    t_env.create_temporary_view("timed", table)
    query = t_env.sql_query("SELECT id, CAST(rowtime AS TIMESTAMP(3)), CAST(later AS TIMESTAMP(3)) FROM timed")
    with query.execute().collect() as rows:
        assert sorted(map(tuple, rows)) == [
            (1, dt.datetime(1970, 1, 1, 0, 0, 1), dt.datetime(1970, 1, 1, 0, 0, 2)),  # noqa: DTZ001
            (2, dt.datetime(1970, 1, 1, 0, 0, 2), dt.datetime(1970, 1, 1, 0, 0, 3)),  # noqa: DTZ001
        ]


def test_changelogs(env: StreamExecutionEnvironment, t_env: StreamTableEnvironment) -> None:
    changes = [
        Row.of_kind(RowKind.INSERT, 1, "a"),
        Row.of_kind(RowKind.UPDATE_BEFORE, 1, "a"),
        Row.of_kind(RowKind.UPDATE_AFTER, 1, "b"),
        Row.of_kind(RowKind.DELETE, 1, "b"),
    ]
    table = t_env.from_changelog_stream(env.from_collection(changes, TYPE))
    t_env.create_temporary_view("changes", table)
    query = t_env.sql_query("SELECT name FROM changes")
    results = t_env.to_changelog_stream(query).execute_and_collect()
    assert [(row.get_row_kind(), row[0]) for row in results] == [(row.get_row_kind(), row[1]) for row in changes]
    with pytest.raises(ValidationError, match="doesn't support consuming update and delete changes"):
        t_env.to_data_stream(query)


def test_a_stream_without_type(env: StreamExecutionEnvironment, t_env: StreamTableEnvironment) -> None:
    with pytest.raises(ValidationError, match="The stream has no type"):
        t_env.from_data_stream(env.from_collection([object()]))


def test_elements(t_env: StreamTableEnvironment) -> None:
    rows = [(1, "a", dt.date(2020, 1, 2), [1, None]), (2, None, None, [])]
    table = t_env.from_elements(rows, ["i", "s", "d", "l"])
    assert table.get_schema().get_field_data_types() == [
        DataTypes.BIGINT(),
        DataTypes.STRING(),
        DataTypes.DATE(),
        DataTypes.ARRAY(DataTypes.BIGINT()),
    ]
    with table.execute().collect() as results:
        assert [tuple(row) for row in results] == rows
    typed = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.TIMESTAMP(3))])
    moment = dt.datetime(2020, 1, 2, 3, 4, 5, 6000)  # noqa: DTZ001
    t_env.create_temporary_view("typed", t_env.from_elements([{"b": moment, "a": 1}], typed))
    with t_env.sql_query("SELECT b, a + 1 FROM typed").execute().collect() as results:
        assert list(results) == [Row(moment, 2)]


def test_pandas_round_trip(t_env: StreamTableEnvironment) -> None:
    pd = pytest.importorskip("pandas")
    table = t_env.from_pandas(pd.DataFrame({"x": [1, 2], "y": ["a", "b"]}))
    t_env.create_temporary_view("frame", table)
    found = t_env.sql_query("SELECT y, x * 2 AS z FROM frame").to_pandas()
    assert found.to_dict("list") == {"y": ["a", "b"], "z": [2, 4]}


def test_descriptors(t_env: StreamTableEnvironment, capfd: pytest.CaptureFixture[str]) -> None:
    schema = Schema.new_builder().column("a", DataTypes.INT()).build()
    t_env.create_temporary_table("target", TableDescriptor.for_connector("print").schema(schema).build())
    t_env.from_elements([(7,)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())])).execute_insert("target").wait()
    assert "7" in capfd.readouterr().out
    assert t_env.list_temporary_tables() == ["target"]
    assert t_env.drop_temporary_table("target")
    assert not t_env.drop_temporary_table("target")


def test_statement_sets_run_as_one_job(t_env: StreamTableEnvironment, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        t_env.execute_sql(
            f"CREATE TABLE `{name}` (a BIGINT) WITH ('connector' = 'print', 'print-identifier' = '{name}')"
        )
    t_env.create_temporary_view("numbers", t_env.from_elements([(1,), (2,)], ["n"]))
    statements = t_env.create_statement_set()
    statements.add_insert_sql("INSERT INTO `one` SELECT n FROM numbers")
    statements.add_insert_sql("INSERT INTO `two` SELECT n + 10 FROM numbers")
    assert statements.explain().count("Sink(") == 6
    result = statements.execute()
    result.wait()
    assert result.get_resolved_schema().get_column_names() == [
        "default_catalog.default_database.one",
        "default_catalog.default_database.two",
    ]
    printed = capfd.readouterr().out
    assert all(f"{name}" in printed and text in printed for name, text in (("one", "2"), ("two", "12")))
    with pytest.raises(ValidationError, match="The statement set is empty"):
        statements.execute()


GENERATED = "CREATE TABLE generated (n BIGINT, m BIGINT, o BIGINT) WITH ('connector' = 'datagen')"


def test_a_statement_set_reads_a_table_once(t_env: StreamTableEnvironment) -> None:
    t_env.execute_sql(GENERATED)
    t_env.execute_sql("CREATE TABLE target (a BIGINT) WITH ('connector' = 'blackhole')")
    statements = t_env.create_statement_set()
    statements.add_insert_sql("INSERT INTO target SELECT n FROM generated")
    statements.add_insert_sql("INSERT INTO target SELECT m FROM generated WHERE o > 1")
    plan = json.loads(statements.explain(ExplainDetail.JSON_EXECUTION_PLAN).split("== Physical Execution Plan ==")[1])
    assert [node["type"] for node in plan["nodes"] if node["type"].startswith("Source")] == ["Source: generated"]


def test_an_unbounded_query_ends_when_it_is_closed(t_env: StreamTableEnvironment) -> None:
    t_env.execute_sql(GENERATED)
    result = t_env.execute_sql("SELECT n + m FROM generated")
    with result.collect() as rows:
        assert len(next(rows)) == 1
    client = result.get_job_client()
    assert client is not None
    assert client.get_job_status().result() is JobStatus.CANCELED
