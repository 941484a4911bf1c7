"""Values at the border of functions: what rows hold becomes objects of Python, and results become what rows hold."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from firesteel.common.time import Instant
from firesteel.common.types import Row, named_rows
from firesteel.types import logical as t
from firesteel.types.internal import arrow_type, from_column, to_column
from firesteel.types.logical import FieldsType, LogicalType

__all__ = ["Convert", "read_column", "to_external", "to_internal", "write_column"]

Convert = Callable[[Any], Any]
"""Converts a value that is not None."""

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a TIMESTAMP has no zone
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_INTEGERS = {t.TinyIntType: 8, t.SmallIntType: 16, t.IntType: 32, t.BigIntType: 64}


def read_column(array: Any, type_: LogicalType, zone: str) -> list[Any]:
    """The values of a column as functions get them."""
    values = from_column(array, type_)
    convert = to_external(type_, zone)
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


def write_column(values: Sequence[Any], type_: LogicalType, zone: str) -> Any:
    """The column of the results of a function. Raises TypeError or ValueError for one that does not fit its type."""
    if type_.children() or isinstance(type_, (*_CONVERTED, t.DecimalType, FieldsType)):
        convert = to_internal(type_, zone)
        return to_column([None if value is None else convert(value) for value in values], type_)
    if not isinstance(type_, t.BooleanType):  # Arrow would take numbers
        try:
            return pa.array(values, arrow_type(type_))
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError):
            pass
    convert = to_internal(type_, zone)
    return to_column([None if value is None else convert(value) for value in values], type_)


# -- arguments ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def to_external(type_: LogicalType, zone: str) -> Convert | None:
    """What makes of a value of a row what functions get; None if it is the same."""
    match type_:
        case t.DateType():
            return lambda days: dt.date.fromordinal(_EPOCH_DAY + days)
        case t.TimeType():
            return lambda millis: (_EPOCH + dt.timedelta(milliseconds=millis)).time()
        case t.TimestampType():
            return lambda nanos: _EPOCH + dt.timedelta(microseconds=nanos // 1000)
        case t.LocalZonedTimestampType():
            info = ZoneInfo(zone)
            utc = _EPOCH.replace(tzinfo=dt.timezone.utc)
            return lambda nanos: (utc + dt.timedelta(microseconds=nanos // 1000)).astimezone(info)
        case t.DayTimeIntervalType():
            return lambda millis: dt.timedelta(milliseconds=millis)
        case t.ArrayType():
            element = to_external(type_.element_type, zone)
            return None if element is None else lambda values: [_given(element, value) for value in values]
        case t.MapType() | t.MultisetType():
            return _map_to_external(*_entries(type_), zone)
        case FieldsType():
            return _row_to_external(type_, zone)
    return None


def _given(convert: Convert | None, value: Any) -> Any:
    return value if value is None or convert is None else convert(value)


def _entries(type_: t.MapType | t.MultisetType) -> tuple[LogicalType, LogicalType]:
    if isinstance(type_, t.MapType):
        return type_.key_type, type_.value_type
    return type_.element_type, t.IntType()


def _map_to_external(key_type: LogicalType, value_type: LogicalType, zone: str) -> Convert | None:
    key, value = to_external(key_type, zone), to_external(value_type, zone)
    if key is None and value is None:
        return None
    return lambda entries: {_given(key, k): _given(value, v) for k, v in entries.items()}


def _row_to_external(type_: FieldsType, zone: str) -> Convert:
    names = tuple(type_.field_names)
    parts = [to_external(part, zone) for part in type_.children()]
    if not any(parts):
        return lambda row: named_rows(names, (row,))[0]
    return lambda row: named_rows(names, ([_given(part, value) for part, value in zip(parts, row, strict=True)],))[0]


# -- results -----------------------------------------------------------------------------------------------------

_CONVERTED = (
    t.DateType,
    t.TimeType,
    t.TimestampType,
    t.LocalZonedTimestampType,
    t.DayTimeIntervalType,
    t.YearMonthIntervalType,
)


@lru_cache(maxsize=1024)
def to_internal(type_: LogicalType, zone: str) -> Convert:
    """What makes of the result of a function what rows hold. It raises TypeError or ValueError."""
    match type_:
        case t.BooleanType():
            return _boolean
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.BigIntType():
            return _integer(_INTEGERS[type(type_)])
        case t.FloatType() | t.DoubleType():
            return _float
        case t.DecimalType():
            return _decimal(type_)
        case t.CharType() | t.VarCharType():
            return _of(str, str)
        case t.BinaryType() | t.VarBinaryType():
            return _of((bytes, bytearray, memoryview), bytes)
        case t.DateType():
            return _date
        case t.TimeType():
            return _of(dt.time, _time_millis)
        case t.TimestampType():
            return _of(dt.datetime, lambda value: _nanos(value.replace(tzinfo=None)))
        case t.LocalZonedTimestampType():
            return _instant(ZoneInfo(zone))
        case t.DayTimeIntervalType():
            return _of(dt.timedelta, lambda value: value // dt.timedelta(milliseconds=1))
        case t.ArrayType():
            return _list(to_internal(type_.element_type, zone))
        case t.MapType() | t.MultisetType():
            key, item = (to_internal(part, zone) for part in _entries(type_))
            return _of(dict, lambda values: {_given(key, k): _given(item, v) for k, v in values.items()})
        case FieldsType():
            return _row(type_, [to_internal(part, zone) for part in type_.children()])
    return lambda value: value


def _of(kinds: Any, convert: Convert) -> Convert:
    name = kinds.__name__ if isinstance(kinds, type) else kinds[0].__name__

    def checked(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"a {name} is needed, not {type(value).__name__}")
        return convert(value)

    return checked


def _boolean(value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise TypeError(f"a bool is needed, not {type(value).__name__}")


def _integer(bits: int) -> Convert:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def convert(value: Any) -> int:
        if not hasattr(value, "__index__"):
            raise TypeError(f"an int is needed, not {type(value).__name__}")
        number = value.__index__()
        if not low <= number <= high:
            raise ValueError(f"it is not between {low} and {high}")
        return int(number)

    return convert


def _float(value: Any) -> float:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"a float is needed, not {type(value).__name__}")
    return float(value)


def _decimal(type_: t.DecimalType) -> Convert:
    unit = Decimal(1).scaleb(-(type_.scale or 0))
    bound = Decimal(10) ** ((type_.precision or 10) - (type_.scale or 0))

    def convert(value: Any) -> Decimal | None:
        if isinstance(value, int) and not isinstance(value, bool):
            value = Decimal(value)
        if not isinstance(value, Decimal):
            raise TypeError(f"a Decimal is needed, not {type(value).__name__}")
        try:
            rounded = value.quantize(unit, ROUND_HALF_UP)
        except InvalidOperation:
            return None
        return None if abs(rounded) >= bound else rounded

    return convert


def _date(value: Any) -> int:
    if isinstance(value, dt.datetime):
        value = value.date()
    if not isinstance(value, dt.date):
        raise TypeError(f"a date is needed, not {type(value).__name__}")
    return value.toordinal() - _EPOCH_DAY


def _time_millis(value: dt.time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def _nanos(value: dt.datetime) -> int:
    return (value - _EPOCH) // dt.timedelta(microseconds=1) * 1000


def _instant(zone: ZoneInfo) -> Convert:
    def convert(value: Any) -> int:
        if isinstance(value, Instant):
            return value.seconds * 10**9 + value.nanos
        if not isinstance(value, dt.datetime):
            raise TypeError(f"a datetime is needed, not {type(value).__name__}")
        aware = value if value.tzinfo is not None else value.replace(tzinfo=zone)
        return _nanos(aware.astimezone(dt.timezone.utc).replace(tzinfo=None))

    return convert


def _list(element: Convert) -> Convert:
    def convert(values: Any) -> list[Any]:
        if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__iter__"):
            raise TypeError(f"a list is needed, not {type(values).__name__}")
        return [_given(element, value) for value in values]

    return convert


def _row(type_: FieldsType, parts: Sequence[Convert]) -> Convert:
    names = list(type_.field_names)

    def convert(value: Any) -> tuple[Any, ...]:
        fields: Any = value
        if isinstance(value, Row):
            fields = value.get_fields_by_names(names) if _has_names(value, names) else list(value)
        elif isinstance(value, dict):
            fields = [value.get(name) for name in names]
        elif not isinstance(value, (tuple, list)):
            raise TypeError(f"a Row or tuple is needed, not {type(value).__name__}")
        if len(fields) != len(parts):
            raise ValueError(f"it has {len(fields)} fields, but the type has {len(parts)}")
        return tuple(_given(part, field) for part, field in zip(parts, fields, strict=True))

    return convert


def _has_names(row: Row, names: Sequence[str]) -> bool:
    own = row.get_field_names()
    return own is not None and set(own) == set(names)
