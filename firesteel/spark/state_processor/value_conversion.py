"""Value conversion between states and DataFrames, in both directions; runs on the executors."""

from __future__ import annotations

import datetime
import decimal
import pickle
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle
from pyspark.sql import Row as SparkRow
from pyspark.sql import types as t

from firesteel.common.time import Instant
from firesteel.common.types import Row
from firesteel.spark.state_processor.shapes import (
    INSTANT,
    INT,
    LOSSY,
    PICKLED,
    PLAIN,
    Column,
    fits_decimal,
    infer,
    load_class,
    make_object,
    zone_of,
)
from firesteel.spark.state_processor.spark_types import ConversionError, fields_of
from firesteel.types.logical import (
    ArrayType,
    DecimalType,
    FieldsType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    RowType,
    StructuredType,
    TimeType,
)

__all__ = ["from_shape", "from_spark", "to_column", "to_spark"]

Convert = Callable[[Any], Any]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)
_BITS = {t.ByteType: 8, t.ShortType: 16, t.IntegerType: 32, t.LongType: 64}
_HINT = "Give the type with key_type=… or value_type=…: 'binary' for pickled bytes fits everything."


# -- from states, exactly ---------------------------------------------------------------------------------


def to_column(column: Column) -> Convert:
    """What turns a value of a state into one of a column, from which `from_shape` makes the same value again.

    A value that would not come back as it is, and of the same class, is a ConversionError.
    """
    if column.shape == LOSSY:
        return to_spark(column.type)
    return _checked(_exact(column), column.type)


def _checked(convert: Convert, type_: t.DataType) -> Convert:
    """The conversion of any value: None stays None, and every error is a ConversionError."""

    def checked(value: Any) -> Any:
        if value is None:
            return None
        try:
            return convert(value)
        except ConversionError:
            raise
        except Exception as error:
            raise _misfit(value, type_, error) from error

    return checked


def _misfit(value: Any, type_: t.DataType, error: Exception) -> ConversionError:
    return ConversionError(
        f"{value!r:.200} of type {type(value).__qualname__} does not fit a column of type {type_.simpleString()}: "
        f"{error}",
        hint=_HINT,
    )


def _exact(column: Column) -> Convert:
    type_, shape = column
    if shape == PICKLED:
        return lambda value: bytearray(_pickled(value))
    if shape == PLAIN:
        return _plain(type_)
    if shape == INT:
        assert isinstance(type_, t.DecimalType)
        most = 10**type_.precision
        return lambda value: decimal.Decimal(_of(int, value) if abs(value) < most else _raise("it has too many digits"))
    if shape == INSTANT:
        return _from_instant
    if shape == "time":
        return lambda value: _of(datetime.time, value).isoformat()
    if shape == "uuid":
        return lambda value: str(_of(uuid.UUID, value))
    tag = shape[0]
    if tag == "aware":
        return lambda value: value if infer(value) == column else _raise("it has another zone, or none")
    if tag == "enum":
        members = load_class(shape[1])
        return lambda value: _of(members, value).name
    if tag == "list":
        assert isinstance(type_, t.ArrayType)
        element = to_column(Column(type_.elementType, shape[1]))
        return lambda values: [element(value) for value in _of(list, values)]
    if tag == "dict":
        assert isinstance(type_, t.MapType)
        key, value = to_column(Column(type_.keyType, shape[1])), to_column(Column(type_.valueType, shape[2]))
        return lambda entries: {_not_none(key(k)): value(v) for k, v in _of(dict, entries).items()}
    assert isinstance(type_, t.StructType)
    return _exact_struct(type_, shape)


def _exact_struct(type_: t.StructType, shape: Any) -> Convert:
    tag = shape[0]
    cls = {"tuple": tuple, "row": Row}.get(tag) or load_class(shape[1])
    parts = shape[2] if tag == "object" else shape[1]
    converters = [to_column(Column(field.dataType, part)) for field, part in zip(type_.fields, parts, strict=True)]
    names = type_.names if tag == "object" or (tag == "row" and shape[2]) else None

    def convert(value: Any) -> tuple[Any, ...]:
        fields = fields_of(_of(cls, value)) or []
        if len(fields) != len(converters):
            raise TypeError(f"it has {len(fields)} fields, not {len(converters)}")
        if names is not None and [name for name, _ in fields] != names:
            raise TypeError("its fields have other names")
        if tag == "row" and (bool(value.get_field_names()) != shape[2] or value.get_row_kind().value != 0):
            raise TypeError("it is another kind of row")
        return tuple(convert(part) for (_, part), convert in zip(fields, converters, strict=True))

    return convert


def _plain(type_: t.DataType) -> Convert:
    bits = _BITS.get(type(type_))
    if bits is not None:
        half = 1 << (bits - 1)
        return lambda value: _of(int, value) if -half <= value < half else _raise(f"it does not fit {bits} bits")
    if isinstance(type_, t.DecimalType):
        return lambda value: (
            value if fits_decimal(_of(decimal.Decimal, value), type_) else _raise("it has too many digits")
        )
    if isinstance(type_, t.BinaryType):
        return lambda value: bytearray(_of(bytes, value))
    if isinstance(type_, t.TimestampNTZType):
        return lambda value: _of(datetime.datetime, value) if value.tzinfo is None else _raise("it has a zone")
    cls = _CLASSES.get(type(type_))
    if cls is None:
        raise ConversionError(f"State has no values for a column of type {type_.simpleString()}.")
    return lambda value: _of(cls, value)


_CLASSES: Mapping[type[t.DataType], type] = {
    t.BooleanType: bool,
    t.DoubleType: float,
    t.StringType: str,
    t.DateType: datetime.date,
    t.DayTimeIntervalType: datetime.timedelta,
}


def _of(cls: type, value: Any) -> Any:
    if type(value) is not cls:
        raise TypeError(f"it is no {cls.__name__}")
    return value


def _not_none(value: Any) -> Any:
    return _raise("None cannot be the key of a map") if value is None else value


def _raise(text: str) -> Any:
    raise ValueError(text)


def _from_instant(value: Instant) -> datetime.datetime:
    if _of(Instant, value).nanos % 1000:
        raise ValueError("Spark has microseconds only")
    return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, 5)
    except Exception:  # noqa: BLE001 - classes known by value only
        return bytes(cloudpickle.dumps(value, 5))


# -- to states, by the shape ------------------------------------------------------------------------------


def from_shape(shape: Any) -> Convert:
    """What turns the values of a column with that shape into what they were made from."""
    convert = _restoring(shape)
    return lambda value: None if value is None else convert(value)


def _restoring(shape: Any) -> Convert:
    if shape == PLAIN:
        return lambda value: bytes(value) if isinstance(value, bytearray) else value
    if shape == PICKLED:
        return pickle.loads
    if shape == INT:
        return int
    if shape == INSTANT:
        return _to_instant
    if shape == "time":
        return datetime.time.fromisoformat
    if shape == "uuid":
        return uuid.UUID
    tag = shape[0]
    if tag == "aware":
        zone = zone_of(shape[1])
        return lambda value: value.astimezone(zone)
    if tag == "enum":
        members = load_class(shape[1])
        return lambda name: members[name]
    if tag == "list":
        element = from_shape(shape[1])
        return lambda values: [element(value) for value in values]
    if tag == "dict":
        key, value = from_shape(shape[1]), from_shape(shape[2])
        return lambda entries: {key(k): value(v) for k, v in entries.items()}
    parts = [from_shape(part) for part in (shape[2] if tag == "object" else shape[1])]
    if tag == "tuple":
        return lambda row: tuple(part(value) for part, value in zip(parts, row, strict=True))
    if tag == "object":
        cls = load_class(shape[1])
        return lambda row: make_object(cls, [part(value) for part, value in zip(parts, row, strict=True)])

    def make_row(row: SparkRow) -> Row:
        made = Row(*(part(value) for part, value in zip(parts, row, strict=True)))
        if shape[2]:
            made.set_field_names(list(row.__fields__))
        return made

    return make_row


def _to_instant(value: datetime.datetime) -> Instant:
    # PySpark gives the time of this process's own zone
    seconds, micros = divmod((value.astimezone(datetime.timezone.utc) - _EPOCH) // _MICROSECOND, 1_000_000)
    return Instant(seconds, micros * 1000)


# -- to states, without a shape ---------------------------------------------------------------------------


def from_spark(value: Any, type_: LogicalType | None = None) -> Any:
    """The value of a column that was computed as a program keeps it.

    A struct with the fields ``_1, _2, …`` becomes a tuple, any other a Row with names, unless the declared type
    determines which of the two. Arrays are lists, maps dicts, binary is bytes.
    """
    if value is None:
        return None
    if isinstance(value, SparkRow):
        return _from_struct(value, type_)
    if isinstance(value, list):
        inner = type_.element_type if isinstance(type_, ArrayType) else None
        return [from_spark(part, inner) for part in value]
    if isinstance(value, dict):
        key, inner = type_.children() if isinstance(type_, MapType) else (None, None)
        return {from_spark(k, key): from_spark(v, inner) for k, v in value.items()}
    if isinstance(value, bytearray):
        return bytes(value)
    return value if type_ is None else _from_atom(value, type_)


def _from_atom(value: Any, type_: LogicalType) -> Any:
    match type_, value:
        case LocalZonedTimestampType(), datetime.datetime():
            return _to_instant(value)
        case DecimalType(precision=None, scale=0), decimal.Decimal():
            if value != value.to_integral_value():
                raise ConversionError(f"{value} is not an integer, as required by the state's type.")
            return int(value)
        case TimeType(), str():
            return datetime.time.fromisoformat(value)
    return value


def _from_struct(value: SparkRow, type_: LogicalType | None) -> Any:
    names = list(value.__fields__)
    inner = type_.children() if isinstance(type_, FieldsType) else (None,) * len(names)
    parts = [from_spark(part, field) for part, field in zip(value, inner, strict=True)]
    positional = names == [f"_{index}" for index in range(1, len(names) + 1)]
    if isinstance(type_, StructuredType) or (positional and not isinstance(type_, RowType)):
        return tuple(parts)
    row = Row(*parts)
    if not positional:
        row.set_field_names(names)
    return row


# -- from states, to fit ----------------------------------------------------------------------------------


def to_spark(type_: t.DataType) -> Convert:
    """What turns a value of a state, or of a reader function, into one of a column of that type, as well as it can."""
    return _checked(_converter(type_), type_)


def _converter(type_: t.DataType) -> Convert:
    if isinstance(type_, t.ArrayType):
        element = to_spark(type_.elementType)
        return lambda values: [element(value) for value in values]
    if isinstance(type_, t.MapType):
        key, value = to_spark(type_.keyType), to_spark(type_.valueType)
        return lambda entries: {key(k): value(v) for k, v in entries.items()}
    if isinstance(type_, t.StructType):
        return _struct_converter(type_)
    return _ATOMS.get(type(type_), lambda value: value)


def _struct_converter(type_: t.StructType) -> Convert:
    converters = [to_spark(field.dataType) for field in type_.fields]
    names = type_.names

    def convert(value: Any) -> tuple[Any, ...]:
        if isinstance(value, Mapping):
            return tuple(convert(value.get(name)) for name, convert in zip(names, converters, strict=True))
        fields = fields_of(value)
        if fields is None:
            raise TypeError("it has no fields")
        if len(fields) != len(names):
            raise TypeError(f"it has {len(fields)} fields, not {len(names)}")
        return tuple(convert(part) for (_, part), convert in zip(fields, converters, strict=True))

    return convert


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return value.isoformat() if isinstance(value, datetime.time) else str(value)


def _bytes(value: Any) -> bytearray:
    return bytearray(value) if isinstance(value, (bytes, bytearray)) else bytearray(_pickled(value))


def _whole(value: Any) -> int:
    number = value.__index__()
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError("it does not fit 64 bits")
    return int(number)


def _boolean(value: Any) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError("it is not a bool")
    return bool(value)


def _timestamp(value: Any) -> datetime.datetime:
    if isinstance(value, Instant):
        return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if not isinstance(value, datetime.datetime):
        raise TypeError("it is not a datetime")
    return value


def _date(value: Any) -> datetime.date:
    if not isinstance(value, datetime.date):
        raise TypeError("it is not a date")
    return value


_ATOMS: Mapping[type[t.DataType], Convert] = {
    t.StringType: _text,
    t.BinaryType: _bytes,
    t.BooleanType: _boolean,
    t.ByteType: _whole,
    t.ShortType: _whole,
    t.IntegerType: _whole,
    t.LongType: _whole,
    t.FloatType: float,
    t.DoubleType: float,
    t.DecimalType: decimal.Decimal,
    t.DateType: _date,
    t.TimestampType: _timestamp,
    t.TimestampNTZType: _timestamp,
}
