"""State that is read as a DataFrame and written back is what it was, and of the same class; or the write is refused."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from firesteel.api.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.common.typeinfo import Types
from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.checkpoint.storage import load
from firesteel.runtime.model.state_handles import StateMeta
from firesteel.savepoint.keyed_state import read_entries, slices
from firesteel.savepoint.metadata_contents import find_operator
from firesteel.spark.state_processor import SavepointReader, SavepointWriter
from firesteel.spark.state_processor.bootstrap import BootstrapError
from firesteel.spark.state_processor.columns import field_of, shape_of
from firesteel.spark.state_processor.shapes import infer
from firesteel.spark.state_processor.value_conversion import from_shape, to_column
from tests.support.checkpoints.savepoints import Keyed, Operator, Timers, write_savepoint
from tests.support.state.values import KEYS, VALUES, Color, Order, same

ANY = Types.PICKLED_BYTE_ARRAY()


@pytest.fixture(scope="module")
def spark(spark_context: Any) -> SparkSession:
    return SparkSession.builder.getOrCreate()


def entries(path: str, uid: str, table: str) -> dict[str, tuple[Any, Any]]:
    """Keys and values of a table, by the text of the key."""
    found = {}
    with StateFileReader() as files:
        for piece in slices(find_operator(load(path).operators, uid)):
            for entry in read_entries(piece, files, table):
                found[repr(entry.key)] = entry.key, entry.value
    return found


def test_every_value_comes_back_from_a_column_of_its_own(spark: SparkSession) -> None:
    values = [*VALUES, *KEYS]
    columns = [infer(value).without_nulls() for value in values]
    schema = t.StructType([field_of(f"c{index}", column) for index, column in enumerate(columns)])
    row = tuple(to_column(column)(value) for column, value in zip(columns, values, strict=True))
    frame = spark.createDataFrame(spark.sparkContext.parallelize([row], 1), schema, verifySchema=False)
    (found,) = frame.where("c0").select("*").rdd.collect()
    for index, value in enumerate(values):
        shape = shape_of(frame.where("c0").schema.fields[index])
        assert same(from_shape(shape)(found[index]), value), value


def operator_of(key: Any, values: list[Any]) -> Operator:
    return Operator(
        "op",
        f"op {type(key).__name__}",
        [
            Keyed(StateMeta("value", "value"), {key: values[0]}),
            Keyed(StateMeta("list", "list"), {key: values}),
            Keyed(StateMeta("map", "map"), {key: {key: values[0], "other": None}}),
            Timers("user-timers/event", [(10, key, None)]),
        ],
    )


def test_states_of_every_kind_come_back(spark: SparkSession, tmp_path: Path) -> None:
    operators = [
        operator_of(uuid.UUID(int=1), [(1, "a"), (2, "b")]),
        operator_of((1, None), [{1, 2}, "text"]),
        operator_of(Color.RED, [Order(1, ["x"])]),
    ]
    path = write_savepoint(tmp_path / "old", operators)
    reader = SavepointReader.read(spark, path)
    writer = SavepointWriter.from_existing(reader)
    uids = [operator.uid or "" for operator in operators]
    for uid in uids:
        writer.with_keyed_state(uid, ValueStateDescriptor("value", ANY), reader.read_keyed_state(uid, "value"))
        writer.with_keyed_state(uid, ListStateDescriptor("list", ANY), reader.read_keyed_state(uid, "list"))
        writer.with_keyed_state(uid, MapStateDescriptor("map", ANY, ANY), reader.read_keyed_state(uid, "map"))
        writer.with_timers(uid, reader.read_timers(uid))
    new = writer.write(str(tmp_path / "new"))
    for uid in uids:
        for table in ("value", "list", "map", "_timers/user-timers/event"):
            before, after = entries(path, uid, table), entries(new, uid, table)
            assert before.keys() == after.keys(), (uid, table)
            for text, (key, value) in before.items():
                assert same(after[text][0], key), (uid, table, key)
                if not table.startswith("_timers"):
                    assert same(after[text][1], value), (uid, table, value, after[text][1])


@pytest.fixture
def counts(spark: SparkSession, tmp_path: Path) -> SavepointReader:
    keys = {uuid.UUID(int=n): n * 10 for n in range(1, 4)}
    pairs = {key: (n, "x") for key, n in keys.items()}
    states = [Keyed(StateMeta("count", "value", "Long"), keys), Keyed(StateMeta("pair", "value"), pairs)]
    return SavepointReader.read(spark, write_savepoint(tmp_path / "old", [Operator("counts", "counts", states)]))


def test_a_changed_value_keeps_its_keys(counts: SavepointReader, tmp_path: Path) -> None:
    halved = counts.read_keyed_state("counts", "count").selectExpr("key", "value div 2 as value")
    writer = SavepointWriter.from_existing(counts)
    writer.with_keyed_state("counts", ValueStateDescriptor("count", Types.LONG()), halved)
    new = writer.write(str(tmp_path / "new"))
    assert dict(entries(new, "counts", "count").values()) == {uuid.UUID(int=n): n * 5 for n in range(1, 4)}


def test_keys_of_another_class_are_refused(counts: SavepointReader, tmp_path: Path) -> None:
    frame = counts.read_keyed_state("counts", "count").withColumn("key", f.upper("key"))
    writer = SavepointWriter.from_existing(counts)
    writer.with_keyed_state("counts", ValueStateDescriptor("count", Types.LONG()), frame)
    with pytest.raises(BootstrapError, match=r"of class str, but those in the savepoint are of class uuid\.UUID"):
        writer.write(str(tmp_path / "new"))
    writer.with_keyed_state(
        "counts", ValueStateDescriptor("count", Types.LONG()), frame, key=lambda row: uuid.UUID(row.key)
    )
    assert len(entries(writer.write(str(tmp_path / "newer")), "counts", "count")) == 3


def test_values_of_another_class_are_refused(counts: SavepointReader, tmp_path: Path) -> None:
    frame = counts.read_keyed_state("counts", "pair").selectExpr("key", "value._1 as value")
    writer = SavepointWriter.from_existing(counts)
    writer.with_keyed_state("counts", ValueStateDescriptor("pair", ANY), frame)
    with pytest.raises(BootstrapError, match="of class int, but those in the savepoint are of class tuple"):
        writer.write(str(tmp_path / "new"))


def test_a_column_that_was_converted_is_refused(counts: SavepointReader) -> None:
    frame = counts.read_keyed_state("counts", "count", value_type="double")
    assert {row.value for row in frame.collect()} == {10.0, 20.0, 30.0}
    with pytest.raises(BootstrapError, match="was converted when it was read"):
        SavepointWriter.from_existing(counts).with_keyed_state(
            "counts", ValueStateDescriptor("count", Types.LONG()), frame
        )
