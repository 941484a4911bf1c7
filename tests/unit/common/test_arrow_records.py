"""Records of Arrow batches: what each type becomes, and that slices and nulls do not matter."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Instant
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row
from firesteel.types.arrow_decoding import ArrowRecords, record_type

MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001 - no zone is meant
DAY = dt.datetime(1969, 1, 1)  # noqa: DTZ001 - no zone is meant
BEFORE_1970 = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 - no zone is meant

COLUMNS = [
    (pa.int8(), Types.BYTE(), [1, -128]),
    (pa.int16(), Types.SHORT(), [1, -1]),
    (pa.int32(), Types.INT(), [1, 2**31 - 1]),
    (pa.int64(), Types.LONG(), [1, 2**63 - 1]),
    (pa.uint64(), Types.BIG_INT(), [1, 2**64 - 1]),
    (pa.float32(), Types.FLOAT(), [1.5, -0.25]),
    (pa.float64(), Types.DOUBLE(), [1.5, 1e300]),
    (pa.bool_(), Types.BOOLEAN(), [True, False]),
    (pa.string(), Types.STRING(), ["a", ""]),
    (pa.large_string(), Types.STRING(), ["ä", "b"]),
    (pa.binary(), Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"\x00\xff", b""]),
    (pa.decimal128(10, 2), Types.BIG_DEC(), [Decimal("1.10"), Decimal("-2.00")]),
    (pa.date32(), Types.SQL_DATE(), [dt.date(2020, 2, 29), dt.date(1, 1, 1)]),
    (pa.timestamp("us"), Types.SQL_TIMESTAMP(), [MOMENT, BEFORE_1970]),
    (pa.timestamp("ms"), Types.SQL_TIMESTAMP(), [MOMENT.replace(microsecond=0), DAY]),
    (pa.time64("us"), Types.SQL_TIME(), [dt.time(1, 2, 3, 4), dt.time(0)]),
    (pa.duration("us"), Types.PICKLED_BYTE_ARRAY(), [dt.timedelta(days=1), dt.timedelta(microseconds=-1)]),
    (pa.list_(pa.int64()), Types.LIST(Types.LONG()), [[1, None], []]),
    (pa.list_(pa.list_(pa.string())), Types.LIST(Types.LIST(Types.STRING())), [[["a"], None], [[]]]),
    (pa.dictionary(pa.int8(), pa.string()), Types.STRING(), ["a", "b"]),
]


def batch_of(type_: pa.DataType, values: list[object]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, type_)], ["c"])


@pytest.mark.parametrize(("type_", "type_info", "values"), COLUMNS, ids=[str(column[0]) for column in COLUMNS])
def test_values_come_back_with_and_without_nulls_and_from_slices(type_, type_info, values):
    batch = batch_of(type_, [*values, None, *values])
    records = ArrowRecords(batch.schema, as_tuples=True)
    expected = [(value,) for value in [*values, None, *values]]
    assert records.decode(batch) == expected
    assert records.decode(batch.slice(1, 3)) == expected[1:4]
    assert records.decode(batch.slice(3)) == expected[3:]
    assert records.decode(batch.slice(0, 0)) == []
    assert [type(value) for (value,) in records.decode(batch)] == [type(value) for (value,) in expected]
    assert record_type(batch.schema) == Types.ROW_NAMED(["c"], [type_info])


def test_a_timestamp_with_a_zone_is_an_instant():
    moments = [MOMENT, None, BEFORE_1970]
    for unit in ("us", "ns"):
        batch = batch_of(pa.timestamp(unit, "Europe/Rome"), moments)
        decoded = ArrowRecords(batch.schema, as_tuples=True).decode(batch)
        assert decoded == [(Instant(1577934245, 6000),), (None,), (Instant(-1, 999_999_000),)]
    assert record_type(batch.schema) == Types.ROW_NAMED(["c"], [Types.INSTANT()])


def test_maps_are_dicts_and_structs_are_rows():
    struct = pa.struct([("x", pa.int64()), ("tags", pa.map_(pa.string(), pa.int64()))])
    batch = pa.record_batch(
        [pa.array([{"x": 1, "tags": [("a", 1), ("b", None)]}, None, {"x": None, "tags": None}], struct)], ["s"]
    )
    expected = [
        Row(s=Row(x=1, tags={"a": 1, "b": None})),
        Row(s=None),
        Row(s=Row(x=None, tags=None)),
    ]
    records = ArrowRecords(batch.schema)
    assert records.decode(batch) == expected
    assert records.decode(batch.slice(1)) == expected[1:]
    inner = Types.ROW_NAMED(["x", "tags"], [Types.LONG(), Types.MAP(Types.STRING(), Types.LONG())])
    assert record_type(batch.schema) == Types.ROW_NAMED(["s"], [inner])


def test_slices_of_maps_have_their_own_entries():
    batch = batch_of(pa.map_(pa.string(), pa.int64()), [[("a", 1)], None, [], [("b", 2), ("c", 3)]])
    records = ArrowRecords(batch.schema, as_tuples=True)
    assert records.decode(batch) == [({"a": 1},), (None,), ({},), ({"b": 2, "c": 3},)]
    assert records.decode(batch.slice(2)) == [({},), ({"b": 2, "c": 3},)]


def test_rows_have_the_columns_names_and_can_be_sent():
    batch = pa.record_batch({"id": [1, 2], "name": ["a", "b"]})
    rows = ArrowRecords(batch.schema).decode(batch)
    assert rows == [Row(id=1, name="a"), Row(id=2, name="b")]
    assert pickle.loads(pickle.dumps(rows)) == rows
    rows[0]["id"] = 7
    assert rows[0].id == 7


def test_a_null_column_is_none():
    batch = pa.record_batch([pa.nulls(2)], ["c"])
    assert ArrowRecords(batch.schema, as_tuples=True).decode(batch) == [(None,), (None,)]


def test_columns_of_one_name_can_only_be_tuples():
    batch = pa.record_batch([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(InvalidProgramError, match="'a'"):
        ArrowRecords(batch.schema)
    with pytest.raises(InvalidProgramError, match="'a'"):
        record_type(batch.schema)
    assert ArrowRecords(batch.schema, as_tuples=True).decode(batch) == [(1, 2)]


@pytest.mark.parametrize("as_tuples", [False, True])
def test_no_columns_are_refused(as_tuples):
    with pytest.raises(InvalidProgramError, match="without columns"):
        ArrowRecords(pa.schema([]), as_tuples)
