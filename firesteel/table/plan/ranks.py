"""The nodes of Top-N, deduplication, LIMIT and sorts by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import NO_KEYS, Keys, SingleInput, SortKey
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.types.logical import BigIntType, RowField, RowType

__all__ = ["Rank", "TemporalSort"]


@dataclass(frozen=True)
class Rank(SingleInput):
    """The rows of each partition whose number in an order is in a range; with or without the number as last column.

    Without an order rows are numbered as they come.
    """

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    start: int = 1
    end: int | None = None
    end_column: int | None = None
    """The column with the last number, if that is not a constant; the first row of a partition decides."""
    number: str | None = None
    """The name of the column with the number; None if it is not read."""
    is_limit: bool = False
    """Whether it is ORDER BY with LIMIT, or LIMIT alone."""
    update_key: tuple[int, ...] | None = None
    """The columns that identify a row of the input, if rows that are updated never move down."""

    @cached_property
    def _type(self) -> RowType:
        if self.number is None:
            return self.input.row_type
        return RowType([*self.input.row_type.fields, RowField(self.number, BigIntType(nullable=False))], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    @property
    def is_first(self) -> bool:
        """Whether it has one row of each partition, without a number."""
        return (self.start, self.end, self.number) == (1, 1, None)

    @property
    def time_column(self) -> int | None:
        """The time attribute by which rows are sorted, if by nothing else."""
        if len(self.order) != 1:
            return None
        index = self.order[0].index
        type_ = self.input.row_type.fields[index].type
        return index if is_rowtime(type_) or is_proctime(type_) else None

    @property
    def keeps_first_rows(self) -> bool:
        """Whether rows of an input without updates are never replaced by later ones."""
        if not self.order:
            return True
        column = self.time_column
        if column is None or self.order[0].descending:
            return False
        return is_proctime(self.input.row_type.fields[column].type) or (self.is_first and not self.is_limit)

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        if inputs[0].is_insert_only and self.keeps_first_rows:
            return inputs[0]
        return ChangelogMode.all()

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return before_wanted, (self.update_key is None,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        partition = frozenset(self.partition)
        if (self.start, self.end) == (1, 1):
            return frozenset({partition})
        kept = frozenset(key for key in inputs[0] if key >= partition)
        if self.number is None:
            return kept
        return kept | {partition | {len(self.input.row_type.fields)}}

    def describe(self) -> str:
        names = self.row_type.field_names
        if self.is_limit and self.end is not None:
            by = f"orderBy=[{', '.join(key.describe(names) for key in self.order)}], " if self.order else ""
            fetch = self.end - self.start + 1
            return f"{'SortLimit' if by else 'Limit'}({by}offset=[{self.start - 1}], fetch=[{fetch}])"
        end = f"rankEnd={self.end}" if self.end_column is None else f"rankEnd={names[self.end_column]}"
        return (
            f"Rank(rankType=[ROW_NUMBER], rankRange=[rankStart={self.start}, {end}], "
            f"partitionBy=[{', '.join(names[index] for index in self.partition)}], "
            f"orderBy=[{', '.join(key.describe(names) for key in self.order)}], select=[{', '.join(names)}])"
        )


@dataclass(frozen=True)
class TemporalSort(SingleInput):
    """Rows by a time attribute, ascending, and rows of the same time by other columns."""

    order: tuple[SortKey, ...]

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        if not inputs[0].is_insert_only:
            raise ValidationError(
                "TemporalSort doesn't support consuming update and delete changes which is produced by node "
                f"{self.input.describe()}"
            )
        return inputs[0]

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return NO_KEYS

    def describe(self) -> str:
        names = self.row_type.field_names
        return f"TemporalSort(orderBy=[{', '.join(key.describe(names) for key in self.order)}])"
