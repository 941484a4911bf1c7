"""Which Spark type the keys and values of a state have: declared, given, or found from a sample."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import types as t

from firesteel.common.errors import FiresteelError
from firesteel.common.time import Instant
from firesteel.common.type_information import TypeInformation
from firesteel.common.types import Row

__all__ = ["PICKLED", "infer_type", "merge_types", "parse_declared_type", "to_spark_type"]

PICKLED = t.BinaryType()
"""For values of which Spark has no like: their pickled bytes."""

_BASIC: Mapping[str, t.DataType] = {
    "String": t.StringType(),
    "Byte": t.ByteType(),
    "Boolean": t.BooleanType(),
    "Short": t.ShortType(),
    "Integer": t.IntegerType(),
    "Long": t.LongType(),
    # Python keeps both in double precision: nothing may be lost on the way
    "Float": t.DoubleType(),
    "Double": t.DoubleType(),
    "Char": t.StringType(),
    "BigInteger": t.DecimalType(38, 0),
    "BigDecimal": t.DecimalType(38, 18),
    "Instant": t.TimestampType(),
    "DateTypeInfo": t.DateType(),
    "TimeTypeInfo": t.StringType(),
    "TimestampTypeInfo": t.TimestampNTZType(),
    "LocalTimeTypeInfo<LOCAL_DATE>": t.DateType(),
    "LocalTimeTypeInfo<LOCAL_TIME>": t.StringType(),
    "LocalTimeTypeInfo<LOCAL_DATE_TIME>": t.TimestampNTZType(),
    "PrimitiveArrayTypeInfo<Byte>": t.BinaryType(),
}

_GENERIC = re.compile(r"(?P<name>\w+)(?:<(?P<parameters>.*)>|\((?P<fields>.*)\))", re.DOTALL)
_ARRAYS = ("ListTypeInfo", "BasicArrayTypeInfo", "ObjectArrayTypeInfo", "PrimitiveArrayTypeInfo")


def to_spark_type(type_: Any) -> t.DataType | None:
    """A Spark type as it is, by its name in SQL (``"array<int>"``), or that of a declared type."""
    if type_ is None or isinstance(type_, t.DataType):
        return type_
    if isinstance(type_, str):
        return t.DataType.fromDDL(type_)
    if isinstance(type_, TypeInformation):
        return parse_declared_type(str(type_))
    raise TypeError(f"A Spark type, its name in SQL or a Types.… is needed, got {type_!r}.")


def parse_declared_type(text: str | None) -> t.DataType | None:
    """The Spark type of a type as descriptors declare and savepoints keep it; None if it says nothing.

    >>> parse_declared_type("MapTypeInfo<String, ListTypeInfo<Long>>").simpleString()
    'map<string,array<bigint>>'
    >>> parse_declared_type("RowTypeInfo(name: String, age: Integer)").simpleString()
    'struct<name:string,age:int>'
    """
    if text is None:
        return None
    text = text.strip()
    if text in _BASIC:
        return _BASIC[text]
    match = _GENERIC.fullmatch(text)
    if match is None:
        return None
    name = match["name"]
    if name == "ExternalTypeInfo":
        return parse_declared_type(match["parameters"])
    if name in _ARRAYS:
        return t.ArrayType(_parse_or_pickled(match["parameters"]))
    if name == "MapTypeInfo":
        key, value = _split(match["parameters"])
        return t.MapType(_parse_or_pickled(key), _parse_or_pickled(value))
    if name == "TupleTypeInfo":
        fields = [(f"_{index}", part) for index, part in enumerate(_split(match["fields"] or ""), 1)]
        return _struct(fields)
    if name == "RowTypeInfo":
        parts = [_name_and_type(part, index) for index, part in enumerate(_split(match["fields"] or ""), 1)]
        return _struct(parts)
    return None


def _parse_or_pickled(text: str) -> t.DataType:
    return parse_declared_type(text) or PICKLED


def _struct(fields: Iterable[tuple[str, str]]) -> t.StructType:
    return t.StructType([t.StructField(name, _parse_or_pickled(text)) for name, text in fields])


def _name_and_type(field: str, index: int) -> tuple[str, str]:
    name, colon, text = field.partition(": ")
    return (name, text) if colon and re.fullmatch(r"\w+", name) else (f"_{index}", field)


def _split(text: str) -> list[str]:
    """Splits at the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


def infer_type(value: Any) -> t.DataType:
    """The Spark type of one value; PICKLED for what Spark has no like of."""
    value = _plain(value)
    if value is None:
        return t.NullType()
    for kind, spark_type in _PYTHON:
        if isinstance(value, kind):
            return spark_type
    if isinstance(value, int):
        return t.LongType() if -(1 << 63) <= value < 1 << 63 else t.DecimalType(38, 0)
    if isinstance(value, datetime.datetime):
        return t.TimestampNTZType() if value.tzinfo is None else t.TimestampType()
    fields = fields_of(value)
    if fields is not None:
        return t.StructType([t.StructField(name, infer_type(part)) for name, part in fields])
    if isinstance(value, list):
        return t.ArrayType(merge_types(map(infer_type, value)))
    if isinstance(value, dict):
        return t.MapType(merge_types(map(infer_type, value)), merge_types(map(infer_type, value.values())))
    return PICKLED


_PYTHON: tuple[tuple[Any, t.DataType], ...] = (
    (bool, t.BooleanType()),
    (str, t.StringType()),
    (float, t.DoubleType()),
    ((bytes, bytearray), t.BinaryType()),
    (decimal.Decimal, t.DecimalType(38, 18)),
    (Instant, t.TimestampType()),
    (datetime.timedelta, t.DayTimeIntervalType()),
)


def _plain(value: Any) -> Any:
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():  # a numpy scalar
        return item()
    return value


def fields_of(value: Any) -> list[tuple[str, Any]] | None:
    """The fields of a tuple, a named tuple, a Row or a dataclass; None for anything else."""
    if isinstance(value, Row):
        names = value.get_field_names() or [f"_{index}" for index in range(1, len(value) + 1)]
        return list(zip(names, value, strict=True))
    if isinstance(value, tuple):
        names = list(getattr(value, "_fields", ())) or [f"_{index}" for index in range(1, len(value) + 1)]
        return list(zip(names, value, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return None


def merge_types(types: Iterable[t.DataType]) -> t.DataType:
    """One type for values of several; PICKLED where they have nothing in common."""
    merged: t.DataType = t.NullType()
    for other in types:
        merged = _merge(merged, other)
    return merged


def _merge(one: t.DataType, other: t.DataType) -> t.DataType:
    if one == other or isinstance(other, t.NullType):
        return one
    if isinstance(one, t.NullType):
        return other
    numbers = (t.LongType, t.DoubleType)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return t.DoubleType()
    if isinstance(one, t.ArrayType) and isinstance(other, t.ArrayType):
        return t.ArrayType(_merge(one.elementType, other.elementType))
    if isinstance(one, t.MapType) and isinstance(other, t.MapType):
        return t.MapType(_merge(one.keyType, other.keyType), _merge(one.valueType, other.valueType))
    if isinstance(one, t.StructType) and isinstance(other, t.StructType) and one.names == other.names:
        pairs = zip(one.fields, other.fields, strict=True)
        return t.StructType([t.StructField(a.name, _merge(a.dataType, b.dataType)) for a, b in pairs])
    return PICKLED


def without_nulls(type_: t.DataType) -> t.DataType:
    """The type with strings in place of parts that no value had: Spark can store those anywhere."""
    if isinstance(type_, t.NullType):
        return t.StringType()
    if isinstance(type_, t.ArrayType):
        return t.ArrayType(without_nulls(type_.elementType))
    if isinstance(type_, t.MapType):
        return t.MapType(without_nulls(type_.keyType), without_nulls(type_.valueType))
    if isinstance(type_, t.StructType):
        return t.StructType([t.StructField(field.name, without_nulls(field.dataType)) for field in type_.fields])
    return type_


class ConversionError(FiresteelError):
    """A value of a state that does not fit the type its column has."""
