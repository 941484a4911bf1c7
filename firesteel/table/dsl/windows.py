"""Windows of the Table API: groups of rows by time, and frames around a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from firesteel.table.dsl.expression import Expression
from firesteel.table.dsl.functions import CURRENT_RANGE, UNBOUNDED_RANGE

__all__ = [
    "GroupWindow",
    "Over",
    "OverWindow",
    "OverWindowPartitioned",
    "OverWindowPartitionedOrdered",
    "OverWindowPartitionedOrderedPreceding",
    "Session",
    "SessionWithGap",
    "SessionWithGapOnTime",
    "Slide",
    "SlideWithSize",
    "SlideWithSizeAndSlide",
    "SlideWithSizeAndSlideOnTime",
    "Tumble",
    "TumbleWithSize",
    "TumbleWithSizeOnTime",
]

Any_ = Expression[Any]


@dataclass(frozen=True, eq=False)
class GroupWindow:
    """A window of ``Table.window``: the function of SQL, its intervals, the time column and the alias."""

    function: str
    intervals: tuple[Any_, ...]
    time: Any_
    name: str


@dataclass(frozen=True, eq=False)
class _OnTime:
    """A window that needs an alias."""

    function: str
    intervals: tuple[Any_, ...]
    time: Any_

    def alias(self, alias: str) -> GroupWindow:
        """The window with the name by which ``group_by`` and ``select`` refer to it."""
        return GroupWindow(self.function, self.intervals, self.time, alias)


class TumbleWithSizeOnTime(_OnTime):
    """A tumbling window that needs an alias."""


class SlideWithSizeAndSlideOnTime(_OnTime):
    """A sliding window that needs an alias."""


class SessionWithGapOnTime(_OnTime):
    """A session window that needs an alias."""


@dataclass(frozen=True, eq=False)
class TumbleWithSize:
    """A tumbling window that needs a time column."""

    size: Any_

    def on(self, time_field: Any_) -> TumbleWithSizeOnTime:
        """The window over a time attribute; in batch mode, over any timestamp."""
        return TumbleWithSizeOnTime("TUMBLE", (self.size,), time_field)


@dataclass(frozen=True, eq=False)
class SlideWithSizeAndSlide:
    """A sliding window that needs a time column."""

    size: Any_
    slide: Any_

    def on(self, time_field: Any_) -> SlideWithSizeAndSlideOnTime:
        """The window over a time attribute; in batch mode, over any timestamp."""
        return SlideWithSizeAndSlideOnTime("HOP", (self.slide, self.size), time_field)


@dataclass(frozen=True, eq=False)
class SlideWithSize:
    """A sliding window that needs the interval by which it slides."""

    size: Any_

    def every(self, slide: Any_) -> SlideWithSizeAndSlide:
        """The window that starts again after an interval."""
        return SlideWithSizeAndSlide(self.size, slide)


@dataclass(frozen=True, eq=False)
class SessionWithGap:
    """A session window that needs a time column."""

    gap: Any_

    def on(self, time_field: Any_) -> SessionWithGapOnTime:
        """The window over a time attribute; in batch mode, over any timestamp."""
        return SessionWithGapOnTime("SESSION", (self.gap,), time_field)


class Tumble:
    """Windows of one size, side by side.

    >>> from firesteel.table.expressions import col, lit
    >>> window = Tumble.over(lit(10).minutes).on(col("ts")).alias("w")
    """

    @classmethod
    def over(cls, size: Any_) -> TumbleWithSize:
        """A window of an interval of time."""
        return TumbleWithSize(size)


class Slide:
    """Windows of one size that overlap."""

    @classmethod
    def over(cls, size: Any_) -> SlideWithSize:
        """A window of an interval of time."""
        return SlideWithSize(size)


class Session:
    """Windows that end after a gap without rows."""

    @classmethod
    def with_gap(cls, gap: Any_) -> SessionWithGap:
        """A window with a gap of an interval of time."""
        return SessionWithGap(gap)


@dataclass(frozen=True, eq=False)
class OverWindow:
    """A window of ``Table.over_window``."""

    partition: tuple[Any_, ...]
    order: Any_
    before: Any_
    after: Any_ | None
    name: str


@dataclass(frozen=True, eq=False)
class OverWindowPartitionedOrderedPreceding:
    """A window with a first row; a last one, and an alias, follow."""

    partition: tuple[Any_, ...]
    order: Any_
    before: Any_
    after: Any_ | None = None

    def following(self, following: Any_) -> OverWindowPartitionedOrderedPreceding:
        """The window up to so many rows, or an interval, after the current row."""
        return replace(self, after=following)

    def alias(self, alias: str) -> OverWindow:
        """The window with the name by which ``over`` refers to it."""
        return OverWindow(self.partition, self.order, self.before, self.after, alias)


@dataclass(frozen=True, eq=False)
class OverWindowPartitionedOrdered:
    """An ordered window."""

    partition: tuple[Any_, ...]
    order: Any_

    def preceding(self, preceding: Any_) -> OverWindowPartitionedOrderedPreceding:
        """The window from so many rows, or an interval, before the current row on."""
        return OverWindowPartitionedOrderedPreceding(self.partition, self.order, preceding)

    def alias(self, alias: str) -> OverWindow:
        """The window of all rows up to the time of the current one."""
        return OverWindow(self.partition, self.order, UNBOUNDED_RANGE, CURRENT_RANGE, alias)


@dataclass(frozen=True, eq=False)
class OverWindowPartitioned:
    """A window within the rows that are equal in some columns."""

    partition: tuple[Any_, ...]

    def order_by(self, order_by: Any_) -> OverWindowPartitionedOrdered:
        """The window in the order of a time attribute."""
        return OverWindowPartitionedOrdered(self.partition, order_by)


class Over:
    """Windows around each row.

    >>> from firesteel.table.expressions import col, row_interval
    >>> window = Over.partition_by(col("k")).order_by(col("ts")).preceding(row_interval(2)).alias("w")
    """

    @classmethod
    def order_by(cls, order_by: Any_) -> OverWindowPartitionedOrdered:
        """A window in the order of a time attribute."""
        return OverWindowPartitionedOrdered((), order_by)

    @classmethod
    def partition_by(cls, *partition_by: Any_) -> OverWindowPartitioned:
        """A window within the rows that are equal in some columns."""
        return OverWindowPartitioned(partition_by)
