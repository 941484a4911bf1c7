"""Row times of schemas."""

from __future__ import annotations

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.plan.time_attributes import is_rowtime, regular
from firesteel.types.logical import LocalZonedTimestampType, LogicalType, TimestampKind, TimestampType

__all__ = ["as_rowtime", "without_rowtime"]


def as_rowtime(type_: LogicalType) -> LogicalType:
    """The type as the row time of a table."""
    if not isinstance(type_, (TimestampType, LocalZonedTimestampType)):
        raise ValidationError(f"A row time is a TIMESTAMP(p) or TIMESTAMP_LTZ(p), not {type_.as_summary_string()}.")
    return type(type_)(type_.precision, TimestampKind.ROWTIME, nullable=type_.nullable)


def without_rowtime(schema: ResolvedSchema) -> ResolvedSchema:
    """The schema without row time: batch queries have none."""
    columns = (
        column.copy(regular(column.data_type)) if is_rowtime(column.data_type) else column for column in schema.columns
    )
    return ResolvedSchema(columns, schema.watermark_specs, schema.primary_key)
