"""Running sums, minima and maxima of one field."""

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import pytest

from firesteel.common.types import Row
from firesteel.datastream.streams.field_aggregation import AccumulateType, FieldAggregation

SUM, MIN, MAX, MIN_BY, MAX_BY = (AccumulateType[n] for n in ("SUM", "MIN", "MAX", "MIN_BY", "MAX_BY"))


class Point(NamedTuple):
    name: str
    x: int


@dataclass
class Order:
    name: str
    amount: int


class Plain:
    def __init__(self, amount):
        self.amount = amount


def aggregate(kind, position, *records):
    return reduce(FieldAggregation(position, kind).reduce, records)


RECORDS = [("a", 3), ("b", 1), ("c", 1), ("d", 5), ("e", 5)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(SUM, ("a", 15)), (MIN, ("a", 1)), (MAX, ("a", 5)), (MIN_BY, ("b", 1)), (MAX_BY, ("d", 5))],
)
def test_all_kinds_of_records(kind, expected):
    assert aggregate(kind, 1, *RECORDS) == expected
    assert aggregate(kind, 1, *map(list, RECORDS)) == list(expected)
    assert aggregate(kind, 1, *(Row(*r) for r in RECORDS)) == Row(*expected)
    assert aggregate(kind, "x", *(Row(name=n, x=x) for n, x in RECORDS)) == Row(name=expected[0], x=expected[1])
    assert aggregate(kind, "x", *(Point(*r) for r in RECORDS)) == Point(*expected)
    assert aggregate(kind, 1, *(Point(*r) for r in RECORDS)) == Point(*expected)
    assert aggregate(kind, "amount", *(Order(*r) for r in RECORDS)) == Order(*expected)
    assert aggregate(kind, 1, *(Order(*r) for r in RECORDS)) == Order(*expected)
    assert aggregate(kind, "x", *({"name": n, "x": x} for n, x in RECORDS)) == {"name": expected[0], "x": expected[1]}
    assert aggregate(kind, "amount", *(Plain(x) for _, x in RECORDS)).amount == expected[1]


@pytest.mark.parametrize(("kind", "expected"), [(SUM, 9), (MIN, 1), (MAX, 5), (MIN_BY, 1), (MAX_BY, 5)])
def test_plain_numbers_are_their_own_field(kind, expected):
    assert aggregate(kind, 0, 3, 1, 5) == expected


@pytest.mark.parametrize("record", [[1, 2], Row(1, 2), {0: 1, 1: 2}])
def test_records_are_not_changed_in_place(record):
    before = repr(record)
    aggregate(SUM, 1, record, record)
    assert repr(record) == before


def test_rows_keep_their_names():
    assert aggregate(SUM, "x", Row(name="a", x=1), Row(name="b", x=2)).get_field_names() == ["name", "x"]


@pytest.mark.parametrize("position", [1, "amount"])
def test_a_record_without_fields_has_only_position_0(position):
    with pytest.raises(TypeError, match="only position 0"):
        aggregate(SUM, position, 3, 4)
