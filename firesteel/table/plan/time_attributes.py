"""Time attributes: columns by which streams are ordered."""

from __future__ import annotations

from typing import TypeVar, cast

from firesteel.table.bound.errors import ValidationError
from firesteel.types.logical import (
    ArrayType,
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    MultisetType,
    RowField,
    RowType,
    TimestampKind,
    TimestampType,
)

__all__ = ["as_rowtime", "is_proctime", "is_rowtime", "materialized", "regular", "without_time_attributes"]

T = TypeVar("T", bound=LogicalType)


def as_rowtime(type_: LogicalType) -> LogicalType:
    """The type as the row time of a table."""
    if not isinstance(type_, (TimestampType, LocalZonedTimestampType)):
        raise ValidationError(f"A row time is a TIMESTAMP(p) or TIMESTAMP_LTZ(p), not {type_.as_summary_string()}.")
    return type(type_)(type_.precision, TimestampKind.ROWTIME, nullable=type_.nullable)


def is_rowtime(type_: LogicalType) -> bool:
    """Whether a column is an event time attribute."""
    return getattr(type_, "kind", None) is TimestampKind.ROWTIME


def is_proctime(type_: LogicalType) -> bool:
    """Whether a column is a processing time attribute."""
    return getattr(type_, "kind", None) is TimestampKind.PROCTIME


def regular(type_: LogicalType) -> LogicalType:
    """The type as that of an ordinary column."""
    if isinstance(type_, (TimestampType, LocalZonedTimestampType)) and type_.is_time_attribute:
        return type(type_)(type_.precision, nullable=type_.nullable)
    return type_


def materialized(type_: T) -> T:
    """The type without time attributes, also within collections.

    >>> rowtime = TimestampType(3, TimestampKind.ROWTIME)
    >>> print(materialized(ArrayType(rowtime)))
    ARRAY<TIMESTAMP(3)>
    """
    found: LogicalType = type_
    if isinstance(type_, (ArrayType, MultisetType)):
        found = type(type_)(materialized(type_.element_type), nullable=type_.nullable)
    elif isinstance(type_, MapType):
        found = MapType(materialized(type_.key_type), materialized(type_.value_type), nullable=type_.nullable)
    elif isinstance(type_, RowType):
        fields = [part._replace(type=materialized(part.type)) for part in type_.fields]
        found = RowType(fields, is_positional=type_.is_positional, nullable=type_.nullable)
    else:
        found = regular(type_)
    return cast("T", found)


def without_time_attributes(row_type: RowType) -> RowType:
    """The row type with ordinary columns only."""
    if not any(is_rowtime(part.type) or is_proctime(part.type) for part in row_type.fields):
        return row_type
    return RowType([RowField(part.name, regular(part.type)) for part in row_type.fields], nullable=row_type.nullable)
