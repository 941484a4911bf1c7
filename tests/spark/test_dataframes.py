"""DataFrames as sources, whatever executes the job, and streams as DataFrames."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from firesteel.common import Duration, Instant, Row, Types, WatermarkStrategy
from firesteel.common.errors import FiresteelError, InvalidProgramError, JobExecutionError
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.spark.dataframes.errors import DataFrameError
from firesteel.spark.dataframes.source import DataFrameSource

BATCH = {"execution.runtime-mode": "BATCH"}
EXECUTIONS = {
    "batch": BATCH,
    "automatic": {"execution.runtime-mode": "AUTOMATIC"},
    "pipelined": {},
    "epochs": {"execution.exchange": "spark"},
}


@pytest.fixture(scope="module")
def spark(spark_context: Any) -> SparkSession:
    return SparkSession.builder.getOrCreate()


def records_of(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as results:
        return list(results)


def jobs_so_far(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


# -- sources ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("execution", "partitions", "parallelism"),
    [("batch", 1, 1), ("batch", 1, 3), ("batch", 5, 2), ("automatic", 3, 3), ("pipelined", 5, 2), ("epochs", 5, 2)],
)
def test_every_row_once_whatever_executes_the_job(spark_env, spark, execution, partitions, parallelism):
    env = spark_env(parallelism, EXECUTIONS[execution])
    frame = spark.range(0, 210, 1, partitions).selectExpr("id", "cast(id % 7 as int) as k")
    sums = env.from_dataframe(frame).map(lambda row: (row.k, row.id)).key_by(lambda pair: pair[0])
    results = records_of(sums.reduce(lambda a, b: (a[0], a[1] + b[1])))
    totals = {key: max(total for k, total in results if k == key) for key in range(7)}
    assert totals == {key: sum(range(key, 210, 7)) for key in range(7)}
    assert len(results) == (7 if execution in ("batch", "automatic") else 210)


def test_many_partitions_and_a_million_rows(spark_env, spark):
    env = spark_env(2, BATCH)
    frame = spark.range(0, 1_000_000, 1, 12).selectExpr("id % 100 as k", "id")
    stream = env.from_dataframe(frame, as_tuples=True)
    sums = dict(records_of(stream.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))))
    assert sums == {key: sum(range(key, 1_000_000, 100)) for key in range(100)}


TYPES_DDL = (
    "a tinyint, b smallint, c int, d bigint, e float, f double, g string, h binary, i decimal(10,2), j date, "
    "k timestamp, l timestamp_ntz, m array<int>, n map<string,bigint>, o struct<x:int,y:array<string>>, p boolean"
)
UTC = dt.timezone.utc
MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001 - no zone is meant
VALUES: tuple[Any, ...] = (
    -1,
    300,
    -70_000,
    2**40,
    0.5,
    1e300,
    "ä\n",
    b"\x00\xff",
    Decimal("12345678.90"),
    dt.date(1969, 12, 31),
    MOMENT.replace(tzinfo=UTC),
    MOMENT,
    [1, None],
    {"x": 1, "y": None},
    (None, ["a"]),
    True,
)
RECORD = Row(**dict(zip("abcdefghijklmnop", VALUES, strict=True)))
RECORD["k"] = Instant(1577934245, 6000)
RECORD["o"] = Row(x=None, y=["a"])
NOTHING = Row(**dict.fromkeys("abcdefghijklmnop"))


@pytest.fixture
def all_types(spark: SparkSession) -> DataFrame:
    frame = spark.createDataFrame([VALUES, (None,) * len(VALUES)], StructType.fromDDL(TYPES_DDL))
    return frame.coalesce(1)


@pytest.mark.parametrize("execution", ["batch", "pipelined"])
def test_each_type_is_the_one_flink_has(spark_env, all_types, execution):
    stream = spark_env(1, EXECUTIONS[execution]).from_dataframe(all_types)
    assert records_of(stream) == [RECORD, NOTHING]
    assert str(stream.get_type()) == (
        "RowTypeInfo(a: Byte, b: Short, c: Integer, d: Long, e: Float, f: Double, g: String, "
        "h: PrimitiveArrayTypeInfo<Byte>, i: BigDecimal, j: DateTypeInfo, k: Instant, l: TimestampTypeInfo, "
        "m: ListTypeInfo<Integer>, n: MapTypeInfo<String, Long>, "
        "o: RowTypeInfo(x: Integer, y: ListTypeInfo<String>), p: Boolean)"
    )


def test_types_and_values_survive_the_way_there_and_back(spark_env, all_types):
    back = spark_env(1).from_dataframe(all_types).filter(lambda row: True).to_dataframe()
    assert back.schema == all_types.schema
    assert sorted(map(str, back.collect())) == sorted(map(str, all_types.collect()))


@pytest.mark.parametrize("execution", ["batch", "pipelined"])
def test_an_empty_dataframe_gives_nothing(spark_env, spark, execution):
    env = spark_env(2, EXECUTIONS[execution])
    schema = StructType.fromDDL("a int")
    without_partitions = spark.createDataFrame(spark.sparkContext.emptyRDD(), schema)
    assert records_of(env.from_dataframe(without_partitions)) == []
    assert records_of(env.from_dataframe(spark.range(10, numPartitions=3).where("id < 0"))) == []
    assert env.from_dataframe(without_partitions).to_dataframe().count() == 0


def test_without_columns_it_is_refused(spark_env, spark):
    with pytest.raises(InvalidProgramError, match="without columns"):
        spark_env().from_dataframe(spark.range(3).select())


def test_columns_of_one_name_are_refused_as_rows(spark_env, spark):
    frame = spark.sql("select 1 as a, 2 as a")
    with pytest.raises(InvalidProgramError, match="'a'"):
        spark_env().from_dataframe(frame)
    assert records_of(spark_env(1, BATCH).from_dataframe(frame, as_tuples=True)) == [(1, 2)]


def test_a_tuple_type_makes_tuples(spark_env, spark):
    type_info = Types.TUPLE([Types.LONG()])
    stream = spark_env(1, BATCH).from_dataframe(spark.range(2), type_info=type_info)
    assert stream.get_type() == type_info
    assert sorted(records_of(stream)) == [(0,), (1,)]


def test_what_is_no_dataframe_of_this_session_is_refused(spark_env, spark):
    env = spark_env()
    with pytest.raises(TypeError, match="pandas"):
        env.from_dataframe(spark.range(1).toPandas())
    with pytest.raises(TypeError, match=r"needs a Spark DataFrame, got builtins\.list"):
        env.from_dataframe([1, 2])
    with pytest.raises(InvalidProgramError, match="streaming query"):
        env.from_dataframe(spark.readStream.format("rate").load())


def test_a_dataframe_of_spark_connect_is_refused(spark_env):
    class Remote:
        __module__ = "pyspark.sql.connect.dataframe"

    with pytest.raises(InvalidProgramError, match="Spark Connect"):
        spark_env().from_dataframe(Remote())


def test_the_source_travels_without_the_dataframe(spark):
    source = pickle.loads(pickle.dumps(DataFrameSource(spark.range(3))))
    assert str(source.get_type()) == "RowTypeInfo(id: Long)"
    with pytest.raises(DataFrameError, match="process that created it"):
        source.dataframe(spark)


def test_in_this_process_alone_it_is_refused(in_process_env, spark):
    stream = in_process_env(1).from_dataframe(spark.range(3))
    with pytest.raises(JobExecutionError, match="runs on Spark"):
        records_of(stream)


@pytest.mark.parametrize("execution", ["batch", "pipelined"])
def test_a_dataframe_that_fails_in_spark_says_why(spark_env, spark, execution):
    frame = spark.range(10).selectExpr("assert_true(id < 5, concat('too large: ', id)) as a", "id")
    with pytest.raises(FiresteelError, match="too large: ") as raised:
        records_of(spark_env(1, EXECUTIONS[execution]).from_dataframe(frame))
    assert "\tat org.apache" not in str(raised.value)


@pytest.mark.parametrize("execution", ["batch", "pipelined"])
def test_a_dataframe_whose_shuffle_fails_says_why(spark_env, spark, execution):
    frame = spark.range(10).selectExpr("id", "raise_error('no ' || id) as a").groupBy("a").count()
    with pytest.raises(FiresteelError, match="no ") as raised:
        records_of(spark_env(1, EXECUTIONS[execution]).from_dataframe(frame))
    assert "\tat org.apache" not in str(raised.value)


def test_event_time_in_batch(spark_env, spark):
    frame = spark.range(0, 100, 1, 3).selectExpr("id * 1000 as at", "id % 2 as k")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(
        TimestampOfFirst()
    )
    stream = spark_env(2, BATCH).from_dataframe(frame, strategy, as_tuples=True).map(lambda row: (row[1], 1))
    windows = stream.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Duration.of_seconds(50)))
    assert sorted(records_of(windows.reduce(lambda a, b: (a[0], a[1] + b[1])))) == [(0, 25), (0, 25), (1, 25), (1, 25)]


class TimestampOfFirst:
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[0])


# -- Spark's readers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "execution"),
    [("parquet", "batch"), ("csv", "batch"), ("json", "batch"), ("orc", "batch"), ("parquet", "pipelined")],
)
def test_sparks_readers(spark_env, spark, tmp_path: Path, format, execution):
    spark.range(0, 20, 1, 2).selectExpr("id", "concat('n', id) as name").write.format(format).save(str(tmp_path / "f"))
    env = spark_env(2, EXECUTIONS[execution])
    stream = env.from_spark(format, str(tmp_path / "f"), "id long, name string")
    assert sorted(records_of(stream.map(lambda row: (row.id, row.name)))) == [(i, f"n{i}") for i in range(20)]


def test_options_go_to_the_reader_which_finds_the_schema(spark_env, tmp_path: Path):
    (tmp_path / "a.csv").write_text("id;name\n1;a\n2;b\n")
    stream = spark_env(1, BATCH).from_spark("csv", str(tmp_path), header=True, sep=";", inferSchema=True)
    assert sorted(records_of(stream), key=str) == [Row(id=1, name="a"), Row(id=2, name="b")]


def test_the_reader_is_asked_when_the_job_runs(spark_env, spark, tmp_path: Path):
    env = spark_env(1, BATCH)
    stream = env.from_spark("json", str(tmp_path / "later"), as_tuples=True)
    spark.range(2).write.json(str(tmp_path / "later"))
    assert sorted(records_of(stream)) == [(0,), (1,)]


@pytest.mark.parametrize("execution", ["batch", "pipelined"])
def test_what_the_reader_cannot_read(spark_env, tmp_path: Path, execution):
    stream = spark_env(1, EXECUTIONS[execution]).from_spark("parquet", str(tmp_path / "none"))
    with pytest.raises(FiresteelError, match="PATH_NOT_FOUND") as raised:
        records_of(stream)
    assert "Spark's reader for 'parquet'" in str(raised.value)


def test_a_schema_that_is_none(spark_env):
    with pytest.raises(InvalidProgramError, match="DDL"):
        spark_env().from_spark("json", "x", schema=5)


@pytest.mark.parametrize("execution", ["batch", "pipelined", "epochs"])
def test_parquet_reads_the_same_everywhere(spark_env, spark, all_types, tmp_path: Path, execution):
    all_types.write.parquet(str(tmp_path / "f"))
    stream = spark_env(2, EXECUTIONS[execution]).read_parquet(str(tmp_path / "f"))
    assert sorted(records_of(stream), key=str) == sorted([RECORD, NOTHING], key=str)


# -- results ----------------------------------------------------------------------------------------


@pytest.fixture
def pairs(spark_env) -> Any:
    env: StreamExecutionEnvironment = spark_env(2)
    return env.from_collection([(i % 3, i) for i in range(30)], Types.TUPLE([Types.INT(), Types.LONG()]))


def test_nothing_runs_before_an_action_and_results_join(spark_env, spark):
    frame = spark.range(0, 1000, 1, 5).groupBy((F.col("id") % 10).alias("k")).agg(F.sum("id").alias("total"))
    names = spark.createDataFrame([(0, "even"), (1, "odd")], "parity long, name string")
    before = jobs_so_far(spark)
    totals = (
        spark_env(2)
        .from_dataframe(frame)
        .map(lambda row: (row.k % 2, row.total))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .to_dataframe("parity long, total long")
    )
    joined = totals.join(names, "parity").select("name", "total")
    assert [str(field.dataType) for field in totals.schema] == ["LongType()", "LongType()"]
    assert jobs_so_far(spark) == before
    assert sorted(map(tuple, joined.collect())) == [("even", 249_500), ("odd", 250_000)]
    assert jobs_so_far(spark) > before


def test_each_action_gives_the_same(pairs):
    frame = pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).to_dataframe()
    expected = [(0, 135), (1, 145), (2, 155)]
    assert sorted(map(tuple, frame.collect())) == expected
    assert frame.count() == 3
    assert sorted(map(tuple, frame.coalesce(1).collect())) == expected
    assert sorted(map(tuple, frame.repartition(5).collect())) == expected
    assert sorted(map(tuple, frame.union(frame).distinct().collect())) == expected
    assert len(frame.limit(2).collect()) == 2
    assert frame.columns == ["f0", "f1"]


def test_the_program_goes_on_without_the_dataframe(spark_env):
    env = spark_env(1)
    stream = env.from_collection([1, 2, 3], Types.LONG())
    frame = stream.to_dataframe()
    assert sorted(records_of(stream.map(lambda value: value * 2))) == [2, 4, 6]
    assert sorted(value for (value,) in frame.collect()) == [1, 2, 3]


def test_sinks_are_no_part_of_it(spark_env, tmp_path: Path, capfd):
    env = spark_env(1)
    stream = env.from_collection([1, 2], Types.LONG())
    stream.print("never")
    assert stream.to_dataframe().count() == 2
    assert "never" not in capfd.readouterr().out


def test_more_rows_than_one_batch_has(spark_env):
    frame = spark_env(2).from_sequence(1, 100_000).to_dataframe()
    assert frame.agg(F.sum("f0"), F.count("*")).collect() == [(5_000_050_000, 100_000)]


def test_more_partitions_than_subtasks_into_any_exchange(spark_env, spark):
    env = spark_env(2, BATCH)
    stream = env.from_dataframe(spark.range(0, 100, 1, 5), as_tuples=True)
    assert sorted(records_of(stream.rebalance().map(lambda row: row[0]))) == list(range(100))
    assert len(records_of(stream.broadcast().map(lambda row: row[0]))) == 200
    assert sorted(records_of(stream.map(lambda row: row[0]).disable_chaining())) == list(range(100))


def test_both_sides_of_a_program(spark_env, spark):
    env = spark_env(2)
    left = env.from_dataframe(spark.range(5), as_tuples=True)
    right = env.from_sequence(3, 7).map(lambda value: (value,))
    frame = left.union(right).to_dataframe("id long")
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 3, 3, 4, 4, 5, 6, 7]


def test_a_stream_without_type_needs_a_schema(spark_env):
    stream = spark_env(1).from_collection([1]).map(lambda value: value)
    with pytest.raises(InvalidProgramError, match="no type"):
        stream.to_dataframe()
    assert stream.to_dataframe("n int").collect() == [(1,)]


@pytest.mark.parametrize("schema", ["this is wrong", 5, StructType()])
def test_a_schema_that_is_wrong(spark_env, schema):
    with pytest.raises(InvalidProgramError, match="to_dataframe"):
        spark_env(1).from_collection([1]).to_dataframe(schema)


def test_an_unbounded_source_is_refused_by_name(spark_env):
    from firesteel.connectors import DataGeneratorSource

    source = DataGeneratorSource(lambda index: index)
    stream = spark_env(1).from_source(source, WatermarkStrategy.no_watermarks(), "Endless", Types.LONG())
    with pytest.raises(InvalidProgramError, match="Endless"):
        stream.to_dataframe()


def test_a_record_that_does_not_fit_is_named_when_it_comes(spark_env):
    stream = spark_env(1).from_collection([1, 2, 3]).map(lambda value: (value, "x" if value != 2 else 7))
    frame = stream.to_dataframe("a long, b string")
    with pytest.raises(Exception, match=r"record \(2, 7\) does not fit column 'b'"):
        frame.collect()


def test_a_function_that_fails_says_so_at_the_end(pairs):
    frame = pairs.map(lambda pair: 1 // (pair[1] - 5), Types.LONG()).to_dataframe()
    with pytest.raises(Exception, match="ZeroDivisionError") as raised:
        frame.collect()
    account = str(raised.value).rpartition("DataFrameTaskError: ")[2]
    assert account.startswith("ZeroDivisionError")
    assert "operator: Map" in account
    assert "element:  (2, 5)" in account
    assert "firesteel-messages" not in str(raised.value)
