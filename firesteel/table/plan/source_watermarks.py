"""Event time that comes with the rows of a source."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.plan.nodes import ChangeKeeping
from firesteel.types.logical import RowType

__all__ = ["SourceWatermark"]


@dataclass(frozen=True)
class SourceWatermark(ChangeKeeping):
    """SOURCE_WATERMARK(): the watermarks are those of the stream below."""

    type: RowType
    """The columns of the input; the rowtime column is a time attribute."""
    rowtime: int

    @property
    def row_type(self) -> RowType:
        return self.type

    def describe(self) -> str:
        return f"WatermarkAssigner(rowtime=[{self.type.field_names[self.rowtime]}], watermark=[SOURCE_WATERMARK()])"
