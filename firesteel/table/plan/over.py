"""The node of OVER: aggregate and rank functions over the rows around each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from firesteel.common.types import RowKind
from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import Keys, SingleInput, SortKey
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.types.logical import LogicalType, RowField, RowType

__all__ = ["Bound", "BoundKind", "BoundedOver", "Frame", "Over", "OverCall", "OverGroup"]


class BoundKind(Enum):
    """Where a frame begins or ends, in the order of rows."""

    UNBOUNDED_PRECEDING = 0
    PRECEDING = 1
    CURRENT_ROW = 2
    FOLLOWING = 3
    UNBOUNDED_FOLLOWING = 4


@dataclass(frozen=True)
class Bound:
    """The begin or the end of a frame; the offset is a number of rows, or of what the order is measured in."""

    kind: BoundKind
    offset: Any = 0

    def __str__(self) -> str:
        words = self.kind.name.replace("_", " ")
        return f"{self.offset} {words}" if self.kind in (BoundKind.PRECEDING, BoundKind.FOLLOWING) else words


@dataclass(frozen=True)
class Frame:
    """The rows that belong to the window of a row."""

    rows: bool
    """ROWS; else RANGE, which includes all rows that are equal in the order."""
    lower: Bound
    upper: Bound

    def __str__(self) -> str:
        return f"{'ROWS' if self.rows else 'RANGE'} BETWEEN {self.lower} AND {self.upper}"


@dataclass(frozen=True)
class OverCall:
    """A call of a function over a window; arguments are columns of the input."""

    function: str
    arguments: tuple[int, ...]
    type: LogicalType
    name: str
    distinct: bool = False
    symbols: tuple[str, ...] = ()
    definition: Any = field(default=None, repr=False)
    """The definition of a function of the user."""
    place: Position | None = field(default=None, compare=False, repr=False)
    """Where the call is in its statement, for errors."""

    def describe(self, names: Sequence[str]) -> str:
        """The call with the names of the input's columns."""
        arguments = ", ".join(names[index] for index in self.arguments) or "*"
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{arguments}) AS {self.name}"


@dataclass(frozen=True)
class OverGroup:
    """Calls over the same window."""

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    frame: Frame
    calls: tuple[OverCall, ...]
    position: Position | None = field(default=None, compare=False)
    """Where the first call is in the statement."""

    def describe(self, names: Sequence[str]) -> str:
        """The window and its calls, as EXPLAIN shows them."""
        parts = [f"partitionBy=[{', '.join(names[index] for index in self.partition)}]"] if self.partition else []
        parts += [f"orderBy=[{', '.join(key.describe(names) for key in self.order)}]"] if self.order else []
        parts += [f"window=[{self.frame}]", f"select=[{', '.join(call.describe(names) for call in self.calls)}]"]
        return ", ".join(parts)


@dataclass(frozen=True)
class Over(SingleInput):
    """The columns of each row, then the results of the calls of each group."""

    groups: tuple[OverGroup, ...]

    @cached_property
    def _type(self) -> RowType:
        calls = [RowField(call.name, call.type) for group in self.groups for call in group.calls]
        return RowType([*self.input.row_type.fields, *calls], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    @property
    def is_by_time(self) -> bool:
        """Whether rows are ordered by a time attribute: then a result never changes."""
        times = [self.input.row_type.fields[key.index].type for group in self.groups for key in group.order[:1]]
        return any(is_rowtime(type_) or is_proctime(type_) for type_ in times)

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        if self.is_by_time:
            if not inputs[0].is_insert_only:
                raise ValidationError(
                    "OverAggregate doesn't support consuming update and delete changes which is produced by node "
                    f"{self.input.describe()}",
                    position=self.groups[0].position,
                )
            return inputs[0]
        # a row changes the results of those after it
        every = ChangelogMode.all()
        return ChangelogMode.of(every.kinds - {RowKind.DELETE}) if inputs[0].is_insert_only else every

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return True, (True,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return inputs[0]

    def describe(self) -> str:
        names = self.input.row_type.field_names
        return f"OverAggregate({'; '.join(group.describe(names) for group in self.groups)})"


@dataclass(frozen=True)
class BoundedOver(SingleInput):
    """The same for one window of a bounded query, in any order and with any frame: results come at the end."""

    group: OverGroup

    @cached_property
    def _type(self) -> RowType:
        calls = [RowField(call.name, call.type) for call in self.group.calls]
        return RowType([*self.input.row_type.fields, *calls], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return inputs[0]

    def describe(self) -> str:
        return f"BoundedOverAggregate({self.group.describe(self.input.row_type.field_names)})"
