"""Windows, triggers and evictors as data, for the API and for the oracle."""

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
from firesteel.datastream.windowing.evictors import (
    CountEvictor,
    DeltaEvictor,
    Evictor,
    TimeEvictor,
    TimestampedValue,
)
from firesteel.datastream.windowing.triggers import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    PurgingTrigger,
)
from firesteel.testing.programs.oracle import windows as oracle
from firesteel.testing.programs.oracle.flow import Record
from firesteel.testing.programs.oracle.windows import Span
from firesteel.testing.programs.program import Node
from firesteel.testing.programs.records import fields
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["PROCESSING", "Distance", "Evicting", "Multiples", "Triggering", "WindowKind"]

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
    tagged: bool = False
    """Whether it is given records of joined streams: pairs of the number of the stream and the record."""

    def extract(self, element: Any) -> int:
        """Returns the gap that a record leaves open."""
        return self.gap + 4 * (fields(element[1] if self.tagged else element)[1] % 5)

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

    def assigner(self, *, tagged: bool = False) -> Any:
        """Returns the assigner of the API; ``tagged`` for joined streams."""
        if self.name == "tumbling":
            return TumblingEventTimeWindows.of(Time.milliseconds(self.size), Time.milliseconds(self.offset))
        if self.name == "sliding":
            return SlidingEventTimeWindows.of(Time.milliseconds(self.size), Time.milliseconds(self.slide))
        if self.name == "session":
            return EventTimeSessionWindows.with_gap(Time.milliseconds(self.size))
        if self.name == "dynamic":
            return EventTimeSessionWindows.with_dynamic_gap(GapOf(self.size, tagged))  # type: ignore[arg-type]
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


@dataclass
class Distance:
    """How far two records are apart in v: the function of a DeltaEvictor."""

    trip: Trip | None = None

    def __call__(self, element: Any, last: Any) -> float:
        """Returns the distance."""
        step(self.trip)
        return abs(fields(element)[1] - fields(last)[1])


@dataclass
class Multiples(Evictor[Any, Any]):
    """Evicts records whose v is a multiple of a number: of all that are in the window, in any order."""

    number: int
    after: bool = False
    tagged: bool = False
    """Whether it is given records of joined streams."""
    trip: Trip | None = None

    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Removes them from the list, unless it is to do so after the function."""
        if not self.after:
            self._evict(elements)

    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> list[TimestampedValue] | None:
        """Returns the others, if it is to do so after the function."""
        if not self.after:
            return None
        self._evict(elements)
        return elements

    def _evict(self, elements: list[TimestampedValue]) -> None:
        step(self.trip)
        for at in range(len(elements) - 1, -1, -1):
            value = elements[at].value
            if fields(value[1] if self.tagged else value)[1] % self.number == 0:
                del elements[at]


@dataclass(frozen=True)
class Evicting:
    """An evictor."""

    name: str = ""
    """Empty for none; ``count``, ``delta``, ``time`` or ``multiples``."""
    number: int = 0
    after: bool = False
    """Whether it evicts after the function."""

    @property
    def needs_order(self) -> bool:
        """Whether what is evicted depends on the order of the records."""
        return self.name in ("count", "delta")

    @property
    def has_function(self) -> bool:
        """Whether it calls code of the program, which can fail."""
        return self.name in ("delta", "multiples")

    @property
    def label(self) -> str:
        """What coverage counts it as."""
        return f"{self.name}{' after' if self.after else ''}"

    def evictor(self, node: Node, site: Site, *, tagged: bool = False) -> Any:
        """Returns the evictor of the API; ``tagged`` for joined streams."""
        if self.name == "count":
            return site.call(CountEvictor.of, self.number, self.after)
        if self.name == "time":
            return site.call(TimeEvictor.of, self.number, self.after)
        if self.name == "delta":
            return site.call(DeltaEvictor.of, self.number, site.arm(node, Distance(), "evictor"), self.after)
        return site.arm(node, Multiples(self.number, self.after, tagged), "evictor")

    def keeps(self, records: list[Record]) -> list[Record]:
        """Returns the records that stay, as the oracle has it."""
        if not records:
            return []
        if self.name == "count":
            return records[-self.number :]
        if self.name == "time":
            times = [record.time for record in records if record.time is not None]
            return [record for record in records if record.time is not None and record.time + self.number > max(times)]
        if self.name == "delta":
            last = fields(records[-1].value)[1]
            return [record for record in records if last - self.number < fields(record.value)[1] < last + self.number]
        if self.name == "multiples":
            return [record for record in records if fields(record.value)[1] % self.number]
        return records
