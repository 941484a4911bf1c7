"""Timestamps and watermarks of generated programs, at a source or in the middle of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.common.time import Duration
from firesteel.common.watermark_strategy import (
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from firesteel.testing.programs.oracle.flow import MIN_TIME
from firesteel.testing.programs.records import fields
from firesteel.testing.programs.running.faults import Trip, step
from firesteel.testing.programs.running.split_source import Item, Pause, WatermarkAt, expanded

__all__ = ["Punctuated", "TimestampOf", "Watermarks", "disorder_of", "has_late"]


@dataclass
class TimestampOf(TimestampAssigner):
    """Extracts the timestamp of a record."""

    trip: Trip | None = None

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Returns t."""
        step(self.trip)
        return fields(value)[2]


@dataclass
class PunctuatedGenerator(WatermarkGenerator):
    """Emits a watermark with every record that is the latest so far."""

    bound: int
    latest: int = MIN_TIME

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Follows the latest timestamp."""
        if event_timestamp > self.latest:
            self.latest = event_timestamp
            output.emit_watermark(event_timestamp - self.bound - 1)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emits nothing."""


@dataclass(frozen=True)
class Punctuated:
    """Makes a PunctuatedGenerator for each split or subtask."""

    bound: int

    def __call__(self) -> PunctuatedGenerator:
        """Returns a new generator."""
        return PunctuatedGenerator(self.bound)


@dataclass(frozen=True)
class Watermarks:
    """A watermark strategy."""

    kind: str = "none"
    """``none``, ``monotonous``, ``bounded``, ``punctuated``, or ``inline`` (the source has watermarks of its own)."""
    bound: int = 0
    idle_ms: int | None = None
    assigner: bool = False
    """Whether timestamps are taken from the records by an assigner."""
    drift: int | None = None
    """Watermark alignment: how far splits may be apart."""
    compare_ms: int = 2
    """Watermark alignment: how often they are compared."""

    def strategy(self, assigner: TimestampOf) -> WatermarkStrategy:
        """Returns the strategy as the API has it."""
        if self.kind == "monotonous":
            strategy = WatermarkStrategy.for_monotonous_timestamps()
        elif self.kind == "bounded":
            strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(self.bound))
        elif self.kind == "punctuated":
            strategy = WatermarkStrategy.for_generator(Punctuated(self.bound))
        else:
            strategy = WatermarkStrategy.no_watermarks()
        if self.assigner:
            strategy = strategy.with_timestamp_assigner(assigner)
        if self.idle_ms is not None:
            strategy = strategy.with_idleness(Duration.of_millis(self.idle_ms))
        if self.drift is not None:
            drift, interval = Duration.of_millis(self.drift), Duration.of_millis(self.compare_ms)
            strategy = strategy.with_watermark_alignment("group", drift, interval)
        return strategy

    def events(self, items: Sequence[Item]) -> Iterator[tuple[int, int, int] | WatermarkAt]:
        """Yields records of a split with the watermarks that certainly come between them."""
        latest = MIN_TIME
        for item in expanded(items):
            if isinstance(item, Pause):
                continue
            yield item
            if isinstance(item, tuple) and self.kind == "punctuated" and item[2] > latest:
                latest = item[2]
                yield WatermarkAt(latest - self.bound - 1)

    def last(self, items: Sequence[Item]) -> int:
        """Returns the watermark that a split comes to before it ends."""
        times = [item[2] for item in expanded(items) if isinstance(item, tuple)]
        if self.kind in ("bounded", "monotonous", "punctuated"):
            return max(times) - self.bound - 1 if times else MIN_TIME
        return max((event.t for event in self.events(items) if isinstance(event, WatermarkAt)), default=MIN_TIME)


def disorder_of(items: Sequence[Item]) -> int:
    """Returns by how much the timestamps of a split go back at most."""
    latest, disorder = MIN_TIME, 0
    for item in expanded(items):
        if isinstance(item, tuple):
            disorder = max(disorder, latest - item[2])
            latest = max(latest, item[2])
    return disorder


def has_late(watermarks: Watermarks, items: Sequence[Item]) -> bool:
    """Whether a record comes behind a watermark that has passed it."""
    mark = MIN_TIME
    for event in watermarks.events(items):
        if isinstance(event, WatermarkAt):
            mark = max(mark, event.t)
        elif event[2] <= mark:
            return True
    return False
