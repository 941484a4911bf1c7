"""The node that repeats rows, of which INTERSECT ALL and EXCEPT ALL are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import SingleInput
from firesteel.types.logical import RowType

__all__ = ["ReplicateRows"]


@dataclass(frozen=True)
class ReplicateRows(SingleInput):
    """Each row as often as its first column says, without that column."""

    @cached_property
    def _type(self) -> RowType:
        return RowType(self.input.row_type.fields[1:], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        # rows have no key by which fewer of them could replace others
        return True, (True,)

    def describe(self) -> str:
        return (
            f"ReplicateRows(count=[{self.input.row_type.field_names[0]}], select=[{', '.join(self._type.field_names)}])"
        )
