"""Records as Arrow batches of a DataFrame: what fits, what does not, and how that is said. Needs no JVM."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Instant
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row
from firesteel.spark.dataframes.encoding import ArrowEncoder, RecordMismatchError
from firesteel.spark.dataframes.schemas import schema_of

TWO = pa.schema([("id", pa.int64()), ("name", pa.string())])


class Named(NamedTuple):
    name: str
    id: int


@dataclass(frozen=True)
class Point:
    id: int
    name: str


def encoded(schema: pa.Schema, records: list[Any]) -> list[tuple[Any, ...]]:
    batch = pa.ipc.read_record_batch(pa.py_buffer(ArrowEncoder(schema).encode(records)), schema)
    return [tuple(row.values()) for row in batch.to_pylist()]


def encoded_values(type_: pa.DataType, values: list[Any]) -> list[Any]:
    return [value for (value,) in encoded(pa.schema([("c", type_)]), values)]


@pytest.mark.parametrize(
    "record",
    [
        (1, "a"),
        [1, "a"],
        Row(1, "a"),
        Row(id=1, name="a"),
        Row(name="a", id=1),
        {"name": "a", "id": 1},
        Named("a", 1),
        Point(1, "a"),
    ],
    ids=str,
)
def test_fields_go_by_name_where_there_are_names(record):
    assert encoded(TWO, [record]) == [(1, "a")]
    assert encoded(TWO, [record, (2, None)]) == [(1, "a"), (2, None)]


def test_records_of_different_kinds_in_one_batch():
    assert encoded(TWO, [(1, "a"), Row(name="b", id=2), {"id": 3, "name": "c"}]) == [(1, "a"), (2, "b"), (3, "c")]


def test_values_of_a_single_column_need_no_fields():
    assert encoded_values(pa.int64(), [1, None, 2]) == [1, None, 2]
    assert encoded_values(pa.string(), ["ab", "c"]) == ["ab", "c"]


MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001 - no zone is meant
UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int8(), [1, -128]),
        (pa.float64(), [1.5, float("inf")]),
        (pa.bool_(), [True, False]),
        (pa.binary(), [b"\x00", b""]),
        (pa.date32(), [dt.date(2020, 2, 29)]),
        (pa.decimal128(10, 2), [Decimal("1.10"), Decimal("-3.00")]),
        (pa.timestamp("us"), [MOMENT]),
        (pa.time64("ns"), [dt.time(1, 2, 3)]),
        (pa.duration("us"), [dt.timedelta(seconds=5)]),
        (pa.list_(pa.int64()), [[1, None], []]),
    ],
    ids=str,
)
def test_values_come_back(type_, values):
    assert encoded(pa.schema([("c", type_)]), [(value,) for value in [*values, None]]) == [
        (value,) for value in [*values, None]
    ]


def test_points_in_time():
    zone = dt.timezone(dt.timedelta(hours=2))
    values = [Instant(1577934245, 6000), MOMENT.replace(tzinfo=zone), Instant(-1, 999_999_000)]
    utc = dt.timezone.utc
    expected = [
        MOMENT.replace(tzinfo=utc),
        MOMENT.replace(tzinfo=zone),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=utc),
    ]
    assert encoded_values(UTC, values) == expected
    with pytest.raises(RecordMismatchError, match="more exact than the column, which keeps 1,000,000 parts"):
        encoded_values(UTC, [Instant(1577934245, 6999)])


def test_numbers_of_32_bits():
    values = [0.5, -0.0, math.inf, None, 1e-40, 3]
    assert encoded_values(pa.float32(), values) == [0.5, -0.0, math.inf, None, pytest.approx(1e-40, rel=1e-4), 3.0]
    for value in (1e39, -1e300, 1e-60):
        with pytest.raises(RecordMismatchError, match="does not fit into 32 bits"):
            encoded_values(pa.float32(), [0.5, value])
        with pytest.raises(RecordMismatchError, match="does not fit into 32 bits"):
            encoded_values(pa.list_(pa.float32()), [([0.5, value],)])


def test_nested_values():
    struct = pa.struct([("at", UTC), ("tags", pa.map_(pa.string(), pa.list_(pa.int64())))])
    values = [(Row(at=Instant(0, 0), tags={"a": [1]}),), ({"tags": None, "at": None},), ((Instant(1, 0), {}),), (None,)]
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    assert encoded(pa.schema([("s", struct)]), values) == [
        ({"at": epoch, "tags": [("a", [1])]},),
        ({"at": None, "tags": None},),
        ({"at": epoch + dt.timedelta(seconds=1), "tags": []},),
        (None,),
    ]


def test_numbers_of_numpy():
    assert encoded_values(pa.int64(), [np.int32(3), 4]) == [3, 4]
    assert encoded_values(pa.float64(), [np.float32(0.5), 1]) == [0.5, 1.0]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.int64(), 1.5),
        (pa.int64(), 2.0),
        (pa.int64(), True),
        (pa.int64(), "1"),
        (pa.int64(), 2**63),
        (pa.int8(), 128),
        (pa.float64(), "1"),
        (pa.bool_(), 1),
        (pa.string(), 1),
        (pa.string(), b"a"),
        (pa.binary(), "a"),
        (pa.date32(), MOMENT),
        (pa.date32(), 5),
        (pa.date32(), "2020-01-01"),
        (pa.decimal128(4, 2), Decimal("1.234")),
        (pa.decimal128(4, 2), Decimal(100)),
        (pa.decimal128(4, 2), 1.5),
        (pa.timestamp("us"), MOMENT.replace(tzinfo=dt.timezone.utc)),
        (pa.timestamp("us"), Instant(0, 0)),
        (UTC, MOMENT),
        (UTC, 5),
        (pa.list_(pa.int64()), "ab"),
        (pa.list_(pa.int64()), [1, "a"]),
        (pa.list_(pa.int64()), 5),
        (pa.map_(pa.string(), pa.int64()), [("a", 1)]),
        (pa.map_(pa.string(), pa.int64()), {1: 1}),
        (pa.struct([("x", pa.int64())]), {"y": 1}),
        (pa.struct([("x", pa.int64())]), (1, 2)),
        (pa.struct([("x", pa.int64())]), 1),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_named_with_its_record_and_column(type_, value):
    schema = pa.schema([("id", pa.int64()), ("c", type_)])
    with pytest.raises(RecordMismatchError, match="column 'c'") as raised:
        encoded(schema, [(7, None), (8, value), (9, None)])
    assert raised.value.column == "c"
    assert raised.value.record == repr((8, value))


def test_null_where_the_schema_has_none():
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    with pytest.raises(RecordMismatchError, match="NOT NULL") as raised:
        encoded(schema, [(1,), (None,)])
    assert (raised.value.record, raised.value.column) == ("(None,)", "id")


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ((1,), "1 fields"),
        ((1, "a", 2), "3 fields"),
        (Row(id=1, wrong="a"), "no 'name', there is no column 'wrong'"),
        ({"id": 1}, "no 'name'"),
        (5, "no fields"),
        ("ab", "no fields"),
        (None, "no fields"),
    ],
    ids=str,
)
def test_a_record_of_other_fields(record, problem):
    with pytest.raises(RecordMismatchError, match=problem) as raised:
        encoded(TWO, [(1, "a"), record])
    assert raised.value.record == repr(record)
    assert raised.value.column is None


def test_a_long_record_is_shown_in_part():
    with pytest.raises(RecordMismatchError) as raised:
        encoded(TWO, [(1, 5 * ["x" * 1000])])
    assert len(raised.value.record) < 300


# -- schemas ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_info", "expected"),
    [
        (Types.LONG(), "struct<f0:bigint>"),
        (Types.TUPLE([Types.STRING(), Types.FLOAT()]), "struct<f0:string,f1:float>"),
        (Types.ROW([Types.BYTE(), Types.SHORT()]), "struct<f0:tinyint,f1:smallint>"),
        (
            Types.ROW_NAMED(
                ["a", "b", "c"],
                [
                    Types.MAP(Types.STRING(), Types.LIST(Types.INT())),
                    Types.INSTANT(),
                    Types.PRIMITIVE_ARRAY(Types.BYTE()),
                ],
            ),
            "struct<a:map<string,array<int>>,b:timestamp,c:binary>",
        ),
        (
            Types.TUPLE([Types.ROW_NAMED(["x"], [Types.SQL_DATE()]), Types.SQL_TIMESTAMP(), Types.BIG_DEC()]),
            "struct<f0:struct<x:date>,f1:timestamp_ntz,f2:decimal(38,18)>",
        ),
        (Types.OBJECT_ARRAY(Types.DOUBLE()), "struct<f0:array<double>>"),
    ],
    ids=str,
)
def test_the_columns_of_a_type(type_info, expected):
    assert schema_of(type_info).simpleString() == expected


@pytest.mark.parametrize("type_info", [None, Types.PICKLED_BYTE_ARRAY()])
def test_a_type_that_says_nothing_is_refused(type_info):
    with pytest.raises(InvalidProgramError, match="cannot be determined") as raised:
        schema_of(type_info)
    assert "output_type" in raised.value.hint


def test_an_unknown_part_of_a_type_is_named():
    with pytest.raises(InvalidProgramError, match=r"'f1\.inner\[\]'"):
        schema_of(Types.TUPLE([Types.INT(), Types.ROW_NAMED(["inner"], [Types.LIST(Types.PICKLED_BYTE_ARRAY())])]))
