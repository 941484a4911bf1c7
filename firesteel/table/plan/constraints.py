"""What holds for the rows of a sink: columns that cannot be null."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.table.plan.nodes import ChangeKeeping

__all__ = ["ConstraintEnforcer"]


@dataclass(frozen=True)
class ConstraintEnforcer(ChangeKeeping):
    """Fails for rows with a null in a NOT NULL column of their table, or drops them."""

    columns: tuple[int, ...]
    drops: bool = False

    def describe(self) -> str:
        names = [self.row_type.field_names[index] for index in self.columns]
        return f"ConstraintEnforcer(NotNullEnforcer(fields=[{', '.join(names)}]))"
