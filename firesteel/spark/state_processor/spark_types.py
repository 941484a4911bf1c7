"""Spark types of the keys and values of a state: declared, given, or inferred from a sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as t

from firesteel.common.errors import FiresteelError
from firesteel.common.types import Row
from firesteel.types.declared import parse_declared
from firesteel.types.logical import LogicalTypeRoot, RowType
from firesteel.types.spark import to_spark
from firesteel.types.type_information import TypeInformation

__all__ = ["ConversionError", "fields_of", "parse_declared_type", "to_spark_type"]

_OTHERS: Mapping[LogicalTypeRoot, str | None] = {
    # Python keeps both in double precision: nothing may be lost on the way
    LogicalTypeRoot.FLOAT: "double",
    LogicalTypeRoot.TIME_WITHOUT_TIME_ZONE: "string",
    LogicalTypeRoot.RAW: "binary",  # pickled
}


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
    """The Spark type of a type as descriptors declare and savepoints keep it; None if it is unspecific.

    >>> parse_declared_type("MapTypeInfo<String, ListTypeInfo<Long>>").simpleString()
    'map<string,array<bigint>>'
    >>> parse_declared_type("RowTypeInfo(name: String, age: Integer)").simpleString()
    'struct<name:string,age:int>'
    """
    declared = parse_declared(text)
    if declared is None:
        return None
    return t.StructType.fromJson(to_spark(RowType.of(["type"], [declared]), _OTHERS)).fields[0].dataType


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
