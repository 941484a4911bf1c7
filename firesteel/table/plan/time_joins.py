"""Joins of streams by key and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from firesteel.table.bound.nodes import Expression
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.lookups import DEFAULT_LOOKUP, LookupOptions
from firesteel.table.plan.joins import TRUE, KeyedJoin
from firesteel.table.plan.nodes import Join, JoinKind, Keys, LogicalNode, TwoInputs
from firesteel.table.plan.time_attributes import without_time_attributes
from firesteel.types.logical import RowType

__all__ = ["IntervalJoin", "TemporalJoin", "TemporalTableJoin"]


@dataclass(frozen=True)
class IntervalJoin(KeyedJoin):
    """Pairs of rows whose times are within an interval of each other: right + lower <= left <= right + upper."""

    left_time: int = 0
    """The time attribute of the left side."""
    right_time: int = 0
    lower_ms: int = 0
    upper_ms: int = 0
    is_event_time: bool = True

    def describe(self) -> str:
        kind = "true" if self.is_event_time else "false"
        bounds = f"isRowTime={kind}, leftLowerBound={self.lower_ms}, leftUpperBound={self.upper_ms}"
        return f"{super().describe()[:-1]}, windowBounds=[{bounds}])"


@dataclass(frozen=True)
class TemporalTableJoin(TwoInputs):
    """FOR SYSTEM_TIME AS OF: each row of the left side with the version of a table at the time of the row."""

    kind: JoinKind
    condition: Expression
    time: int
    """The time attribute of the left side."""
    options: LookupOptions = DEFAULT_LOOKUP

    @cached_property
    def _type(self) -> RowType:
        return _with_left_times(self.left, self.right, self.kind)

    def describe(self) -> str:
        time = self.left.row_type.field_names[self.time]
        return f"TemporalTableJoin(joinType=[{self.kind.value}], time=[{time}], condition=[{self.condition}])"


@dataclass(frozen=True)
class TemporalJoin(KeyedJoin):
    """Each row of the left side with the version of the right side's row with its key, in event time."""

    left_time: int = 0
    right_time: int = 0

    @cached_property
    def _type(self) -> RowType:
        return _with_left_times(self.left, self.right, self.kind)

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        # versions change what later rows of the left side are joined with, not earlier results
        return inputs[0]

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return before_wanted, (before_wanted, False)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        # a row has one version at most
        return inputs[0]

    def describe(self) -> str:
        left, right = self.left.row_type.field_names, self.right.row_type.field_names
        times = f"leftTimeAttribute=[{left[self.left_time]}], rightTimeAttribute=[{right[self.right_time]}]"
        return f"{super().describe()[:-1]}, {times})"


def _with_left_times(left: LogicalNode, right: LogicalNode, kind: JoinKind) -> RowType:
    """The columns of both sides; results are ordered by the time of the left side only."""
    joined = Join(left, right, kind, TRUE).row_type
    width = len(left.row_type.fields)
    plain = without_time_attributes(joined)
    return RowType([*joined.fields[:width], *plain.fields[width:]], nullable=False)
