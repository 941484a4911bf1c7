"""Families of types: groups of roots that functions take alike."""

from __future__ import annotations

from firesteel.types import logical as t
from firesteel.types.logical import LogicalType, LogicalTypeRoot

__all__ = [
    "is_approximate",
    "is_binary",
    "is_bitmap",
    "is_boolean",
    "is_character",
    "is_constructed",
    "is_datetime",
    "is_exact",
    "is_integer",
    "is_interval",
    "is_null",
    "is_numeric",
    "is_string",
    "is_timestamp",
    "is_unordered",
    "is_variant",
    "rank",
]

_Root = LogicalTypeRoot
_INTEGERS = (_Root.TINYINT, _Root.SMALLINT, _Root.INTEGER, _Root.BIGINT)


def rank(type_: LogicalType) -> int:
    """The place of an integer type among them."""
    return _INTEGERS.index(type_.root)


def is_integer(type_: LogicalType) -> bool:
    return type_.root in _INTEGERS


def is_exact(type_: LogicalType) -> bool:
    return type_.root in _INTEGERS or type_.root is _Root.DECIMAL


def is_approximate(type_: LogicalType) -> bool:
    return type_.root in (_Root.FLOAT, _Root.DOUBLE)


def is_numeric(type_: LogicalType) -> bool:
    return is_exact(type_) or is_approximate(type_)


def is_character(type_: LogicalType) -> bool:
    return isinstance(type_, (t.CharType, t.VarCharType))


def is_binary(type_: LogicalType) -> bool:
    return isinstance(type_, (t.BinaryType, t.VarBinaryType))


def is_string(type_: LogicalType) -> bool:
    return is_character(type_) or is_binary(type_)


def is_boolean(type_: LogicalType) -> bool:
    return type_.root is _Root.BOOLEAN


def is_timestamp(type_: LogicalType) -> bool:
    return isinstance(type_, (t.TimestampType, t.LocalZonedTimestampType))


def is_datetime(type_: LogicalType) -> bool:
    return is_timestamp(type_) or isinstance(type_, (t.DateType, t.TimeType))


def is_interval(type_: LogicalType) -> bool:
    return isinstance(type_, (t.DayTimeIntervalType, t.YearMonthIntervalType))


def is_constructed(type_: LogicalType) -> bool:
    return bool(type_.children()) or isinstance(type_, t.RowType)


def is_variant(type_: LogicalType) -> bool:
    return type_.root is _Root.VARIANT


def is_bitmap(type_: LogicalType) -> bool:
    return type_.root is _Root.BITMAP


def is_unordered(type_: LogicalType) -> bool:
    """Whether values of a type are equal or not, but none is less than another."""
    return is_constructed(type_) or is_variant(type_) or is_bitmap(type_)


def is_null(type_: LogicalType) -> bool:
    return type_.root is _Root.NULL
