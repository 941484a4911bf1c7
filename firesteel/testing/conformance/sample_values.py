"""Sample values of every type for connectors and formats: extremes, special cases, and random ones."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.typeinfo import (
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    RowTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.common.types import Row

__all__ = ["BYTES", "SCALAR_TYPES", "draw_value", "extremes", "out_of_range", "same"]

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())

_WORDS = ["", " ", "a", "Z", "0", "-1", "1e3", "null", "NULL", r"\N", "None", "NaN", "true", "ä", "ß", "e\u0301"]
_SIGNS = [
    *(",", ";", "|", "\t", '"', '""', "'", "\\", r"\"", r"\n", "\n", "\r", "\r\n", "#", " #", "%", "%s", "$1", "{}"),
    *("{,}", "[", "<a>", "&amp;", "\ufeff", "\u2028", "\u0085", "\x1f", "\x7f", "\u200d", "\U0001f600", "\U0010ffff"),
]
_TEXTS = [
    *_WORDS,
    *_SIGNS,
    "\0",
    " padded ",
    "a,b;c",
    'He said "hello,\nworld"',
    'back\\slash"quote',
    "\ufeffmark",
    "#comment",
    " # comment",
    "line\nline\r\nline\rline",
    "x" * 300,
    "long\n" + "ü" * 140_000 + '\n"end"',
]


def _whole(bits: int) -> list[Any]:
    high = 1 << (bits - 1)
    return [0, 1, -1, 7, high - 1, -high, high >> 1]


def _single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


_FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 1e22, 1e16, 123456789.0]
_INSTANTS = [
    Instant(0, 0),
    Instant(1_700_000_000, 123_000_000),
    Instant(-1, 999_000_000),
    Instant(1_700_000_000, 123_456_000),
    Instant(-62_135_596_800, 0),
    Instant(253_402_300_799, 999_999_000),
]
_EXTREMES: dict[TypeInformation, list[Any]] = {
    Types.STRING(): _TEXTS,
    Types.CHAR(): ["a", " ", '"', ",", "\n", "ä", "#", "\U0001f600"],
    Types.BOOLEAN(): [True, False],
    Types.BYTE(): _whole(8),
    Types.SHORT(): _whole(16),
    Types.INT(): _whole(32),
    Types.LONG(): [*_whole(64), 2**53 + 1, -(2**53) - 1],
    Types.BIG_INT(): [0, 1, -1, 2**63, -(2**63) - 1, 2**64, 2**70, -(2**70), 10**30, 10**37],
    Types.FLOAT(): [*map(_single, [*_FLOATS, 0.1, 0.7, 3.4028234e38, 1e-38]), 2.0**-149],
    Types.DOUBLE(): [*_FLOATS, 0.1, 0.30000000000000004, sys.float_info.max, sys.float_info.min, 5e-324],
    Types.BIG_DEC(): [
        *map(Decimal, ("0", "1", "-1", "1.10", "0.1", "-0.000000000000000001", "12345678901234567.25", "1E+5", "1E-7")),
        *map(Decimal, ("12345678901234567890.123456789012345678", "99999999999999999999")),
    ],
    Types.SQL_DATE(): [dt.date.min, dt.date(1582, 10, 4), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date.max],
    Types.SQL_TIME(): [dt.time.min, dt.time(12), dt.time(12, 30, 15, 1000), dt.time(0, 0, 0, 1), dt.time.max],
    Types.SQL_TIMESTAMP(): [
        *map(
            dt.datetime.fromisoformat,
            (
                *("0001-01-01", "1582-10-04T12:00", "1969-12-31T23:59:59.999", "2024-02-29T12:30:15.123456"),
                "2024-03-31T02:30",  # not there in zones with daylight saving
                "9999-12-31T23:59:59.999999",
            ),
        )
    ],
    Types.INSTANT(): _INSTANTS,
    BYTES: [b"", b"\0", bytes(range(256)), b"\\N", b"\r\n", "ä".encode(), b"x" * 70_000],
}

SCALAR_TYPES: tuple[TypeInformation, ...] = tuple(_EXTREMES)
"""The types that are not made of others."""

_OUT_OF_RANGE: dict[TypeInformation, list[Any]] = {
    Types.BYTE(): [1 << 7, -(1 << 7) - 1],
    Types.SHORT(): [1 << 15, -(1 << 15) - 1],
    Types.INT(): [1 << 31, -(1 << 31) - 1],
    Types.LONG(): [1 << 63, -(1 << 63) - 1],
    Types.FLOAT(): [1e39, -1e39, 1e300, 1e-60],
    Types.CHAR(): ["", "ab"],
    Types.BIG_DEC(): [Decimal(10) ** 70, Decimal(1).scaleb(-70)],
    Types.BIG_INT(): [10**70],
    Types.INSTANT(): [Instant(0, 1), Instant(1_700_000_000, 123_456_789), Instant(10**12, 0), Instant(-(10**12), 0)],
}


def extremes(type_info: TypeInformation) -> list[Any]:
    """Values that a type has at its edges, and those that are easily mistaken for something else."""
    return list(_EXTREMES[type_info])


def out_of_range(type_info: TypeInformation) -> list[Any]:
    """Values that do not fit the type, or that many outsides have no room for."""
    return list(_OUT_OF_RANGE.get(type_info, ()))


def draw_value(type_info: TypeInformation, chance: random.Random) -> Any:
    """Any value of a type; in what the type is made of, None too."""
    if isinstance(type_info, RowTypeInfo):
        row = Row(*[_draw_part(part, chance) for part in type_info.get_field_types()])
        row.set_field_names(type_info.get_field_names())
        return row
    if isinstance(type_info, (ListTypeInfo, ObjectArrayTypeInfo)):
        return [_draw_part(type_info.get_element_type(), chance) for _ in range(chance.choice((0, 1, 1, 2, 5)))]
    if isinstance(type_info, MapTypeInfo):
        keys = [draw_value(type_info.get_key_type(), chance) for _ in range(chance.choice((0, 1, 2, 5)))]
        return {key: _draw_part(type_info.get_value_type(), chance) for key in keys}
    if chance.random() < 0.3:
        return chance.choice(_EXTREMES[type_info])
    return _DRAW[type_info](chance)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of the same class, down to the sign of a zero; NaN is the same as NaN."""
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or (
            one == other and math.copysign(1.0, one) == math.copysign(1.0, other)
        )
    if isinstance(one, Row):
        return one.get_field_names() == other.get_field_names() and same(list(one), list(other))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, (dt.datetime, dt.time)) and one.utcoffset() != other.utcoffset():
        return False
    return bool(one == other)


def _draw_part(type_info: TypeInformation, chance: random.Random) -> Any:
    return None if chance.random() < 0.15 else draw_value(type_info, chance)


def _text(chance: random.Random) -> str:
    return "".join(chance.choice((_WORDS, _SIGNS))[chance.randrange(len(_WORDS))] for _ in range(chance.randrange(6)))


def _integer(bits: int) -> Callable[[random.Random], int]:
    return lambda chance: chance.randint(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) >> chance.randrange(bits)


def _double(chance: random.Random) -> float:
    (value,) = struct.unpack("d", chance.randbytes(8))
    return float(value) if math.isfinite(value) else 0.5


def _decimal(chance: random.Random) -> Decimal:
    return Decimal(chance.randint(-(10**18), 10**18)).scaleb(-chance.randrange(19))


def _timestamp(chance: random.Random) -> dt.datetime:
    seconds = chance.randint(-62_135_596_800, 253_402_300_799)
    return dt.datetime.fromisoformat("1970-01-01") + dt.timedelta(seconds=seconds, microseconds=chance.randrange(10**6))


def _instant(chance: random.Random) -> Instant:
    return Instant(chance.randint(-62_135_596_800, 253_402_300_799), chance.randrange(10**6) * 1000)


_DRAW: dict[TypeInformation, Callable[[random.Random], Any]] = {
    Types.STRING(): _text,
    Types.CHAR(): lambda chance: chance.choice('aZ0 ,;"\n#ä'),
    Types.BOOLEAN(): lambda chance: chance.random() < 0.5,
    Types.BYTE(): _integer(8),
    Types.SHORT(): _integer(16),
    Types.INT(): _integer(32),
    Types.LONG(): _integer(64),
    Types.BIG_INT(): _integer(100),
    Types.FLOAT(): lambda chance: _single(chance.uniform(-1e30, 1e30)),
    Types.DOUBLE(): _double,
    Types.BIG_DEC(): _decimal,
    Types.SQL_DATE(): lambda chance: dt.date.fromordinal(chance.randint(1, dt.date.max.toordinal())),
    Types.SQL_TIME(): lambda chance: _timestamp(chance).time(),
    Types.SQL_TIMESTAMP(): _timestamp,
    Types.INSTANT(): _instant,
    BYTES: lambda chance: chance.randbytes(chance.randrange(40)),
}
