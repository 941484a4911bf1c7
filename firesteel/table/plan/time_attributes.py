"""Time attributes: columns by which streams are ordered."""

from __future__ import annotations

from firesteel.types.logical import (
    LocalZonedTimestampType,
    LogicalType,
    RowField,
    RowType,
    TimestampKind,
    TimestampType,
)

__all__ = ["is_proctime", "is_rowtime", "regular", "without_time_attributes"]


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


def without_time_attributes(row_type: RowType) -> RowType:
    """The row type with ordinary columns only."""
    if not any(is_rowtime(part.type) or is_proctime(part.type) for part in row_type.fields):
        return row_type
    return RowType([RowField(part.name, regular(part.type)) for part in row_type.fields], nullable=row_type.nullable)
