"""Event time that comes with the rows of a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import Keys, SingleInput
from firesteel.types.logical import RowType

__all__ = ["SourceWatermark"]


@dataclass(frozen=True)
class SourceWatermark(SingleInput):
    """SOURCE_WATERMARK(): the watermarks are those of the stream below."""

    type: RowType
    """The columns of the input; the rowtime column is a time attribute."""
    rowtime: int

    @property
    def row_type(self) -> RowType:
        return self.type

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return before_wanted, (before_wanted,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return inputs[0]

    def describe(self) -> str:
        return f"WatermarkAssigner(rowtime=[{self.type.field_names[self.rowtime]}], watermark=[SOURCE_WATERMARK()])"
