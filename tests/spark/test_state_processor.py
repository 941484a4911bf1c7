"""State as DataFrames: what is read is what was written, and what is written is a savepoint a job can start from."""

from __future__ import annotations

import decimal
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from firesteel.api.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.common import Configuration
from firesteel.common.errors import CheckpointStorageError, FiresteelError, StateIncompatibleError
from firesteel.common.time import Time
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row
from firesteel.common.windows import TimeWindow
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.checkpoint.storage import load
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import key_group_of
from firesteel.runtime.model.state_handles import CANONICAL, ChannelStateHandle, InlineBytes, StateMeta
from firesteel.savepoint.inspection import verify
from firesteel.savepoint.keyed_state import read_entries, slices
from firesteel.savepoint.metadata_contents import find_operator, keyed_states
from firesteel.spark.state_processor import KeyedStateReaderFunction, SavepointReader, SavepointWriter
from firesteel.testing import collect, test_environment
from tests.support.checkpoints.savepoints import (
    Keyed,
    Operator,
    Timers,
    backend_operator,
    write_metadata,
    write_savepoint,
)

SUMS = {f"k{number}": number for number in range(200)}


@dataclass(frozen=True)
class Point:
    x: int
    y: float


OPERATORS = [
    Operator(
        "Sum",
        "sum",
        [
            Keyed(StateMeta("sum", "value", "Long"), SUMS),
            Keyed(StateMeta("seen", "list"), {"k1": [(1, 2.5), (2, 3.5)]}),
            Keyed(StateMeta("per day", "map", "MapTypeInfo<String, Integer>"), {"k1": {"mon": 1, "tue": 2}}),
            Keyed(StateMeta("fresh", "value", None, True), {"k1": ["a", 1000], "k2": ["b", 2000]}),
            Keyed(StateMeta("recent", "list", None, True), {"k1": [["x", 1], ["y", 2]]}),
            Keyed(StateMeta("odd", "value"), {"k1": {1, 2}, "k2": {3}}),
            Keyed(StateMeta("empty", "value"), {}),
            Timers("user-timers/event", [(10, "k1", None), (20, "k2", None)]),
            Timers("user-timers/processing", [(30, "k1", None)]),
        ],
    ),
    Operator(
        "Windows",
        "windows",
        [
            Keyed(
                StateMeta("window-contents", "reducing"),
                {("a", TimeWindow(0, 10)): 3, ("a", TimeWindow(10, 20)): 4, ("b", TimeWindow(0, 10)): 5},
                namespaces=True,
            ),
            Timers("window-timers/event", [(9, "a", TimeWindow(0, 10))]),
        ],
    ),
    Operator(
        "Points",
        None,
        [Keyed(StateMeta("point", "value"), {(1, "a"): Point(1, 2.0), (2, "b"): Point(3, 4.0)})],
        max_parallelism=16,
    ),
    Operator(
        "Source: orders",
        lists={
            "_splits": ("split", [["s0", "s1"], ["s2"]]),
            "offsets": ("union", [[1], [2]]),
            "rules": ("broadcast", [[("big", 100)], [("big", 100)]]),
        },
        coordinator=b"enumerator",
    ),
]


@pytest.fixture(scope="module")
def spark(spark_context: Any) -> SparkSession:
    return SparkSession.builder.getOrCreate()


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_savepoint(tmp_path_factory.mktemp("state") / "savepoint", OPERATORS)


@pytest.fixture(scope="module")
def reader(spark: SparkSession, savepoint: str) -> SavepointReader:
    return SavepointReader.read(spark, savepoint)


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def stored(path: str, uid: str, table: str) -> dict[Any, Any]:
    """What a backend would find: stored values by (key, namespace); every key must be in its key group."""
    operator = find_operator(load(path).operators, uid)
    found = {}
    with StateFileReader() as files:
        for piece in slices(operator):
            assert piece.handle.format == CANONICAL
            for entry in read_entries(piece, files, table):
                key = entry.key[1] if table.startswith("_timers/") else entry.key
                assert key_group_of(key, operator.max_parallelism) in piece.key_groups
                found[entry.key, entry.namespace] = entry.value
    return found


# ---- reading ----------------------------------------------------------------------------------------


def test_value_state(reader: SavepointReader) -> None:
    frame = reader.read_keyed_state("sum", "sum")
    assert frame.schema.simpleString() == "struct<key:string,value:bigint>"
    assert rows(frame) == sorted(SUMS.items())
    assert frame.rdd.getNumPartitions() == 2, "one per key-group range of each file"


def test_lists_and_maps(reader: SavepointReader) -> None:
    seen = reader.read_keyed_state("sum", "seen")
    assert seen.schema.simpleString() == "struct<key:string,value:array<struct<_1:bigint,_2:double>>>"
    assert [tuple(pair) for pair in seen.collect()[0].value] == [(1, 2.5), (2, 3.5)]
    per_day = reader.read_keyed_state("sum", "per day")
    assert per_day.schema.simpleString() == "struct<key:string,map_key:string,map_value:int>"
    assert rows(per_day) == [("k1", "mon", 1), ("k1", "tue", 2)]


def test_time_to_live(reader: SavepointReader) -> None:
    assert rows(reader.read_keyed_state("sum", "fresh")) == [("k1", "a", 1000), ("k2", "b", 2000)]
    recent = reader.read_keyed_state("sum", "recent")
    assert recent.columns == ["key", "value", "last_access"]
    assert rows(recent) == [("k1", ["x", "y"], [1, 2])]


def test_windows(reader: SavepointReader) -> None:
    windows = reader.read_keyed_state("windows", "window-contents")
    assert windows.columns == ["key", "window_start", "window_end", "value"]
    assert rows(windows) == [("a", 0, 10, 3), ("a", 10, 20, 4), ("b", 0, 10, 5)]


def test_dataclasses_and_tuples_are_structs(reader: SavepointReader) -> None:
    points = reader.read_keyed_state("Points", "point")
    key, value = points.schema["key"].dataType, points.schema["value"].dataType
    assert key.simpleString() == "struct<_1:bigint,_2:string>"
    assert value.simpleString() == "struct<x:bigint,y:double>"
    assert rows(points.selectExpr("key._2", "value.x", "value.y")) == [("a", 1, 2.0), ("b", 3, 4.0)]


def test_what_spark_has_no_like_of_is_pickled(reader: SavepointReader) -> None:
    odd = reader.read_keyed_state("sum", "odd")
    assert odd.schema.simpleString() == "struct<key:string,value:binary>"
    assert {row.key: pickle.loads(row.value) for row in odd.collect()} == {"k1": {1, 2}, "k2": {3}}


def test_types_can_be_given(reader: SavepointReader) -> None:
    given = reader.read_keyed_state("sum", "sum", key_type=Types.STRING(), value_type="decimal(10,2)")
    assert given.schema.simpleString() == "struct<key:string,value:decimal(10,2)>"
    assert given.where("key = 'k7'").collect()[0].value == decimal.Decimal(7)
    chosen = reader.read_keyed_state("sum", "sum", schema="value double")
    assert chosen.columns == ["value"]
    assert chosen.groupBy().sum().collect()[0][0] == float(sum(SUMS.values()))
    with pytest.raises(ValueError, match="window_start"):
        reader.read_keyed_state("sum", "sum", schema="window_start bigint")


def test_a_value_that_does_not_fit_is_named(reader: SavepointReader) -> None:
    frame = reader.read_keyed_state("sum", "fresh", value_type="bigint")
    with pytest.raises(Exception, match=r"State 'fresh', key 'k[12]'.*does not fit a column of type bigint"):
        frame.collect()


def test_empty_state(reader: SavepointReader) -> None:
    assert rows(reader.read_keyed_state("sum", "empty")) == []


def test_timers(reader: SavepointReader) -> None:
    timers = reader.read_timers("sum")
    assert timers.columns == ["key", "queue", "time_domain", "timestamp"]
    assert rows(timers) == [
        ("k1", "user-timers", "event", 10),
        ("k1", "user-timers", "processing", 30),
        ("k2", "user-timers", "event", 20),
    ]
    assert rows(reader.read_timers("windows")) == [("a", 0, 10, "window-timers", "event", 9)]


def test_operator_state(reader: SavepointReader) -> None:
    assert rows(reader.read_list_state("Source: orders", "_splits")) == [(0, "s0"), (0, "s1"), (1, "s2")]
    assert rows(reader.read_union_state("Source: orders", "offsets")) == [(0, 1), (1, 2)]
    assert rows(reader.read_broadcast_state("Source: orders", "rules")) == [("big", 100)]


def test_operators(reader: SavepointReader) -> None:
    found = {(row.uid, row.state): (row.kind, row.type, row.ttl, row.entries) for row in reader.operators().collect()}
    assert found["sum", "sum"] == ("value", "Long", False, 200)
    assert found["sum", "fresh"] == ("value", None, True, 2)
    assert found[None, "_splits"] == ("split", None, False, 3)


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (lambda reader: reader.read_keyed_state("nobody", "sum"), "nobody"),
        (lambda reader: reader.read_keyed_state("sum", "summ"), "summ"),
        (lambda reader: reader.read_list_state("Source: orders", "offsets"), "offsets"),
    ],
)
def test_unknown_names(reader: SavepointReader, read: Any, name: str) -> None:
    with pytest.raises(StateIncompatibleError) as raised:
        read(reader)
    assert name in str(raised.value)
    assert raised.value.hint


class SumAndTimers(KeyedStateReaderFunction):
    """Reads two states and the timers of each key together."""

    def open(self, runtime_context: Any) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))
        self._per_day = runtime_context.get_map_state(MapStateDescriptor("per day", Types.STRING(), Types.INT()))

    def read_key(self, key: Any, ctx: Any) -> Iterable[Any]:
        if key in ("k1", "k2", "k3"):
            timers = ctx.registered_event_time_timers() | ctx.registered_processing_time_timers()
            yield key, self._sum.value(), sum(self._per_day.values()), sorted(timers)


def test_reader_function(reader: SavepointReader) -> None:
    schema = "key string, sum bigint, days int, timers array<bigint>"
    frame = reader.read_keyed_state("sum", SumAndTimers(), schema=schema)
    assert rows(frame) == [("k1", 1, 3, [10, 30]), ("k2", 2, 0, [20]), ("k3", 3, 0, [])]
    with pytest.raises(ValueError, match="schema"):
        reader.read_keyed_state("sum", SumAndTimers())


# ---- writing ----------------------------------------------------------------------------------------


def test_a_copy_is_complete_and_self_contained(reader: SavepointReader, savepoint: str, tmp_path: Path) -> None:
    path = SavepointWriter.from_existing(reader).write(str(tmp_path / "copy"))
    metadata, original = load(path), load(savepoint)
    assert metadata.files()
    assert all(file.startswith(path) for file in metadata.files())
    assert {file.name for file in Path(path).iterdir()} == {"_metadata", *(Path(f).name for f in metadata.files())}
    with StateFileReader() as files:
        assert verify(metadata, files) == []
    assert metadata.kind is SnapshotKind.SAVEPOINT
    assert [(op.uid, op.name, op.size) for op in metadata.operators] == [
        (op.uid, op.name, op.size) for op in original.operators
    ]
    assert stored(path, "sum", "sum") == {(key, None): value for key, value in SUMS.items()}


def test_one_state_is_changed_and_the_others_stay(reader: SavepointReader, savepoint: str, tmp_path: Path) -> None:
    doubled = reader.read_keyed_state("sum", "sum").selectExpr("key", "value * 2 as value").where("value > 100")
    path = (
        SavepointWriter.from_existing(reader)
        .with_keyed_state("sum", ValueStateDescriptor("sum", Types.LONG()), doubled)
        .write(str(tmp_path / "changed"))
    )
    assert stored(path, "sum", "sum") == {(key, None): 2 * value for key, value in SUMS.items() if value > 50}
    for table in ("seen", "per day", "fresh", "recent", "odd", "_timers/user-timers/event"):
        assert stored(path, "sum", table).keys() == stored(savepoint, "sum", table).keys(), table
    assert stored(path, "sum", "per day") == {("k1", None): {"mon": 1, "tue": 2}}
    states = {state.name: state for state in keyed_states(load(path).operators[0])}
    assert (states["sum"].type, states["sum"].entries) == ("Long", 149)
    assert states["fresh"].ttl


def test_every_kind_of_state_can_be_written(spark: SparkSession, tmp_path: Path) -> None:
    lists = spark.createDataFrame([("a", [1, 2]), ("b", [3])], "key string, value array<bigint>")
    maps = spark.createDataFrame([("a", "x", 1), ("a", "y", 2)], "key string, map_key string, map_value int")
    ttl = spark.createDataFrame([("a", "v", 77)], "key string, value string, last_access bigint")
    windows = spark.createDataFrame([("a", 0, 10, 5)], "key string, window_start long, window_end long, value long")
    timers = spark.createDataFrame(
        [("a", 5, "event"), ("b", 6, "processing")], "key string, timestamp long, time_domain string"
    )
    rows_ = spark.createDataFrame(
        [("a", ("n", 1), (1, 2))], "key string, named struct<n:string,i:int>, pair struct<_1:int,_2:int>"
    )
    expiring = ValueStateDescriptor("expiring")
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    path = (
        SavepointWriter.new_savepoint(spark, 32)
        .with_operator("op", name="Operator", parallelism=3)
        .with_keyed_state("op", ListStateDescriptor("list"), lists)
        .with_keyed_state("op", MapStateDescriptor("map", Types.STRING(), Types.INT()), maps)
        .with_keyed_state("op", expiring, ttl)
        .with_keyed_state("op", ReducingStateDescriptor("window-contents", max), windows)
        .with_keyed_state("op", ValueStateDescriptor("named"), rows_, value="named")
        .with_keyed_state("op", ValueStateDescriptor("pair"), rows_, value="pair")
        .with_keyed_state("op", ValueStateDescriptor("computed"), rows_, value=lambda row: {row.key, "!"})
        .with_timers("op", timers)
        .write(str(tmp_path / "new"))
    )
    assert stored(path, "op", "list") == {("a", None): [1, 2], ("b", None): [3]}
    assert stored(path, "op", "map") == {("a", None): {"x": 1, "y": 2}}
    assert stored(path, "op", "expiring") == {("a", None): ["v", 77]}
    assert stored(path, "op", "window-contents") == {("a", TimeWindow(0, 10)): 5}
    assert stored(path, "op", "named") == {("a", None): Row(n="n", i=1)}
    assert stored(path, "op", "pair") == {("a", None): (1, 2)}
    assert stored(path, "op", "computed") == {("a", None): {"a", "!"}}
    assert set(stored(path, "op", "_timers/user-timers/event")) == {((5, "a", None), None)}
    assert set(stored(path, "op", "_timers/user-timers/processing")) == {((6, "b", None), None)}
    operator = load(path).operators[0]
    assert (operator.name, operator.uid, operator.parallelism, operator.max_parallelism) == ("Operator", "op", 3, 32)
    assert sorted(operator.subtasks) == [0, 1, 2]


def test_operator_state_can_be_written(spark: SparkSession, tmp_path: Path) -> None:
    values = spark.range(10).selectExpr("id as value")
    rules = spark.createDataFrame([("big", 1), ("small", 2)], "key string, value long")
    path = (
        SavepointWriter.new_savepoint(spark)
        .with_list_state("op", "buffer", values)
        .with_union_state("op", ListStateDescriptor("offsets"), values, value=lambda row: (row.value, "!"))
        .with_broadcast_state("op", MapStateDescriptor("rules"), rules)
        .write(str(tmp_path / "new"))
    )
    written = SavepointReader.read(spark, path)
    assert sorted(row.value for row in written.read_list_state("op", "buffer").collect()) == list(range(10))
    assert written.read_union_state("op", "offsets").count() == 10
    assert rows(written.read_broadcast_state("op", "rules")) == [("big", 1), ("small", 2)]
    subtasks = load(path).operators[0].subtasks
    assert all(len(subtask.operator) == 3 for subtask in subtasks.values())


def test_operators_are_renamed_and_removed(reader: SavepointReader, tmp_path: Path) -> None:
    writer = SavepointWriter.from_existing(reader)
    path = (
        writer.change_uid("Points", "points")
        .remove_operator("windows")
        .remove_state("sum", "per day")
        .remove_state("Source: orders", "offsets")
        .with_operator("points", max_parallelism=64)
        .write(str(tmp_path / "changed"))
    )
    operators = {operator.name: operator for operator in load(path).operators}
    assert set(operators) == {"Sum", "Points", "Source: orders"}
    assert operators["Points"].uid == "points"
    assert stored(path, "points", "point") == {((1, "a"), None): Point(1, 2.0), ((2, "b"), None): Point(3, 4.0)}
    assert operators["Points"].max_parallelism == 64
    assert "per day" not in {state.name for state in keyed_states(operators["Sum"])}
    assert stored(path, "sum", "sum").keys() == {(key, None) for key in SUMS}
    handles = operators["Source: orders"].subtasks[0].operator
    assert {handle.name for handle in handles} == {"_splits", "rules"}
    with pytest.raises(StateIncompatibleError):
        writer.change_uid("points", "sum")


def test_bad_rows_are_refused_and_nothing_is_left(spark: SparkSession, tmp_path: Path) -> None:
    def write(frame: DataFrame, descriptor: Any) -> None:
        SavepointWriter.new_savepoint(spark).with_keyed_state("op", descriptor, frame).write(str(tmp_path / "new"))

    value = ValueStateDescriptor("v")
    twice = spark.createDataFrame([("a", 1), ("a", 2)], "key string, value long")
    with pytest.raises(FiresteelError, match="two values for key 'a'"):
        write(twice, value)
    with pytest.raises(FiresteelError, match=r"the key of .* is null"):
        write(spark.createDataFrame([(None, 1)], "key string, value long"), value)
    with pytest.raises(FiresteelError, match="needs an array"):
        write(twice, ListStateDescriptor("v"))
    with pytest.raises(ValueError, match="map_key"):
        write(twice, MapStateDescriptor("v"))
    assert not (tmp_path / "new").exists()


def test_a_directory_with_something_in_it_is_refused(reader: SavepointReader, savepoint: str) -> None:
    with pytest.raises(CheckpointStorageError):
        SavepointWriter.from_existing(reader).write(savepoint)
    assert load(savepoint)


def test_records_in_flight_are_not_lost_silently(spark: SparkSession, tmp_path: Path) -> None:
    channel = ChannelStateHandle("a->b#0", 0, 0, False, InlineBytes(b"x"))
    path = write_savepoint(tmp_path / "chk-1", [], kind=SnapshotKind.CHECKPOINT, channels=(channel,))
    with pytest.raises(StateIncompatibleError) as raised:
        SavepointWriter.from_existing(path, spark)
    assert "savepoint" in str(raised.value.hint)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_in_a_backends_own_format_is_read_and_made_canonical(
    spark: SparkSession, backend: str, tmp_path: Path
) -> None:
    operator = backend_operator(backend, SnapshotKind.CHECKPOINT, tmp_path)
    reader = SavepointReader.read(spark, write_metadata(tmp_path / "chk", [operator], SnapshotKind.CHECKPOINT))
    assert rows(reader.read_keyed_state("native", "value")) == [(key, -key) for key in range(100)]
    assert rows(reader.read_timers("native")) == [(1, "user-timers", "event", 50)]
    path = SavepointWriter.from_existing(reader).write(str(tmp_path / "canonical"))
    assert stored(path, "native", "value") == {(key, None): -key for key in range(100)}
    assert stored(path, "native", "map") == {(1, None): {"a": 1, "b": 2}}
    assert set(stored(path, "native", "_timers/user-timers/event")) == {((50, 1, None), None)}


# ---- from a job and back to a job -------------------------------------------------------------------


class Sum(KeyedProcessFunction):
    """A running sum per key; a timer that repeats it."""

    def open(self, runtime_context: Any) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        total = (self._sum.value() or 0) + value[1]
        self._sum.update(total)
        yield value[0], total

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), "timer", timestamp, self._sum.value()


def build(env: StreamExecutionEnvironment) -> Any:
    return env.from_collection([("a", 1), ("b", 2), ("new", 3)]).key_by(lambda pair: pair[0]).process(Sum()).uid("sum")


@pytest.fixture(scope="module")
def bootstrapped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    totals = spark.createDataFrame([("a", 100), ("b", 200), ("idle", 300)], "key string, value long")
    timers = spark.createDataFrame([("idle", 50, "event")], "key string, timestamp long, time_domain string")
    return (
        SavepointWriter.new_savepoint(spark)
        .with_keyed_state("sum", ValueStateDescriptor("sum", Types.LONG()), totals)
        .with_timers("sum", timers)
        .write(str(tmp_path_factory.mktemp("bootstrap") / "savepoint"))
    )


EXPECTED = {("a", 101), ("b", 202), ("new", 3), ("idle", "timer", 50, 300)}


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_job_starts_from_a_written_savepoint(bootstrapped: str, backend: str, parallelism: int) -> None:
    settings = {"execution.state-recovery.path": bootstrapped, "state.backend.type": backend}
    env = test_environment(parallelism, Configuration.from_dict(settings))
    assert set(collect(build(env))) == EXPECTED


def test_a_job_on_spark_starts_from_a_written_savepoint(bootstrapped: str, spark_env: Any) -> None:
    env = spark_env(2, {"execution.state-recovery.path": bootstrapped})
    with build(env).execute_and_collect() as results:
        assert set(results) == EXPECTED


@pytest.mark.spark
def test_example() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.state_processor"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "the savepoint has 3 totals, 210.00 together",
        "ada     130.00",
        "linus     5.00",
        "ada     132.50",
        "grace    81.50",
    ]
