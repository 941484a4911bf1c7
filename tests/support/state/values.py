"""Values that state can hold, for the tests of the State Processor."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from firesteel.common import Row
from firesteel.common.time import Instant

__all__ = ["KEYS", "VALUES", "Color", "Order", "Pair", "same"]


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class Level(enum.IntEnum):
    LOW = 1


class Pair(NamedTuple):
    left: int
    right: str | None


@dataclass
class Order:
    id: int
    lines: list[str]


@dataclass(frozen=True)
class Place:
    city: str
    order: Order | None = None


class Text(str):
    pass


UTC = datetime.timezone.utc
BERLIN = ZoneInfo("Europe/Berlin")

VALUES: tuple[Any, ...] = (
    True,
    0,
    -(2**63),
    2**63,
    -(2**70),
    10**37,
    10**45,
    0.5,
    float("inf"),
    "",
    "grün \u0000 日本",
    "lone \ud800",
    b"",
    b"\x00\xff",
    bytearray(b"x"),
    decimal.Decimal("1.10"),
    decimal.Decimal("-12345678901234567890.123456789012345678"),
    decimal.Decimal("1E-19"),
    decimal.Decimal("1E+30"),
    decimal.Decimal("NaN"),
    Instant(0, 0),
    Instant(-1, 999_999_000),
    Instant(1_700_000_000, 123_456_789),
    datetime.datetime(2024, 7, 1, 12, 0, 0, 123456),  # noqa: DTZ001
    datetime.datetime(1, 1, 1),  # noqa: DTZ001
    datetime.datetime(2024, 7, 1, 12, tzinfo=UTC),
    datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))),
    datetime.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
    datetime.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN),
    datetime.datetime(1, 1, 1, tzinfo=UTC),
    datetime.date(9999, 12, 31),
    datetime.time(1, 2, 3, 4),
    datetime.time(1, 2, tzinfo=UTC),
    datetime.timedelta(days=-1, microseconds=1),
    uuid.UUID(int=5),
    Color.RED,
    Color.BLUE,
    Level.LOW,
    (),
    (1, "a"),
    (1, (None, [2.5])),
    Pair(1, None),
    Order(1, ["a", "b"]),
    Place("x", Order(2, [])),
    Row(1, "a"),
    Row(a=1, b=Row("x")),
    [],
    [1, 2**70],
    [1, "a", None],
    [[], [1]],
    {},
    {"a": 1, "b": None},
    {"a": 1, "b": "x"},
    {(1, "a"): [1]},
    {b"k": 1},
    {1: "a", "b": 2},
    {uuid.UUID(int=1): Color.RED},
    {1, 2},
    frozenset({1}),
    OrderedDict(a=1),
    Text("sub"),
    complex(1, 2),
    range(3),
)
"""Of every kind, with extremes."""

KEYS: tuple[Any, ...] = (
    0,
    2**70,
    True,
    0.5,
    "k",
    b"k",
    decimal.Decimal("1.5"),
    Place("x"),
    datetime.datetime(2024, 7, 1, 12),  # noqa: DTZ001
    datetime.datetime(2024, 7, 1, 12, tzinfo=UTC),
    datetime.date(2024, 7, 1),
    uuid.UUID(int=5),
    Color.RED,
    (1, "a"),
    (1, None),
    Row(a=1, b="x"),
    Row(1, "x"),
    frozenset({1, 2}),
)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of the same classes, all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)) and not isinstance(one, Row):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return [*map(repr, one)] == [*map(repr, other)] and all(map(same, one.values(), other.values()))
    if isinstance(one, Row):
        return one.get_field_names() == other.get_field_names() and all(map(same, one, other))
    if isinstance(one, datetime.datetime) and one.tzinfo is not None:
        return one == other and one.utcoffset() == other.utcoffset() and type(one.tzinfo) is type(other.tzinfo)
    return bool(one == other) or repr(one) == repr(other)
