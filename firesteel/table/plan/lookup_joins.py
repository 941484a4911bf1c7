"""Joins with rows that are looked up in an external system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from firesteel.table.bound.nodes import Expression
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.lookups import DEFAULT_LOOKUP, LookupOptions
from firesteel.table.plan.nodes import NO_KEYS, JoinKind, Keys, SingleInput, TableScan, unique_names
from firesteel.types.logical import RowField, RowType

__all__ = ["LookupJoin"]


@dataclass(frozen=True)
class LookupJoin(SingleInput):
    """Each row with the rows of a table that a lookup finds when the row comes."""

    scan: TableScan
    kind: JoinKind
    keys: tuple[tuple[int, Expression], ...]
    """Columns of the table, and what they have to be equal to: a column of the input or a constant."""
    projection: tuple[Expression, ...]
    """The columns of results that come from the table, over those of the table."""
    names: tuple[str, ...]
    filter: Expression | None = None
    """What rows of the table have to fulfil, over its columns."""
    condition: Expression | None = None
    """What pairs have to fulfil, over the columns of the input and the projection."""
    options: LookupOptions = DEFAULT_LOOKUP

    @cached_property
    def _type(self) -> RowType:
        nullable = self.kind is JoinKind.LEFT
        added = [
            RowField(name, expression.type.copy(expression.type.nullable or nullable))
            for name, expression in zip(self.names, self.projection, strict=True)
        ]
        fields = [*self.input.row_type.fields, *added]
        names = unique_names(part.name for part in fields)
        return RowType.of(names, [part.type for part in fields], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        # an update may find other rows than the row before
        wanted = before_wanted or not self._is_unique
        return wanted, (wanted,)

    @property
    def _is_unique(self) -> bool:
        key = set(self.scan.primary_key)
        return bool(key) and key <= {column for column, _ in self.keys}

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return inputs[0] if self._is_unique else NO_KEYS

    def describe(self) -> str:
        names = self.scan.row_type.field_names
        keys = ", ".join(f"{names[column]}={value}" for column, value in self.keys)
        rest = "" if self.condition is None else f", joinCondition=[{self.condition}]"
        return (
            f"LookupJoin(table=[{self.scan.identifier.as_summary_string()}], joinType=[{self.kind.value}], "
            f"lookup=[{keys}]{rest})"
        )
