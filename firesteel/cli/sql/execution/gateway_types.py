"""The types of columns as a SQL gateway writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firesteel.types import logical as t
from firesteel.types.logical import LogicalType, RowField, RowType

__all__ = ["row_type_of"]

_SIMPLE: dict[str, type[LogicalType]] = {
    "BOOLEAN": t.BooleanType,
    "TINYINT": t.TinyIntType,
    "SMALLINT": t.SmallIntType,
    "INTEGER": t.IntType,
    "BIGINT": t.BigIntType,
    "FLOAT": t.FloatType,
    "DOUBLE": t.DoubleType,
    "DATE": t.DateType,
    "NULL": t.NullType,
}
_WITH_LENGTH: dict[str, Callable[..., LogicalType]] = {
    "CHAR": t.CharType,
    "VARCHAR": t.VarCharType,
    "BINARY": t.BinaryType,
    "VARBINARY": t.VarBinaryType,
}
_WITH_PRECISION: dict[str, Callable[..., LogicalType]] = {
    "TIME_WITHOUT_TIME_ZONE": t.TimeType,
    "TIMESTAMP_WITHOUT_TIME_ZONE": t.TimestampType,
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": t.LocalZonedTimestampType,
}


def row_type_of(columns: Sequence[Mapping[str, Any]]) -> RowType:
    """The type of the rows of a result.

    >>> row_type_of([{"name": "n", "logicalType": {"type": "DECIMAL", "precision": 5, "scale": 2}}]).as_summary_string()
    'ROW<`n` DECIMAL(5, 2)>'
    """
    return RowType([RowField(column["name"], _type_of(column["logicalType"])) for column in columns])


def _type_of(written: Mapping[str, Any]) -> LogicalType:
    name, nullable = written["type"], bool(written.get("nullable", True))
    if name in _SIMPLE:
        return _SIMPLE[name](nullable=nullable) if name != "NULL" else t.NullType()
    if name in _WITH_LENGTH:
        return _WITH_LENGTH[name](written["length"], nullable=nullable)
    if name in _WITH_PRECISION:
        return _WITH_PRECISION[name](written["precision"], nullable=nullable)
    match name:
        case "DECIMAL":
            return t.DecimalType(written["precision"], written["scale"], nullable=nullable)
        case "ARRAY":
            return t.ArrayType(_type_of(written["elementType"]), nullable=nullable)
        case "MULTISET":
            return t.MultisetType(_type_of(written["elementType"]), nullable=nullable)
        case "MAP":
            return t.MapType(_type_of(written["keyType"]), _type_of(written["valueType"]), nullable=nullable)
        case "ROW":
            fields = [RowField(part["name"], _type_of(part["fieldType"])) for part in written["fields"]]
            return RowType(fields, nullable=nullable)
    return t.VarCharType(nullable=nullable)  # others are texts here anyway
