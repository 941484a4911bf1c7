"""Logical types in Python: which values belong to a type, and the ranges and classes they have."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from firesteel.common.time import Instant
from firesteel.types.logical import CharType, DecimalType, LogicalType, LogicalTypeRoot

__all__ = [
    "BITS",
    "IMMUTABLE_ROOTS",
    "MAX_SINGLE",
    "MIN_SINGLE",
    "RANGES",
    "expected",
    "fits",
    "python_class",
    "to_single",
]

_Root = LogicalTypeRoot

BITS = {_Root.TINYINT: 8, _Root.SMALLINT: 16, _Root.INTEGER: 32, _Root.BIGINT: 64}
RANGES = {root: (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for root, bits in BITS.items()}
"""The least and the largest value of the integer types."""

MAX_SINGLE = (2.0 - 2.0**-23) * 2.0**127
MIN_SINGLE = 2.0**-126
"""Between these two a number is only rounded when it becomes a FLOAT."""

_SINGLE = struct.Struct("f")


_PYTHON_CLASSES: dict[LogicalTypeRoot, type] = {
    _Root.CHAR: str,
    _Root.VARCHAR: str,
    _Root.BOOLEAN: bool,
    **dict.fromkeys(BITS, int),
    _Root.FLOAT: float,
    _Root.DOUBLE: float,
    _Root.DECIMAL: Decimal,
    _Root.DATE: dt.date,
    _Root.TIME_WITHOUT_TIME_ZONE: dt.time,
    _Root.TIMESTAMP_WITHOUT_TIME_ZONE: dt.datetime,
    _Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE: Instant,
}
IMMUTABLE_ROOTS = frozenset(_PYTHON_CLASSES)
"""The types with immutable values."""


def python_class(type_: LogicalType) -> type | None:
    """The class that values of an immutable type mostly have; None for other types."""
    if isinstance(type_, DecimalType) and type_.is_integer:
        return int
    return _PYTHON_CLASSES.get(type_.root)


def fits(type_: LogicalType, value: Any) -> bool:
    """Whether a value other than None obviously belongs to a type that is not made of others."""
    test = _FITS.get(type_.root)
    return test is None or test(type_, value)


def expected(type_: LogicalType) -> str:
    """The values of a type that is not made of others, in words."""
    if type_.root in RANGES:
        low, high = RANGES[type_.root]
        return f"an int from {low} to {high}"
    match type_:
        case DecimalType(precision=None, scale=0):
            return "an int"
        case CharType():
            return "a str of one character" if type_.length == 1 else f"a str of {type_.length} characters"
    return _EXPECTED.get(type_.root, "a value")


def _is_instance(*classes: type) -> Callable[[LogicalType, Any], bool]:
    return lambda _, value: isinstance(value, classes)


def _fits_integer(type_: LogicalType, value: Any) -> bool:
    # __index__: numpy's integers are no int
    return hasattr(value, "__index__") and -1 <= value.__index__() >> (BITS[type_.root] - 1) <= 0


def _fits_char(type_: LogicalType, value: Any) -> bool:
    assert isinstance(type_, CharType)
    return isinstance(value, str) and len(value) == type_.length


def _fits_boolean(_: LogicalType, value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")


def _fits_float(_: LogicalType, value: Any) -> bool:
    return hasattr(value, "__float__") or hasattr(value, "__index__")


def _fits_decimal(type_: LogicalType, value: Any) -> bool:
    if isinstance(type_, DecimalType) and type_.is_integer:
        return hasattr(value, "__index__")
    return isinstance(value, (Decimal, int))


_FITS: dict[LogicalTypeRoot, Callable[[LogicalType, Any], bool]] = {
    _Root.CHAR: _fits_char,
    _Root.VARCHAR: _is_instance(str),
    _Root.BOOLEAN: _fits_boolean,
    **dict.fromkeys(BITS, _fits_integer),
    _Root.FLOAT: _fits_float,
    _Root.DOUBLE: _fits_float,
    _Root.DECIMAL: _fits_decimal,
    _Root.DATE: _is_instance(dt.date),
    _Root.TIME_WITHOUT_TIME_ZONE: _is_instance(dt.time),
    _Root.TIMESTAMP_WITHOUT_TIME_ZONE: _is_instance(dt.datetime),
    _Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE: _is_instance(Instant),
}
_EXPECTED = {
    _Root.VARCHAR: "a str",
    _Root.BOOLEAN: "a bool",
    _Root.FLOAT: "a number",
    _Root.DOUBLE: "a number",
    _Root.DECIMAL: "a Decimal",
    _Root.DATE: "a datetime.date",
    _Root.TIME_WITHOUT_TIME_ZONE: "a datetime.time",
    _Root.TIMESTAMP_WITHOUT_TIME_ZONE: "a datetime.datetime",
    _Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE: "an Instant",
}


def to_single(value: Any) -> float:
    """The number of 32 bits next to a number; OverflowError if that is infinite or 0 where the number is not.

    >>> to_single(0.5), to_single(0.1)
    (0.5, 0.10000000149011612)
    """
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError("a number is needed")
    number = float(value)
    try:
        (single,) = _SINGLE.unpack(_SINGLE.pack(number))
    except OverflowError:
        single = math.inf
    if (math.isinf(single) and not _is_infinite(value)) or (not single and value):
        raise OverflowError(f"{value!r} does not fit into 32 bits")
    return float(single)


def _is_infinite(value: Any) -> bool:
    # the float of a decimal may be infinite where the decimal is not
    return bool(value.is_infinite()) if hasattr(value, "is_infinite") else math.isinf(value)
