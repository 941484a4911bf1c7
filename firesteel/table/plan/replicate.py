"""The nodes that repeat rows: for grouping sets, and for INTERSECT ALL and EXCEPT ALL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import SingleInput, unique_names
from firesteel.types.logical import BigIntType, RowField, RowType

__all__ = ["EXPAND_ID", "Expand", "ReplicateRows", "set_id"]

EXPAND_ID = "$e"


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


def set_id(grouping: Sequence[int], group: Sequence[int]) -> int:
    """The id of a grouping set: a bit per grouping column, the first one the highest, 1 if it is not in the set.

    That is also what GROUPING_ID over these columns is.

    >>> set_id((0, 1), (0,))
    1
    """
    bits = ["0" if index in group else "1" for index in grouping]
    return int("".join(bits) or "0", 2)


@dataclass(frozen=True)
class Expand(SingleInput):
    """Each row once per grouping set, with nulls for the grouping columns that are not in it.

    The columns are those of the input, then copies of some of them as they were, then ``$e``, the id of the set.
    """

    grouping: tuple[int, ...]
    grouping_sets: tuple[tuple[int, ...], ...]
    copies: tuple[int, ...] = ()

    @cached_property
    def _type(self) -> RowType:
        fields = list(self.input.row_type.fields)
        for index in self.absent:
            fields[index] = RowField(fields[index].name, fields[index].type.copy(True))
        fields += [RowField(f"${index}", self.input.row_type.fields[index].type) for index in self.copies]
        fields.append(RowField(EXPAND_ID, BigIntType(nullable=False)))
        names = unique_names(part.name for part in fields)
        return RowType.of(names, [part.type for part in fields], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    @property
    def absent(self) -> list[int]:
        """The columns that are null in some of the rows."""
        return [index for index in self.grouping if any(index not in group for group in self.grouping_sets)]

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return before_wanted, (before_wanted,)

    def describe(self) -> str:
        names = self.input.row_type.field_names
        sets = ", ".join("(" + ", ".join(names[index] for index in group) + ")" for group in self.grouping_sets)
        return f"Expand(groupingSets=[{sets}], select=[{', '.join(self.row_type.field_names)}])"
