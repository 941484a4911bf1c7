"""A mini-language of what a process function does with state and timers.

A function is a sequence of steps. Each has states of its own and acts on every record; some set timers. Which step a
timer belongs to follows from its time: a multiple of `GRID`, plus four milliseconds for each step before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from firesteel.api.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from firesteel.api.state_ttl import StateTtlConfig
from firesteel.common.time import Time
from firesteel.testing.programs.keys import KeyOf
from firesteel.testing.programs.nodes.reductions import Add
from firesteel.testing.programs.nodes.window_functions import Gather
from firesteel.testing.programs.records import TRAIL_LENGTH, Event, fields, make

__all__ = [
    "END",
    "GRID",
    "Aggregated",
    "Chunks",
    "Collected",
    "Counted",
    "EndTotal",
    "Expired",
    "Inactivity",
    "Kept",
    "Reduced",
    "Step",
    "Summed",
    "TimedBuckets",
    "share",
]

GRID = 32
END = 10**12
"""A time behind all records: a timer there fires when event time ends."""
_LONG_LIFE = Time.days(1000)
"""Of state that never expires in a run, also if the clock is set by days."""


@dataclass
class Step:
    """One thing that a function does with each record of a key."""

    ttl: str = ""
    """``write`` or ``read``: values live for an hour from the last write, or access."""

    needs_order: ClassVar[bool] = True
    needs_time: ClassVar[bool] = False
    needs_ascending: ClassVar[bool] = False
    mutates: ClassVar[bool] = False
    settles: ClassVar[bool] = False
    """The result is the same in every run, even if only sums of the input are."""
    unsettles: ClassVar[bool] = False
    max_volume: ClassVar[int | None] = None
    """Of how many records a stream may have at most. Such a step takes real time for each of them."""
    keeps_time: ClassVar[bool] = True
    """Results have timestamps that are the same in every run, and are not late where records are not."""

    def open(self, context: Any, number: int) -> None:
        """Gets the states."""

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields what comes of a record."""
        return iter(())

    def timer(self, timestamp: int, k: int, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields what comes of a timer of this step."""
        return iter(())

    def _with_ttl(self, descriptor: StateDescriptor) -> Any:
        if self.ttl:
            update = StateTtlConfig.UpdateType
            kind = update.OnReadAndWrite if self.ttl == "read" else update.OnCreateAndWrite
            descriptor.enable_time_to_live(
                StateTtlConfig.new_builder(_LONG_LIFE)
                .set_update_type(kind)
                .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
                .build()
            )
        return descriptor


def share(shape: str, k: int, v: int, t: int, trail: list[int]) -> Any:
    """Returns a record that has this very list as its trail, where the shape is mutable."""
    if shape == "list":
        return [k, v, t, trail]
    if shape == "event":
        return Event(k, v, t, trail)
    record = make(shape, k, v, t, trail)
    if shape in ("dict", "row"):
        record["trail"] = trail
    return record


@dataclass
class Summed(Step):
    """Value state: a running sum."""

    clears_at: int = 0
    """Starts over after so many records, if not 0."""

    def open(self, context: Any, number: int) -> None:
        """A sum and a count."""
        self._sum = context.get_state(self._with_ttl(ValueStateDescriptor(f"sum-{number}")))
        self._count = context.get_state(self._with_ttl(ValueStateDescriptor(f"count-{number}")))

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields the sum so far."""
        k, v, t, trail = fields(value)
        total, count = (self._sum.value() or 0) + v, (self._count.value() or 0) + 1
        if self.clears_at and count >= self.clears_at:
            self._sum.clear()
            self._count.clear()
        else:
            self._sum.update(total)
            self._count.update(count)
        yield make(shape, k, total, t, trail)


@dataclass
class Kept(Step):
    """Value state: a list that is read, changed, put back and emitted."""

    mutates: ClassVar[bool] = True

    def open(self, context: Any, number: int) -> None:
        """A list."""
        self._kept = context.get_state(self._with_ttl(ValueStateDescriptor(f"kept-{number}")))

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields a record with the list itself."""
        k, v, t, _ = fields(value)
        kept = self._kept.value() or []
        kept.append(v % 1000)
        del kept[:-TRAIL_LENGTH]
        self._kept.update(kept)
        yield share(shape, k, v, t, kept)


@dataclass
class Collected(Step):
    """List state: what was added is emitted every nth time."""

    every: int = 3

    def open(self, context: Any, number: int) -> None:
        """A list."""
        self._list = context.get_list_state(self._with_ttl(ListStateDescriptor(f"list-{number}")))

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields the elements when there are enough."""
        k, v, t, _ = fields(value)
        self._list.add(v)
        elements = list(self._list.get())
        if len(elements) >= self.every:
            if v % 2:
                self._list.clear()
            else:
                self._list.update(elements[-1:])
            yield make(shape, k, sum(elements), t, [element % 100 for element in elements[-TRAIL_LENGTH:]])


@dataclass
class Counted(Step):
    """Map state: counts by something else than the key of the stream."""

    key: str = "int"
    """The kind of the map's keys."""

    def open(self, context: Any, number: int) -> None:
        """Counts."""
        self._counts = context.get_map_state(self._with_ttl(MapStateDescriptor(f"counts-{number}")))

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields the count, and now and then all counts."""
        k, v, t, _ = fields(value)
        part = KeyOf(self.key).get_key((v % 3, v // 3, t))
        count = (self._counts.get(part) or 0) + 1
        if count > 4:
            self._counts.remove(part)
        else:
            self._counts.put(part, count)
        trail = sorted(self._counts.values()) if v % 5 == 0 else []
        yield make(shape, k, count, t, trail)


@dataclass
class Reduced(Step):
    """Reducing state."""

    def open(self, context: Any, number: int) -> None:
        """A record."""
        add = Add("tuple", ordered=True)
        self._reduced = context.get_reducing_state(self._with_ttl(ReducingStateDescriptor(f"reduced-{number}", add)))

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields the reduced record."""
        k, v, t, trail = fields(value)
        self._reduced.add(make("tuple", k, v, t, trail))
        yield make(shape, *self._reduced.get())


@dataclass
class Aggregated(Step):
    """Aggregating state whose result is its accumulator."""

    mutates: ClassVar[bool] = True

    def open(self, context: Any, number: int) -> None:
        """An accumulator."""
        gather = Gather("list", ordered=True, shares=True)
        self._aggregated = context.get_aggregating_state(
            self._with_ttl(AggregatingStateDescriptor(f"aggregated-{number}", gather))
        )

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields the accumulator."""
        self._aggregated.add(value)
        k, v, t, trail = self._aggregated.get()
        yield share(shape, k, v, t, trail)


@dataclass
class Expired(Step):
    """State of several kinds that has always expired when it is read: waits for longer than it lives before that.

    In a batch state does not expire.
    """

    cleanup: str = ""
    """``incremental`` or ``snapshot``: how values that have expired are removed, besides when they are read."""

    max_volume: ClassVar[int | None] = 150
    LIFE_MS: ClassVar[int] = 1
    WAIT_S: ClassVar[float] = 0.003

    def open(self, context: Any, number: int) -> None:
        """Four states that expire, and a count that does not."""
        self._wait_s = getattr(context, "wait_s", self.WAIT_S)
        self._value = context.get_state(self._expiring(ValueStateDescriptor(f"short-value-{number}")))
        self._list = context.get_list_state(self._expiring(ListStateDescriptor(f"short-list-{number}")))
        self._map = context.get_map_state(self._expiring(MapStateDescriptor(f"short-map-{number}")))
        add = Add("tuple", ordered=True)
        self._reduced = context.get_reducing_state(
            self._expiring(ReducingStateDescriptor(f"short-reduced-{number}", add))
        )
        self._count = context.get_state(self._with_ttl(ValueStateDescriptor(f"long-count-{number}")))

    def _expiring(self, descriptor: StateDescriptor) -> Any:
        builder = StateTtlConfig.new_builder(Time.milliseconds(self.LIFE_MS))
        if self.cleanup == "incremental":
            builder.cleanup_incrementally(3, run_cleanup_for_every_record=True)
        elif self.cleanup == "snapshot":
            builder.cleanup_full_snapshot()
        descriptor.enable_time_to_live(builder.build())
        return descriptor

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields the record with the number of values that have not expired added to v, and the count as its trail."""
        time.sleep(self._wait_s)
        k, v, t, trail = fields(value)
        left = [self._value.value(), self._reduced.get(), self._map.get(v % 3)]
        alive = sum(one is not None for one in left) + len(list(self._list.get())) + len(list(self._map.values()))
        self._value.update(v)
        self._list.add(v)
        self._map.put(v % 3, v)
        self._reduced.add(make("tuple", k, v, t, trail))
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield make(shape, k, v + alive, t, [count % 100])


@dataclass
class TimedBuckets(Step):
    """Map state and event-time timers: a sum for each interval, emitted when that is over."""

    size: int = GRID

    needs_order: ClassVar[bool] = False
    needs_time: ClassVar[bool] = True

    def open(self, context: Any, number: int) -> None:
        """Sums by interval."""
        self._number = number
        self._sums = context.get_map_state(self._with_ttl(MapStateDescriptor(f"buckets-{number}")))

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Adds v to its interval, and sets the timer that ends it."""
        _, v, _, _ = fields(value)
        bucket = ctx.timestamp() // self.size
        self._sums.put(bucket, (self._sums.get(bucket) or 0) + v)
        ctx.timer_service().register_event_time_timer((bucket + 1) * self.size + 4 * self._number)
        return iter(())

    def timer(self, timestamp: int, k: int, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields the sum of the interval."""
        bucket = (timestamp - 4 * self._number) // self.size - 1
        total = self._sums.get(bucket)
        self._sums.remove(bucket)
        yield make(shape, k, total, timestamp)


@dataclass
class Inactivity(Step):
    """A timer that every record deletes and sets again: emits the sum when no record has come for a while."""

    gap: int = 2 * GRID

    needs_time: ClassVar[bool] = True
    needs_ascending: ClassVar[bool] = True
    keeps_time: ClassVar[bool] = False

    def open(self, context: Any, number: int) -> None:
        """A sum and the time at which it is over."""
        self._number = number
        self._sum = context.get_state(self._with_ttl(ValueStateDescriptor(f"active-{number}")))
        self._until = context.get_state(self._with_ttl(ValueStateDescriptor(f"until-{number}")))

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Adds v; yields the sum before if that was over, whether its timer has fired or is still to fire."""
        k, v, _, _ = fields(value)
        until = self._until.value()
        if until is not None:
            ctx.timer_service().delete_event_time_timer(until)
            if ctx.timestamp() >= until:
                yield make(shape, k, self._sum.value(), until)
                self._sum.clear()
        self._sum.update((self._sum.value() or 0) + v)
        until = ((ctx.timestamp() + self.gap) // GRID + 1) * GRID + 4 * self._number
        self._until.update(until)
        ctx.timer_service().register_event_time_timer(until)

    def timer(self, timestamp: int, k: int, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields the sum."""
        yield make(shape, k, self._sum.value(), timestamp)
        self._sum.clear()
        self._until.clear()


@dataclass
class EndTotal(Step):
    """An event-time timer behind all records: emits the sum when event time ends."""

    needs_order: ClassVar[bool] = False
    settles: ClassVar[bool] = True
    keeps_time: ClassVar[bool] = False

    def open(self, context: Any, number: int) -> None:
        """A sum."""
        self._number = number
        self._sum = context.get_state(self._with_ttl(ValueStateDescriptor(f"total-{number}")))

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Adds v, and sets the timer."""
        self._sum.update((self._sum.value() or 0) + fields(value)[1])
        ctx.timer_service().register_event_time_timer(END - END % GRID + 4 * self._number)
        return iter(())

    def timer(self, timestamp: int, k: int, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields the sum."""
        yield make(shape, k, self._sum.value(), 0)


@dataclass
class Chunks(EndTotal):
    """Processing-time timers: emits what has come since the last time, whenever that is."""

    after_ms: int = 3

    unsettles: ClassVar[bool] = True
    settles: ClassVar[bool] = False

    def element(self, value: Any, shape: str, ctx: Any) -> Iterator[Any]:
        """Adds v, and sets a timer for soon, and one for the end."""
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer((now + self.after_ms) // GRID * GRID + 4 * self._number)
        return super().element(value, shape, ctx)

    def timer(self, timestamp: int, k: int, shape: str, ctx: Any) -> Iterator[Any]:
        """Yields the sum and starts over."""
        total = self._sum.value()
        self._sum.clear()
        if total is not None:
            yield make(shape, k, total, 0)
