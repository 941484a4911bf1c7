"""Types of Delta Lake's columns and of Flink's, as Delta's connector for Flink maps them."""

from __future__ import annotations

import json
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.lakes.errors import require_library
from firesteel.types import logical as t
from firesteel.types.arrow import to_arrow_schema
from firesteel.types.logical import LogicalType, RowType

__all__ = ["fits", "row_type_of", "to_delta_schema"]

_SIMPLE: dict[str, LogicalType] = {
    "boolean": t.BooleanType(),
    "byte": t.TinyIntType(),
    "short": t.SmallIntType(),
    "integer": t.IntType(),
    "long": t.BigIntType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "date": t.DateType(),
    "string": t.VarCharType(t.MAX_LENGTH),
    "binary": t.VarBinaryType(t.MAX_LENGTH),
    "timestamp": t.LocalZonedTimestampType(6),
    "timestamp_ntz": t.TimestampType(6),
}


def row_type_of(schema_string: str) -> RowType:
    """The columns of a table, from the schema that its log has.

    >>> print(row_type_of('{"fields": [{"name": "a", "type": "decimal(9,2)", "nullable": false}]}'))
    ROW<`a` DECIMAL(9, 2) NOT NULL>
    """
    return _row(json.loads(schema_string))


def _row(struct: Any) -> RowType:
    fields = struct["fields"]
    return RowType.of(
        [field["name"] for field in fields],
        [_type(field["type"]).copy(nullable=field.get("nullable", True)) for field in fields],
    )


def _type(type_: Any) -> LogicalType:
    if isinstance(type_, str):
        if type_ in _SIMPLE:
            return _SIMPLE[type_]
        if type_.startswith("decimal"):
            precision, scale = type_.removeprefix("decimal").strip("()").split(",")
            return t.DecimalType(int(precision), int(scale))
    elif type_["type"] == "struct":
        return _row(type_)
    elif type_["type"] == "array":
        return t.ArrayType(_type(type_["elementType"]).copy(nullable=type_["containsNull"]))
    elif type_["type"] == "map":
        key = _type(type_["keyType"]).copy(nullable=False)
        return t.MapType(key, _type(type_["valueType"]).copy(nullable=type_["valueContainsNull"]))
    raise InvalidProgramError(
        f"Delta's type {type_} has no like in SQL here.", hint="Declare the table without the column."
    )


def to_delta_schema(row_type: RowType) -> Any:
    """The schema of a new table, for deltalake."""
    deltalake = require_library("deltalake", "delta", "Delta Lake")
    stored = RowType.of(row_type.field_names, [_stored(part.type) for part in row_type.fields])
    return deltalake.Schema.from_arrow(to_arrow_schema(stored, element_name="element", keeps_not_null=True))


def _stored(type_: LogicalType) -> LogicalType:
    """The type that the values of a column have in files: times with microseconds, and no lengths."""
    nullable = type_.nullable
    match type_:
        case t.TimestampType():
            return t.TimestampType(6, nullable=nullable)
        case t.LocalZonedTimestampType():
            return t.LocalZonedTimestampType(6, nullable=nullable)
        case t.BinaryType():
            return t.VarBinaryType(t.MAX_LENGTH, nullable=nullable)
        case t.ArrayType():
            return t.ArrayType(_stored(type_.element_type), nullable=nullable)
        case t.MapType():
            return t.MapType(_stored(type_.key_type), _stored(type_.value_type), nullable=nullable)
        case t.RowType():
            parts = [_stored(part.type) for part in type_.fields]
            return RowType.of(type_.field_names, parts).copy(nullable=nullable)
        case t.TimeType() | t.MultisetType() | t.YearMonthIntervalType() | t.DayTimeIntervalType():
            raise InvalidProgramError(f"Delta Lake has no type for {type_}.", hint="Cast the column to another type.")
    return type_


def fits(written: LogicalType, there: LogicalType) -> bool:
    """Whether values of a type of a program can be stored in a column of a table."""
    match written, there:
        case t.NullType(), _:
            return True
        case ((t.BinaryType() | t.VarBinaryType()), (t.BinaryType() | t.VarBinaryType())):
            return True
        case t.DecimalType(), t.DecimalType():
            return (written.precision, written.scale) == (there.precision, there.scale)
        case t.TimestampType(), t.TimestampType():
            return written.precision <= there.precision
        case t.LocalZonedTimestampType(), t.LocalZonedTimestampType():
            return written.precision <= there.precision
        case t.RowType(), t.RowType():
            return written.field_names == there.field_names and all(
                fits(one.type, other.type) for one, other in zip(written.fields, there.fields, strict=True)
            )
        case t.ArrayType(), t.ArrayType():
            return fits(written.element_type, there.element_type)
        case t.MapType(), t.MapType():
            return fits(written.key_type, there.key_type) and fits(written.value_type, there.value_type)
        case ((t.CharType() | t.VarCharType()), t.VarCharType()):
            return True
    return type(written) is type(there)
