"""Which Spark type the keys and values of a state have: declared, given, or found from a sample."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import types as t

from firesteel.common.errors import FiresteelError
from firesteel.common.types import Row
from firesteel.types.type_information import TypeInformation

__all__ = ["ConversionError", "fields_of", "parse_declared_type", "to_spark_type"]

_PICKLED = t.BinaryType()
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
    return parse_declared_type(text) or _PICKLED


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


class ConversionError(FiresteelError):
    """A value of a state that does not fit the type its column has."""
