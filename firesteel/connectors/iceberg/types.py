"""Types of Iceberg's columns and of Flink's, as Iceberg's connector for Flink maps them."""

from __future__ import annotations

from itertools import count
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.lakes.errors import require_library
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType, RowType

__all__ = ["fits", "from_iceberg", "row_type_of", "to_iceberg", "to_iceberg_schema"]

_MICROS = 6
_NANOS = 9


def row_type_of(schema: Any) -> RowType:
    """The columns of a schema of pyiceberg."""
    return RowType.of([field.name for field in schema.fields], [_field_type(field) for field in schema.fields])


def _field_type(field: Any) -> LogicalType:
    return from_iceberg(field.field_type).copy(nullable=not field.required)


def from_iceberg(type_: Any) -> LogicalType:
    """The type of Flink for one of Iceberg.

    TIME has milliseconds here, as many as Flink keeps of Iceberg's microseconds.
    """
    i = require_library("pyiceberg.types", "iceberg", "Iceberg")
    simple: dict[type, LogicalType] = {
        i.BooleanType: t.BooleanType(),
        i.IntegerType: t.IntType(),
        i.LongType: t.BigIntType(),
        i.FloatType: t.FloatType(),
        i.DoubleType: t.DoubleType(),
        i.DateType: t.DateType(),
        i.TimeType: t.TimeType(3),
        i.TimestampType: t.TimestampType(_MICROS),
        i.TimestamptzType: t.LocalZonedTimestampType(_MICROS),
        i.TimestampNanoType: t.TimestampType(_NANOS),
        i.TimestamptzNanoType: t.LocalZonedTimestampType(_NANOS),
        i.StringType: t.VarCharType(t.MAX_LENGTH),
        i.UUIDType: t.BinaryType(16),
        i.BinaryType: t.VarBinaryType(t.MAX_LENGTH),
    }
    if type(type_) in simple:
        return simple[type(type_)]
    match type_:
        case i.FixedType():
            return t.BinaryType(len(type_))
        case i.DecimalType():
            return t.DecimalType(type_.precision, type_.scale)
        case i.StructType():
            return RowType.of([field.name for field in type_.fields], [_field_type(field) for field in type_.fields])
        case i.ListType():
            return t.ArrayType(from_iceberg(type_.element_type).copy(nullable=not type_.element_required))
        case i.MapType():
            key = from_iceberg(type_.key_type).copy(nullable=False)
            return t.MapType(key, from_iceberg(type_.value_type).copy(nullable=not type_.value_required))
    raise InvalidProgramError(
        f"Iceberg's type {type_} has no like in SQL here.", hint="Declare the table without the column."
    )


def to_iceberg_schema(row_type: RowType, key: tuple[str, ...] = ()) -> Any:
    """The schema of a new table; the key is that of its identifier fields."""
    schema = require_library("pyiceberg.schema", "iceberg", "Iceberg")
    ids = count(1)
    fields = _fields(row_type, ids)
    by_name = {field.name: field.field_id for field in fields}
    return schema.Schema(*fields, identifier_field_ids=[by_name[name] for name in key])


def _fields(row_type: Any, ids: Any) -> list[Any]:
    i = require_library("pyiceberg.types", "iceberg", "Iceberg")
    numbered = [(next(ids), part) for part in row_type.fields]
    return [
        i.NestedField(number, part.name, to_iceberg(part.type, ids), required=not part.type.nullable)
        for number, part in numbered
    ]


def to_iceberg(type_: LogicalType, ids: Any = None) -> Any:
    """The type of Iceberg for one of Flink; ``ids`` numbers the fields within it."""
    i = require_library("pyiceberg.types", "iceberg", "Iceberg")
    ids = count(10_000) if ids is None else ids
    match type_:
        case t.BooleanType():
            return i.BooleanType()
        case t.TinyIntType() | t.SmallIntType() | t.IntType():
            return i.IntegerType()
        case t.BigIntType():
            return i.LongType()
        case t.FloatType():
            return i.FloatType()
        case t.DoubleType():
            return i.DoubleType()
        case t.DecimalType() if type_.precision is not None and type_.scale is not None:
            return i.DecimalType(type_.precision, type_.scale)
        case t.CharType() | t.VarCharType():
            return i.StringType()
        case t.BinaryType():
            return i.FixedType(type_.length)
        case t.VarBinaryType():
            return i.BinaryType()
        case t.DateType():
            return i.DateType()
        case t.TimeType():
            return i.TimeType()
        case t.TimestampType():
            return i.TimestampType() if type_.precision <= _MICROS else i.TimestampNanoType()
        case t.LocalZonedTimestampType():
            return i.TimestamptzType() if type_.precision <= _MICROS else i.TimestamptzNanoType()
        case t.RowType():
            return i.StructType(*_fields(type_, ids))
        case t.ArrayType():
            number, element = next(ids), type_.element_type
            return i.ListType(number, to_iceberg(element, ids), element_required=not element.nullable)
        case t.MapType():
            return _map(i, type_.key_type, type_.value_type, ids)
        case t.MultisetType():
            return _map(i, type_.element_type, t.IntType(nullable=False), ids)
    raise InvalidProgramError(f"Iceberg has no type for {type_}.", hint="Cast the column to another type.")


def _map(i: Any, key: LogicalType, value: LogicalType, ids: Any) -> Any:
    key_id, value_id = next(ids), next(ids)
    return i.MapType(key_id, to_iceberg(key, ids), value_id, to_iceberg(value, ids), value_required=not value.nullable)


def fits(written: LogicalType, there: LogicalType) -> bool:
    """Whether values of a type of a program can be stored in a column whose type is one of ``from_iceberg``."""
    if isinstance(written, t.NullType):
        return True
    match written, there:
        case t.BinaryType(), t.BinaryType():
            return written.length == there.length
        case ((t.BinaryType() | t.VarBinaryType()), t.VarBinaryType()):
            return True
        case t.DecimalType(), t.DecimalType():
            return (written.precision, written.scale) == (there.precision, there.scale)
        case ((t.IntType() | t.SmallIntType() | t.TinyIntType()), (t.IntType() | t.BigIntType())):
            return True
        case t.FloatType(), t.DoubleType():
            return True
        case t.TimestampType(), t.TimestampType():
            return written.precision <= there.precision
        case t.LocalZonedTimestampType(), t.LocalZonedTimestampType():
            return written.precision <= there.precision
        case (t.RowType(), t.RowType()):
            return written.field_names == there.field_names and all(
                fits(one.type, other.type) for one, other in zip(written.fields, there.fields, strict=True)
            )
        case (t.ArrayType(), t.ArrayType()):
            return fits(written.element_type, there.element_type)
        case (t.MapType(), t.MapType()):
            return fits(written.key_type, there.key_type) and fits(written.value_type, there.value_type)
        case (t.MultisetType(), t.MapType()):
            return fits(written.element_type, there.key_type)
        case ((t.CharType() | t.VarCharType()), t.VarCharType()):
            return True
    return type(written) is type(there)
