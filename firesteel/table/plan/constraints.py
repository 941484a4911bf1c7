"""What holds for the rows of a sink: columns that cannot be null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import Keys, SingleInput

__all__ = ["ConstraintEnforcer"]


@dataclass(frozen=True)
class ConstraintEnforcer(SingleInput):
    """Fails for rows with a null in a NOT NULL column of their table, or drops them."""

    columns: tuple[int, ...]
    drops: bool = False

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return before_wanted, (before_wanted,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return inputs[0]

    def describe(self) -> str:
        names = [self.row_type.field_names[index] for index in self.columns]
        return f"ConstraintEnforcer(NotNullEnforcer(fields=[{', '.join(names)}]))"
