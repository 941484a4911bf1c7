"""Nodes of windows: the table function that assigns them, and aggregations of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from firesteel.common.types import RowKind
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.joins import KeyedJoin
from firesteel.table.plan.nodes import AggregateCall, DistinctSplit, Keys, LogicalNode, SingleInput, SortKey
from firesteel.table.plan.time_attributes import is_proctime
from firesteel.table.plan.window_kinds import SessionWindow, Window
from firesteel.types.logical import BigIntType, LogicalType, RowField, RowType, TimestampType

__all__ = ["EmitStrategy", "WindowAggregate", "WindowColumn", "WindowJoin", "WindowRank", "WindowTableFunction"]

TIMESTAMP = TimestampType(3, nullable=False)


class WindowColumn(Enum):
    """A column that says which window a row belongs to."""

    START = "window_start"
    END = "window_end"
    TIME = "window_time"

    def type(self, time_type: LogicalType) -> LogicalType:
        """Its type for windows of a time attribute."""
        return time_type if self is WindowColumn.TIME else TIMESTAMP


@dataclass(frozen=True)
class EmitStrategy:
    """When a window has results besides the one at its end. Times in milliseconds; 0 is with each row."""

    early_ms: int | None = None
    """How often before it ends; None for never."""
    late_ms: int | None = None
    """How often after it has ended, for late rows."""
    lateness_ms: int = 0
    """How late rows may be."""

    def __str__(self) -> str:
        parts = [] if self.early_ms is None else [f"early delay {self.early_ms} millisecond"]
        parts += [] if self.late_ms is None else [f"late delay {self.late_ms} millisecond"]
        return ", ".join(parts)


@dataclass(frozen=True)
class WindowTableFunction(SingleInput):
    """Each row once for each window that it belongs to, with the columns of the window at the end."""

    window: Window
    time: int
    """The time attribute."""
    partition: tuple[int, ...] = ()
    """The key of sessions."""
    names: tuple[str, str, str] = (WindowColumn.START.value, WindowColumn.END.value, WindowColumn.TIME.value)
    is_group_window: bool = False
    """Whether it stands for a function in GROUP BY, where the time of a window is nullable."""
    is_bounded: bool = False
    """Whether the windows are those of a batch, where the time may be any timestamp."""
    emit: EmitStrategy | None = None
    """When a group window has results before and after its end."""

    @property
    def time_type(self) -> LogicalType:
        """The type of the time of windows."""
        return self.input.row_type.fields[self.time].type.copy(self.is_group_window)

    @cached_property
    def _type(self) -> RowType:
        added = zip(self.names, WindowColumn, strict=True)
        fields = [RowField(name, column.type(self.time_type)) for name, column in added]
        return RowType([*self.input.row_type.fields, *fields], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    @property
    def is_proctime(self) -> bool:
        """Whether rows belong to the window of the time at which they are processed."""
        return is_proctime(self.time_type)

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return super().changelog(inputs) if isinstance(self.window, SessionWindow) else inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return True, (True,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        width = len(self.input.row_type.fields)
        return frozenset(key | {width, width + 1} for key in inputs[0])

    def describe(self) -> str:
        names = self.input.row_type.field_names
        key = f", partition keys=[{', '.join(names[index] for index in self.partition)}]" if self.partition else ""
        return f"WindowTableFunction(window=[{self.window}, time_col=[{names[self.time]}]{key}])"


@dataclass(frozen=True)
class WindowAggregate(SingleInput):
    """Aggregates rows by window and by other columns; a result comes when its window ends.

    Either the time attribute is a column of the input, from which the windows of rows are computed, or the windows are
    attached: then ``start`` and ``end`` are columns of the input.
    """

    window: Window
    time_type: LogicalType
    grouping: tuple[int | WindowColumn, ...]
    """What the first columns of the results are."""
    names: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    time: int | None = None
    start: int | None = None
    end: int | None = None
    is_bounded: bool = False
    emit: EmitStrategy | None = None
    split: DistinctSplit | None = None
    """Which part of an aggregate it is, if distinct values are split into buckets."""

    @cached_property
    def _type(self) -> RowType:
        fields = []
        for name, column in zip(self.names, self.grouping, strict=True):
            if isinstance(column, WindowColumn):
                fields.append(RowField(name, column.type(self.time_type)))
            else:
                fields.append(RowField(name, self.input.row_type.fields[column].type))
        fields += [RowField(call.name, call.type) for call in self.calls]
        return RowType(fields, nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    @property
    def keys(self) -> tuple[int, ...]:
        """The columns by which rows are grouped besides the window."""
        return tuple(column for column in self.grouping if isinstance(column, int))

    @property
    def is_attached(self) -> bool:
        """Whether the rows have the bounds of their windows."""
        return self.end is not None

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        if self.emit is None:
            return ChangelogMode.insert_only()
        if inputs[0].is_insert_only:
            return ChangelogMode.of(ChangelogMode.all().kinds - {RowKind.DELETE})
        return ChangelogMode.all()

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return before_wanted and self.emit is not None, (True,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return frozenset({frozenset(range(len(self.grouping)))})

    def describe(self) -> str:
        names = self.input.row_type.field_names
        parts = []
        if self.keys:
            parts.append(f"groupBy=[{', '.join(names[index] for index in self.keys)}]")
        if self.is_attached:
            assert self.end is not None
            parts.append(f"window=[{self.window}, win_end=[{names[self.end]}]]")
        else:
            assert self.time is not None
            parts.append(f"window=[{self.window}, time_col=[{names[self.time]}]]")
        if self.split is not None:
            parts.append(f"partialFinalType=[{self.split.phase}]")
        parts += (f"{call.name}=[{call.describe(names)}]" for call in self.calls)
        if self.emit is not None:
            parts.append(f"emit=[{self.emit}]")
        return f"WindowAggregate({', '.join(parts)})"


@dataclass(frozen=True)
class WindowJoin(KeyedJoin):
    """Pairs of rows of the same window with equal keys; the keys are those besides the window."""

    window: Window | None = None
    time_type: LogicalType | None = None
    left_bounds: tuple[int, int] = (0, 0)
    """The columns of the start and the end of windows."""
    right_bounds: tuple[int, int] = (0, 0)

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return LogicalNode.changelog(self, inputs)

    def describe(self) -> str:
        return super().describe().replace("(", f"(window=[{self.window}], ", 1)


@dataclass(frozen=True)
class WindowRank(SingleInput):
    """Of each window and partition, the rows whose number in an order is in a range, when the window is over."""

    window: Window
    time_type: LogicalType
    bounds: tuple[int, int]
    """The columns of the start and the end of windows."""
    partition: tuple[int, ...]
    """The columns besides the window."""
    order: tuple[SortKey, ...]
    first: int
    last: int
    number: str | None = None
    """The name of the column with the number; None if it is not read."""
    keeps_last: bool = False
    """Whether of rows that are equal in the order the last one comes first: that of a deduplication."""

    @cached_property
    def _type(self) -> RowType:
        if self.number is None:
            return self.input.row_type
        return RowType([*self.input.row_type.fields, RowField(self.number, BigIntType(nullable=False))], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        partition = frozenset({*self.bounds, *self.partition})
        if self.first == self.last:
            return inputs[0] | {partition}
        return inputs[0] if self.number is None else inputs[0] | {partition | {len(self.input.row_type.fields)}}

    def describe(self) -> str:
        names = self.row_type.field_names
        return (
            f"WindowRank(window=[{self.window}, win_end=[{names[self.bounds[1]]}]], rankType=[ROW_NUMBER], "
            f"rankRange=[rankStart={self.first}, rankEnd={self.last}], "
            f"partitionBy=[{', '.join(names[index] for index in self.partition)}], "
            f"orderBy=[{', '.join(key.describe(names) for key in self.order)}])"
        )
