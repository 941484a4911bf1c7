"""Key groups of columns: those of the same keys in a stream of records."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.exchange import KeyExchange, own_rows
from firesteel.runtime.columns.keys import ColumnKeySelector, KeyGroups, distinct_keys, state_key
from firesteel.runtime.model.key_groups import KeyGroupRange, key_group_of, subtask_of
from firesteel.types.arrow_decoding import ArrowRecords
from tests.support.columns import bids, rows_of

MAX_PARALLELISM = 128


def _column(array: Any) -> ColumnBatch:
    return ColumnBatch(pa.record_batch({"key": array}))


def _integers(draw: random.Random) -> Any:
    kind = draw.choice([pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()])
    bits = kind.bit_width - (0 if "u" in str(kind) else 1)
    low = 0 if "u" in str(kind) else -(1 << bits)
    return pa.array([draw.choice([low, 0, (1 << bits) - 1, draw.randrange(low, 1 << bits)]) for _ in range(50)], kind)


COLUMNS: dict[str, Callable[[random.Random], Any]] = {
    "integers": _integers,
    "bools": lambda draw: pa.array([draw.random() < 0.5 for _ in range(20)]),
    "floats": lambda draw: pa.array([draw.choice([1.0, 0.5, -0.0, float(draw.randrange(9))]) for _ in range(50)]),
    "texts": lambda draw: pa.array([f"{draw.randrange(30)}ä" for _ in range(50)]),
    "bytes": lambda draw: pa.array([bytes([draw.randrange(30)]) for _ in range(50)]),
    "decimals": lambda draw: pa.array([Decimal(draw.randrange(3000)) / 100 for _ in range(50)], pa.decimal128(9, 2)),
    "dates": lambda draw: pa.array([date(2026, 1, draw.randrange(1, 28)) for _ in range(50)]),
    "datetimes": lambda draw: pa.array([draw.randrange(24) for _ in range(50)], pa.timestamp("us")),
    "dictionary": lambda draw: pa.array([f"{draw.randrange(30)}" for _ in range(50)]).dictionary_encode(),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_keys_have_the_groups_of_records(name: str) -> None:
    draw = random.Random(random.getrandbits(32))
    for _ in range(5):
        batch = _column(COLUMNS[name](draw))
        keys = [key for (key,) in ArrowRecords(batch.data.schema, as_tuples=True).decode(batch.data)]
        expected = [key_group_of(state_key(key), MAX_PARALLELISM) for key in keys]
        groups = KeyGroups((0,), MAX_PARALLELISM)
        assert groups.of(batch).tolist() == expected
        assert groups.of(batch).tolist() == expected  # of keys that are known


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_columns_of_integers_have_the_groups_of_tuples(columns: int) -> None:
    draw = random.Random(random.getrandbits(32))
    numbers = [[draw.choice([0, -1, draw.getrandbits(62)]) for _ in range(100)] for _ in range(columns)]
    batch = ColumnBatch(pa.record_batch({str(index): column for index, column in enumerate(numbers)}))
    expected = [key_group_of(key, MAX_PARALLELISM) for key in zip(*numbers, strict=True)]
    assert KeyGroups(range(columns), MAX_PARALLELISM).of(batch).tolist() == expected


def test_several_columns_are_a_tuple_and_null_is_a_key() -> None:
    batch = bids(500, keys=20)
    records = ArrowRecords(batch.data.schema, as_tuples=True).decode(batch.data)
    expected = [key_group_of((row[0], row[2]), MAX_PARALLELISM) for row in records]
    assert KeyGroups((0, 2), MAX_PARALLELISM).of(batch).tolist() == expected
    assert None in [row[2] for row in records]
    nulls = KeyGroups((0,), MAX_PARALLELISM).of(_column(pa.array([None, 1, None, float("nan"), float("nan")])))
    assert nulls[0] == nulls[2] == key_group_of((None,), MAX_PARALLELISM)
    assert nulls[3] == nulls[4]


def test_distinct_keys_say_which_row_has_which() -> None:
    batch = bids(300, keys=7)
    for columns in ((0,), (2,), (0, 1, 2)):
        codes, keys = distinct_keys(batch, columns)
        rows = [tuple(row[batch.data.schema.names[c]] for c in columns) for row in rows_of(batch)]
        given = [keys[code] for code in codes.tolist()]
        assert [key if len(columns) > 1 else (key,) for key in given] == rows
        assert len(set(keys)) == len(keys)


def test_instants_are_keys_in_columns_only() -> None:
    """Records with such keys are refused, and map states have stored them in another form."""
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    batch = _column(pa.array([moment], pa.timestamp("us", "UTC")))
    key = ArrowRecords(batch.data.schema, as_tuples=True).decode(batch.data)[0][0]
    expected = key_group_of((key.seconds, key.nanos), MAX_PARALLELISM)
    assert KeyGroups((0,), MAX_PARALLELISM).of(batch).tolist() == [expected]


def test_equal_arrays_are_one_key() -> None:
    batch = _column(pa.array([[1, 2], [2], [1, 2], None, [], None]))
    codes, keys = distinct_keys(batch, (0,))
    assert codes.tolist() == [0, 1, 0, 2, 3, 2]
    assert len(set(map(state_key, keys))) == 4
    groups = KeyGroups((0,), MAX_PARALLELISM).of(batch).tolist()
    assert groups[0] == groups[2]
    assert groups[3] == groups[5]


@pytest.mark.parametrize("channels", [1, 2, 3, 100])
def test_rows_go_to_the_subtask_of_their_key_in_order(channels: int) -> None:
    batch = bids(2000)
    parts = dict(KeyExchange(ColumnKeySelector((0,)), MAX_PARALLELISM, channels).split(batch))
    expected: dict[int, list[Any]] = {}
    for row in rows_of(batch):
        group = key_group_of(row["auction"], MAX_PARALLELISM)
        expected.setdefault(subtask_of(group, MAX_PARALLELISM, channels), []).append(row)
    assert {channel: rows_of(part) for channel, part in parts.items()} == expected


def test_every_row_belongs_to_one_range_of_key_groups() -> None:
    batch = bids(500)
    for parallelism in (1, 3):
        ranges = [KeyGroupRange.of(index, MAX_PARALLELISM, parallelism) for index in range(parallelism)]
        found = [own_rows(batch, ColumnKeySelector((0,)), MAX_PARALLELISM, own) for own in ranges]
        expected = dict(KeyExchange(ColumnKeySelector((0,)), MAX_PARALLELISM, parallelism).split(batch))
        assert [rows_of(part) for part in found] == [rows_of(expected[index]) for index in range(parallelism)]
