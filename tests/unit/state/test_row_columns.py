"""Rows as arrays that grow, members of groups, and slots of keys that are hashed."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.state.columnar import row_columns
from firesteel.runtime.state.columnar.groups import Groups
from firesteel.runtime.state.columnar.keys import BatchKeys, are_hashed
from firesteel.runtime.state.columnar.row_columns import RowColumns
from firesteel.runtime.state.columnar.slots import key_slots

VALUES: list[tuple[Any, list[Any]]] = [
    (pa.int8(), [1, -1, None]),
    (pa.int64(), [2**62, -(2**62), None]),
    (pa.float64(), [0.5, -0.0, float("nan"), None]),
    (pa.bool_(), [True, False, None]),
    (pa.string(), ["", "é", "x" * 9, "y" * 400, None]),
    (pa.binary(), [b"", b"\x00", None]),
    (pa.decimal128(20, 2), [Decimal("1.25"), Decimal("-1.25"), None]),
    (pa.date32(), [date(2024, 1, 1), None]),
    (pa.list_(pa.int32()), [[1, None], [], None]),
    (pa.struct([("a", pa.int32())]), [{"a": 1}, {"a": None}, None]),
]
SCHEMA = pa.schema([(str(index), type_) for index, (type_, _) in enumerate(VALUES)])


def _drawn(draw: random.Random, count: int) -> list[tuple[Any, ...]]:
    return [tuple(draw.choice(values) for _, values in VALUES) for _ in range(count)]


def _data(rows: list[tuple[Any, ...]]) -> Any:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, type_) for values, (type_, _) in zip(columns, VALUES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _rows(arrays: list[Any]) -> list[str]:
    return list(map(repr, zip(*(array.to_pylist() for array in arrays), strict=True)))


def test_rows_are_found_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_columns, "_MAX_COPIED", 7)
    draw = random.Random(1)
    columns, expected = RowColumns(SCHEMA), []
    for count in (1, 30, 5, 1500, 3, 2, 1):
        rows = _drawn(draw, count)
        assert columns.append(_data(rows)) == len(expected)
        expected += map(repr, rows)
    numbers = np.array([draw.randrange(len(expected)) for _ in range(50)])
    assert _rows(columns.take(numbers)) == [expected[number] for number in numbers.tolist()]
    is_null = np.arange(50) % 3 == 0
    nothing = repr((None,) * len(VALUES))
    found = [nothing if null else expected[number] for number, null in zip(numbers.tolist(), is_null, strict=True)]
    assert _rows(columns.take(numbers, None, is_null)) == found
    columns.keep(numbers)
    assert columns.count == 50
    assert _rows(columns.take(np.arange(50))) == [expected[number] for number in numbers.tolist()]


@pytest.mark.parametrize("column", range(len(VALUES)))
def test_equal_values_have_equal_hashes_in_any_batch(column: int) -> None:
    type_, values = VALUES[column]
    rows = RowColumns(pa.schema([("c", type_)]))
    array = pa.array(values, type_)
    rows.append(pa.RecordBatch.from_arrays([array], ["c"]))
    hashes = rows.hash([array], [0])
    assert len(set(hashes.tolist())) == len(values)
    for index in range(len(values)):
        assert rows.hash([array.slice(index, 1)], [0])[0] == hashes[index]
        same = rows.equal(np.arange(len(values)), [array], np.full(len(values), index), [0])
        assert same.tolist() == [other == index for other in range(len(values))]


def test_groups_keep_their_members_while_others_come_and_go() -> None:
    draw = random.Random(2)
    groups, expected, live = Groups(), {}, np.zeros(20_000, bool)  # type: ignore[var-annotated]
    number = 0
    for _ in range(60):
        touched = [draw.randrange(100) for _ in range(draw.choice((1, 200)))]
        members = np.arange(number, number + len(touched))
        number += len(touched)
        live[members] = True
        groups.add(np.array(touched), members)
        for group, member in zip(touched, members.tolist(), strict=True):
            expected.setdefault(group, []).append(member)
        chosen = sorted({draw.randrange(100) for _ in range(20)})
        for group in chosen:
            gone = {member for member in expected.get(group, []) if draw.random() < 0.6}
            live[list(gone)] = False
            expected[group] = [member for member in expected.get(group, []) if member not in gone]
        groups.retain(np.array(chosen), live)
        groups.release(np.array([group for group in chosen if not expected[group]], np.int64))
        positions, found = groups.members(np.arange(100))
        pairs = list(zip(positions.tolist(), found.tolist(), strict=True))
        assert pairs == [(group, member) for group in range(100) for member in expected.get(group, [])]


def test_keys_of_several_columns_have_slots_until_they_are_removed() -> None:
    chosen = [1, 3, 4, 6, 7]
    types = [VALUES[column][0] for column in chosen]
    assert are_hashed(types)
    draw = random.Random(3)
    slots, expected = key_slots(types), {}  # type: ignore[var-annotated]
    for _ in range(40):
        batch = ColumnBatch(_data(_drawn(draw, 200)))
        keys = BatchKeys(batch, chosen)
        found = slots.find(keys)
        assert found.tolist() == [expected.get(key, -1) for key in keys.values]
        new = np.flatnonzero(found < 0)
        taken = slots.take(len(new))
        slots.insert(keys, new, taken)
        expected |= {keys.values[code]: slot for code, slot in zip(new.tolist(), taken.tolist(), strict=True)}
        gone = draw.sample(sorted(expected, key=repr), 60)
        assert slots.keys_at(slots.slots_of(gone)) == gone
        slots.remove(slots.slots_of(gone))
        for key in gone:
            del expected[key]
        assert slots.count == len(expected)
