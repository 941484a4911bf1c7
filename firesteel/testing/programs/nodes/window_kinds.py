"""Which windows there are, and when they are evaluated: as data, for the API and for the oracle."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firesteel.common.time import Time
from firesteel.datastream.windowing.assigners import (
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.datastream.windowing.triggers import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    PurgingTrigger,
)
from firesteel.testing.programs.oracle import windows as oracle
from firesteel.testing.programs.oracle.windows import Span
from firesteel.testing.programs.records import fields

__all__ = ["PROCESSING", "Triggering", "WindowKind"]

_CENTURIES = Time.days(100_000)
"""The size of windows in processing time: no run meets the end of one, also if the clock is set."""
PROCESSING: dict[str, Callable[[], Any]] = {
    "processing": lambda: TumblingProcessingTimeWindows.of(_CENTURIES),
    "processing-sliding": lambda: SlidingProcessingTimeWindows.of(Time.days(200_000), _CENTURIES),
    "processing-session": lambda: ProcessingTimeSessionWindows.with_gap(_CENTURIES),
}
"""The assigners of such windows. The default trigger never fires, others may."""


@dataclass(frozen=True)
class GapOf:
    """The gap of a session, by v."""

    gap: int

    def extract(self, element: Any) -> int:
        """Returns the gap that a record leaves open."""
        return self.gap + 4 * (fields(element)[1] % 5)

    def __call__(self, element: Any) -> int:
        """Returns the gap that a record leaves open."""
        return self.extract(element)


@dataclass(frozen=True)
class WindowKind:
    """A window assigner."""

    name: str
    """``tumbling``, ``sliding``, ``session``, ``dynamic`` (sessions), ``global``, ``count``, or one of PROCESSING."""
    size: int = 0
    """In milliseconds, or records."""
    slide: int = 0
    offset: int = 0

    @property
    def in_event_time(self) -> bool:
        """Whether records are put into windows by their timestamps."""
        return self.name in ("tumbling", "sliding", "session", "dynamic")

    @property
    def merging(self) -> bool:
        """Whether windows merge."""
        return self.name in ("session", "dynamic", "processing-session")

    def assigner(self) -> Any:
        """Returns the assigner of the API."""
        if self.name == "tumbling":
            return TumblingEventTimeWindows.of(Time.milliseconds(self.size), Time.milliseconds(self.offset))
        if self.name == "sliding":
            return SlidingEventTimeWindows.of(Time.milliseconds(self.size), Time.milliseconds(self.slide))
        if self.name == "session":
            return EventTimeSessionWindows.with_gap(Time.milliseconds(self.size))
        if self.name == "dynamic":
            return EventTimeSessionWindows.with_dynamic_gap(GapOf(self.size))  # type: ignore[arg-type]
        if self.name in PROCESSING:
            return PROCESSING[self.name]()
        return GlobalWindows.create()

    def spans(self, value: Any, time: int | None, number: int) -> list[Span]:
        """Returns the windows of a record, as the oracle has them."""
        if self.name == "processing-sliding":
            return [Span(0), Span(1)]
        if self.name == "global" or self.name in PROCESSING:
            return [Span(0)]
        if self.name == "count":
            slide = self.slide or self.size
            first = max(0, (number - self.size) // slide + 1)
            return [Span(i) for i in range(first, number // slide + 1) if i * slide <= number < i * slide + self.size]
        assert time is not None
        if self.name == "tumbling":
            start = time - (time - self.offset) % self.size
            return [Span(start, start + self.size)]
        if self.name == "sliding":
            last = time - time % self.slide
            return [Span(start, start + self.size) for start in range(last, time - self.size, -self.slide)]
        gap = GapOf(self.size).extract(value) if self.name == "dynamic" else self.size
        return [Span(time, time + gap)]


@dataclass(frozen=True)
class Triggering:
    """A trigger."""

    name: str = ""
    """Empty for the assigner's own; ``count``, ``continuous`` or ``end``."""
    number: int = 0
    purging: bool = False

    def trigger(self) -> Any:
        """Returns the trigger of the API; None for the assigner's own."""
        make: dict[str, Callable[[], Any]] = {
            "count": functools.partial(CountTrigger.of, self.number),
            "continuous": lambda: ContinuousEventTimeTrigger.of(Time.milliseconds(self.number)),
            "end": EventTimeTrigger.create,
        }
        if not self.name:
            return PurgingTrigger.of(EventTimeTrigger.create()) if self.purging else None
        trigger = make[self.name]()
        return PurgingTrigger.of(trigger) if self.purging else trigger

    def rule(self, kind: WindowKind) -> oracle.TriggerRule:
        """Returns the trigger of the oracle."""
        rule: oracle.TriggerRule
        if kind.name == "count":
            rule = oracle.EveryNth(kind.size)
        elif self.name == "count":
            rule = oracle.EveryNth(self.number)
        elif self.name == "continuous":
            rule = oracle.Continuous(self.number)
        elif kind.name in PROCESSING:
            rule = oracle.TriggerRule()
        else:
            rule = oracle.AtEnd()
        return oracle.Purging(rule) if self.purging else rule
