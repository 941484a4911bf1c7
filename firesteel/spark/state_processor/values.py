"""Values between states and DataFrames, in both directions; runs on the executors."""

from __future__ import annotations

import datetime
import decimal
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle
from pyspark.sql import Row as SparkRow
from pyspark.sql import types as t

from firesteel.common.composite_typeinfo import ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from firesteel.common.time import Instant
from firesteel.common.type_information import InstantTypeInfo, TypeInformation
from firesteel.common.types import Row
from firesteel.spark.state_processor.spark_types import ConversionError, fields_of

__all__ = ["from_spark", "to_spark"]

Convert = Callable[[Any], Any]


def to_spark(type_: t.DataType) -> Convert:
    """What turns a value of a state into one of a column of that type."""
    convert = _converter(type_)

    def checked(value: Any) -> Any:
        if value is None:
            return None
        try:
            return convert(value)
        except ConversionError:
            raise
        except Exception as error:
            raise ConversionError(
                f"{value!r:.200} of type {type(value).__qualname__} does not fit a column of type "
                f"{type_.simpleString()}: {error}",
                hint="Give the type with key_type=… or value_type=…: 'binary' for pickled bytes fits everything.",
            ) from error

    return checked


def _converter(type_: t.DataType) -> Convert:
    if isinstance(type_, t.ArrayType):
        element = to_spark(type_.elementType)
        return lambda values: [element(value) for value in values]
    if isinstance(type_, t.MapType):
        key, value = to_spark(type_.keyType), to_spark(type_.valueType)
        return lambda entries: {key(k): value(v) for k, v in entries.items()}
    if isinstance(type_, t.StructType):
        return _struct_converter(type_)
    return _ATOMS.get(type(type_), _identity)


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


def _identity(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return value.isoformat() if isinstance(value, datetime.time) else str(value)


def _bytes(value: Any) -> bytearray:
    if isinstance(value, (bytes, bytearray)):
        return bytearray(value)
    return bytearray(_pickled(value))


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, 5)
    except Exception:  # noqa: BLE001 - classes known by value only
        return bytes(cloudpickle.dumps(value, 5))


def _whole(value: Any) -> int:
    number = value.__index__()
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError("it does not fit 64 bits")
    return int(number)


def _boolean(value: Any) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError("it is no bool")
    return bool(value)


def _timestamp(value: Any) -> datetime.datetime:
    if isinstance(value, Instant):
        seconds, millis = divmod(value.to_epoch_milli(), 1000)
        moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        return moment + datetime.timedelta(milliseconds=millis)
    if not isinstance(value, datetime.datetime):
        raise TypeError("it is no datetime")
    return value


def _date(value: Any) -> datetime.date:
    if not isinstance(value, datetime.date):
        raise TypeError("it is no date")
    return value


def _decimal(value: Any) -> decimal.Decimal:
    return decimal.Decimal(value)


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
    t.DecimalType: _decimal,
    t.DateType: _date,
    t.TimestampType: _timestamp,
    t.TimestampNTZType: _timestamp,
}


def from_spark(value: Any, type_info: TypeInformation | None = None) -> Any:
    """The value of a column as a program keeps it.

    A struct with the fields ``_1, _2, …`` becomes a tuple, any other a Row with names, unless the declared type says
    which of the two. Arrays are lists, maps dicts, binary is bytes.
    """
    if value is None:
        return None
    if isinstance(value, SparkRow):
        return _from_struct(value, type_info)
    if isinstance(value, list):
        inner = type_info.elem_type if isinstance(type_info, ListTypeInfo) else None
        return [from_spark(part, inner) for part in value]
    if isinstance(value, dict):
        key, inner = (
            (type_info._key_type_info, type_info._value_type_info)
            if isinstance(type_info, MapTypeInfo)
            else (None, None)
        )
        return {from_spark(k, key): from_spark(v, inner) for k, v in value.items()}
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(type_info, InstantTypeInfo) and isinstance(value, datetime.datetime):
        return Instant.of_epoch_milli(int(value.timestamp() * 1000))
    return value


def _from_struct(value: SparkRow, type_info: TypeInformation | None) -> Any:
    names = list(value.__fields__)
    inner: list[Any] = [None] * len(names)
    if isinstance(type_info, (RowTypeInfo, TupleTypeInfo)):
        inner = type_info.get_field_types()
    parts = [from_spark(part, field) for part, field in zip(value, inner, strict=True)]
    positional = names == [f"_{index}" for index in range(1, len(names) + 1)]
    if isinstance(type_info, TupleTypeInfo) or (type_info is None and positional):
        return tuple(parts)
    row = Row(*parts)
    if not positional:
        row.set_field_names(names)
    return row
