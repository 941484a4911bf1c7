"""The values of SQL inside the engine, in rows and in Arrow columns.

Rows hold numbers instead of objects where Flink's internal data does: a DATE is a number of days, a TIME a number of
milliseconds, a TIMESTAMP a number of nanoseconds, an interval a number of months or milliseconds. All other values are
the usual ones of Python; a ROW is a tuple, an ARRAY a list, a MAP or MULTISET a dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from firesteel.types import logical as t
from firesteel.types.arrow import require_pyarrow, to_arrow_schema
from firesteel.types.logical import FieldsType, LogicalType

__all__ = ["arrow_type", "columns_schema", "from_column", "to_column", "to_scalar"]

_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_NUMBERS = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType, t.FloatType, t.DoubleType)
_TEMPORAL = (t.DateType, t.TimeType, t.TimestampType, t.LocalZonedTimestampType, t.DayTimeIntervalType)


@lru_cache(maxsize=1024)
def arrow_type(type_: LogicalType) -> Any:
    """The type of a column of Arrow for values of a type; months are integers of 32 bits."""
    if isinstance(type_, t.YearMonthIntervalType):
        return require_pyarrow("SQL").int32()
    if isinstance(type_, t.DayTimeIntervalType):
        return require_pyarrow("SQL").duration("ms")
    return to_arrow_schema(t.RowType.of(["f0"], [_storable(type_)])).field(0).type


@lru_cache(maxsize=1024)
def columns_schema(row_type: t.RowType) -> Any:
    """The schema of a batch of columns of a row type; all columns take null."""
    pa = require_pyarrow("SQL")
    return pa.schema([pa.field(part.name, arrow_type(part.type)) for part in row_type.fields])


def _storable(type_: LogicalType) -> LogicalType:
    match type_:
        case t.YearMonthIntervalType():
            return t.IntType()
        case t.DayTimeIntervalType():
            return t.DayTimeIntervalType(fractional_precision=3)
        case t.ArrayType():
            return t.ArrayType(_storable(type_.element_type))
        case t.MapType():
            return t.MapType(_storable(type_.key_type), _storable(type_.value_type))
        case t.MultisetType():
            return t.MultisetType(_storable(type_.element_type))
        case FieldsType():
            return t.RowType.of(type_.field_names, map(_storable, type_.children()))
    return type_.copy()


def _unit(type_: LogicalType) -> int:
    """How many of the row's units one unit of the column is."""
    if isinstance(type_, (t.DateType, t.DayTimeIntervalType)):
        return 1
    nanos = _NANOS[arrow_type(type_).unit]
    return nanos // 10**6 if isinstance(type_, t.TimeType) else nanos


def from_column(array: Any, type_: LogicalType) -> list[Any]:
    """The values of a column as a row holds them."""
    pa = require_pyarrow("SQL")
    if isinstance(type_, _TEMPORAL):
        integers = array.cast(pa.int32() if isinstance(type_, t.DateType) else _integer_type(array.type))
        values = _numbers(integers)
        unit = _unit(type_) if not isinstance(type_, t.TimeType) or type_.precision <= 3 else 0
        if unit == 1:
            return values
        if unit == 0:  # microseconds and nanoseconds of a time
            divisor = 10**6 // _NANOS[array.type.unit]
            return [None if value is None else value // divisor for value in values]
        if not array.null_count:
            return [value * unit for value in values]
        return [None if value is None else value * unit for value in values]
    if not type_.children() and not isinstance(type_, FieldsType):
        if isinstance(type_, (t.CharType, t.VarCharType)) and not hasattr(array, "chunks"):
            return list(array.to_numpy(zero_copy_only=False).tolist())
        return _numbers(array) if isinstance(type_, _NUMBERS) else list(array.to_pylist())
    return _from_nested(array, type_)


def _numbers(array: Any) -> list[Any]:
    """Numbers, by way of numpy, which makes objects of them at a tenth of the cost."""
    if array.null_count or hasattr(array, "chunks"):
        return list(array.to_pylist())
    return list(array.to_numpy(zero_copy_only=False).tolist())


def _integer_type(type_: Any) -> Any:
    pa = require_pyarrow("SQL")
    return pa.int32() if pa.types.is_time32(type_) else pa.int64()


def _from_nested(array: Any, type_: LogicalType) -> list[Any]:
    if hasattr(array, "combine_chunks"):
        array = array.combine_chunks()
    valid = array.is_valid().to_pylist()
    if isinstance(type_, FieldsType):
        columns = [from_column(array.field(index), part) for index, part in enumerate(type_.children())]
        rows: Iterable[Any] = zip(*columns, strict=True) if columns else [()] * len(array)
        return [row if there else None for row, there in zip(rows, valid, strict=True)]
    offsets = array.offsets.to_pylist()
    if isinstance(type_, t.ArrayType):
        elements = from_column(array.values, type_.element_type)
        return [elements[a:b] if there else None for a, b, there in zip(offsets, offsets[1:], valid, strict=False)]
    key_type, value_type = _entry_types(type_)
    keys, items = from_column(array.keys, key_type), from_column(array.items, value_type)
    return [
        dict(zip(keys[a:b], items[a:b], strict=True)) if there else None
        for a, b, there in zip(offsets, offsets[1:], valid, strict=False)
    ]


def _entry_types(type_: LogicalType) -> tuple[LogicalType, LogicalType]:
    if isinstance(type_, t.MapType):
        return type_.key_type, type_.value_type
    assert isinstance(type_, t.MultisetType)
    return type_.element_type, t.IntType()


def to_column(values: Iterable[Any], type_: LogicalType) -> Any:
    """A column of the values of rows."""
    pa = require_pyarrow("SQL")
    prepare = _preparation(type_)
    if prepare is not None:
        values = [None if value is None else prepare(value) for value in values]
    if isinstance(type_, _TEMPORAL):
        target = arrow_type(type_)
        integers = pa.int32() if pa.types.is_date32(target) or pa.types.is_time32(target) else pa.int64()
        return pa.array(values, integers).cast(target)
    return pa.array(values, arrow_type(type_))


def to_scalar(value: Any, type_: LogicalType) -> Any:
    """A value of a row as a scalar of Arrow."""
    return to_column([value], type_)[0]


def _preparation(type_: LogicalType) -> Callable[[Any], Any] | None:
    """What makes of a value of a row what Arrow takes; None if that is the value."""
    match type_:
        case t.TimeType() if type_.precision > 3:
            factor = 10**6 // _NANOS[arrow_type(type_).unit]
            return lambda value: value * factor
        case t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
            unit = _unit(type_)
            return None if unit == 1 else lambda value: value // unit
        case t.ArrayType():
            element = _nested_preparation(type_.element_type)
            return None if element is None else lambda values: [element(value) for value in values]
        case t.MapType() | t.MultisetType():
            key, item = map(_nested_preparation, _entry_types(type_))
            return lambda entries: [(key(k) if key else k, item(v) if item else v) for k, v in entries.items()]
        case FieldsType():
            parts = [(part.name, _nested_preparation(part.type)) for part in type_.fields]
            return lambda row: {
                name: part(value) if part else value for (name, part), value in zip(parts, row, strict=True)
            }
    return None


def _nested_preparation(type_: LogicalType) -> Callable[[Any], Any] | None:
    """As above for a value within another; Arrow takes times in arrays as integers."""
    prepare = _preparation(type_)
    return None if prepare is None else lambda value: None if value is None else prepare(value)
