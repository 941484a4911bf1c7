"""Row times of schemas."""

from __future__ import annotations

from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.plan.time_attributes import is_rowtime, regular

__all__ = ["without_rowtime"]


def without_rowtime(schema: ResolvedSchema) -> ResolvedSchema:
    """The schema without row time: batch queries have none."""
    columns = (
        column.copy(regular(column.data_type)) if is_rowtime(column.data_type) else column for column in schema.columns
    )
    return ResolvedSchema(columns, schema.watermark_specs, schema.primary_key)
