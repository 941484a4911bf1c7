"""Logical types as Spark's, in the form of JSON in which Spark keeps schemas; PySpark is not needed for that.

Spark has microseconds only, no lengths of strings that its functions would keep, and no multisets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.types import logical as t
from firesteel.types.logical import FieldsType, LogicalType, LogicalTypeRoot

__all__ = ["UnsupportedTypeError", "to_spark"]

_Root = LogicalTypeRoot

_SIMPLE = {
    _Root.CHAR: "string",
    _Root.VARCHAR: "string",
    _Root.BOOLEAN: "boolean",
    _Root.BINARY: "binary",
    _Root.VARBINARY: "binary",
    _Root.TINYINT: "byte",
    _Root.SMALLINT: "short",
    _Root.INTEGER: "integer",
    _Root.BIGINT: "long",
    _Root.FLOAT: "float",
    _Root.DOUBLE: "double",
    _Root.DATE: "date",
    _Root.TIME_WITHOUT_TIME_ZONE: "time(6)",
    _Root.TIMESTAMP_WITHOUT_TIME_ZONE: "timestamp_ntz",
    _Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE: "timestamp",
    _Root.INTERVAL_YEAR_MONTH: "interval year to month",
    _Root.INTERVAL_DAY_TIME: "interval day to second",
    _Root.NULL: "void",
}


class UnsupportedTypeError(ValueError):
    """Spark has no type for a type; ``place`` is where it was found."""

    def __init__(self, type_: LogicalType, place: str) -> None:
        super().__init__(f"{type_}, the type of '{place}', is none that Spark has")
        self.type = type_
        self.place = place


def to_spark(type_: LogicalType, others: Mapping[LogicalTypeRoot, str | None] | None = None, place: str = "") -> Any:
    """Spark's type as JSON: a name, or a dict. ``others`` names other types for some roots; None for none.

    >>> to_spark(t.ArrayType(t.DecimalType(10, 2)))
    {'type': 'array', 'elementType': 'decimal(10,2)', 'containsNull': True}
    """
    names = _SIMPLE if others is None else {**_SIMPLE, **others}
    return _to_spark(type_, names, place)


def _to_spark(type_: LogicalType, names: Mapping[LogicalTypeRoot, str | None], place: str) -> Any:
    match type_:
        case t.DecimalType(precision=None):
            return "decimal(38,0)" if type_.is_integer else "decimal(38,18)"
        case t.DecimalType():
            return f"decimal({type_.precision},{type_.scale})"
        case t.ArrayType():
            element = _to_spark(type_.element_type, names, f"{place}[]")
            return {"type": "array", "elementType": element, "containsNull": True}
        case t.MapType():
            key = _to_spark(type_.key_type, names, f"{place}.key")
            value = _to_spark(type_.value_type, names, f"{place}.value")
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        case FieldsType():
            within = f"{place}." if place else ""
            fields = [(part.name, _to_spark(part.type, names, f"{within}{part.name}")) for part in type_.fields]
            return {
                "type": "struct",
                "fields": [{"name": name, "type": found, "nullable": True, "metadata": {}} for name, found in fields],
            }
    name = names.get(type_.root)
    if name is None:
        raise UnsupportedTypeError(type_, place)
    return name
