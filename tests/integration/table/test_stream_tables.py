"""Streams as tables, tables as streams, and rows of the program as tables."""

from __future__ import annotations

import datetime as dt
import json
import re

import pytest

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.common.job_status import JobStatus
from firesteel.common.types import RowKind
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.table import DataTypes, ExplainDetail, Schema, StreamTableEnvironment, TableDescriptor
from firesteel.table.bound.errors import ValidationError
from firesteel.table.expressions import col, descriptor, map_
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


def test_columns_of_a_stream_by_name_and_by_position(
    env: StreamExecutionEnvironment, t_env: StreamTableEnvironment
) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Seconds())
    stream = env.from_collection([Row(1, "a"), Row(2, "b")], TYPE).assign_timestamps_and_watermarks(strategy)
    named = t_env.from_data_stream(stream, col("name"), col("id").alias("n"), col("t").rowtime, col("p").proctime)
    assert str(named.get_resolved_schema()) == (
        "(\n  `name` STRING,\n  `n` INT,\n  `t` TIMESTAMP(3) *ROWTIME*,\n  `p` TIMESTAMP_LTZ(3) *PROCTIME*\n)"
    )
    with named.select(col("n"), col("t").cast(DataTypes.STRING())).execute().collect() as rows:
        assert sorted(map(tuple, rows)) == [(1, "1970-01-01 00:00:01.000"), (2, "1970-01-01 00:00:02.000")]
    placed = t_env.from_data_stream(stream, col("x"), col("y"))
    assert placed.get_resolved_schema().get_column_names() == ["x", "y"]
    with pytest.raises(ValidationError, match="absent is not a field"):
        t_env.from_data_stream(stream, col("id"), col("absent"))


def test_streams_of_tuples_and_flags(env: StreamExecutionEnvironment, t_env: StreamTableEnvironment) -> None:
    env.set_parallelism(1)
    table = t_env.from_data_stream(env.from_collection([Row(1, "a"), Row(1, "b")], TYPE))
    pairs = t_env.to_append_stream(table, Types.TUPLE([Types.LONG(), Types.STRING()]))
    assert list(pairs.execute_and_collect()) == [(1, "a"), (1, "b")]
    counts = table.group_by(col("id")).select(col("id"), col("name").count.alias("n"))
    t_env.get_config().set("table.exec.mini-batch.enabled", "false")
    changes = t_env.to_retract_stream(counts, Types.TUPLE([Types.INT(), Types.LONG()]))
    assert list(changes.execute_and_collect()) == [(True, (1, 1)), (False, (1, 1)), (True, (1, 2))]
    schema = Schema.new_builder().column("key_", "BIGINT").column("total", "BIGINT").build()
    rows = list(t_env.to_changelog_stream(counts, schema).execute_and_collect())
    assert [(str(row.get_row_kind()), row.as_dict()) for row in rows] == [
        ("+I", {"key_": 1, "total": 1}),
        ("-U", {"key_": 1, "total": 1}),
        ("+U", {"key_": 1, "total": 2}),
    ]
    with pytest.raises(ValidationError, match="do not match"):
        t_env.to_append_stream(table, Types.TUPLE([Types.INT()]))


def test_changelogs_as_rows_and_back(env: StreamExecutionEnvironment, t_env: StreamTableEnvironment) -> None:
    env.set_parallelism(1)
    table = t_env.from_data_stream(env.from_collection([Row(1, "a"), Row(1, "b")], TYPE))
    counts = table.group_by(col("id")).select(col("id"), col("name").count.alias("n"))
    codes = map_("INSERT", "I", "UPDATE_BEFORE", "B", "UPDATE_AFTER", "A").as_argument("op_mapping")
    changes = counts.to_changelog(descriptor("code").as_argument("op"), codes)
    with changes.execute().collect() as rows:
        assert list(map(tuple, rows)) == [("I", 1, 1), ("B", 1, 1), ("A", 1, 2)]
    with counts.to_changelog().from_changelog().execute().collect() as rows:
        assert [(row.get_row_kind(), *row) for row in rows] == [
            (RowKind.INSERT, 1, 1),
            (RowKind.UPDATE_BEFORE, 1, 1),
            (RowKind.UPDATE_AFTER, 1, 2),
        ]


def test_pipelines(t_env: StreamTableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    t_env.execute_sql("CREATE TABLE shown (n INT) WITH ('connector' = 'print', 'print-identifier' = 'p')")
    table = t_env.sql_query("SELECT * FROM (VALUES 1, 2) AS v(n)")
    named = table.insert_into("shown")
    assert str(named) == "TablePipeline with sink table '`default_catalog`.`default_database`.`shown`'"
    assert str(named.get_sink_identifier()) == "`default_catalog`.`default_database`.`shown`"
    descriptor_ = TableDescriptor.for_connector("blackhole").schema(Schema.new_builder().column("n", "INT").build())
    unnamed = table.insert_into(descriptor_.build())
    assert unnamed.get_sink_identifier() is None
    assert t_env.list_tables() == ["shown"]
    assert "Sink(table=[default_catalog.default_database.shown]" in named.explain()
    t_env.create_statement_set().add(named).add(unnamed).execute().wait()
    assert sorted(re.findall(r"\+I\[\d\]", capsys.readouterr().out)) == ["+I[1]", "+I[2]"]
