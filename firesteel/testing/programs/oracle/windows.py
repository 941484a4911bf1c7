"""Windows as Flink's documentation defines them: assigners, triggers, allowed lateness, merging, eviction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from firesteel.testing.programs.oracle.flow import MAX_TIME, Flow, Record
from firesteel.testing.programs.oracle.keyed import Timers

__all__ = [
    "AtEnd",
    "Contents",
    "Continuous",
    "EveryNth",
    "Purging",
    "Span",
    "TriggerRule",
    "WindowOracle",
]


@dataclass(frozen=True, order=True)
class Span:
    """A window. The global one and those that count records have no end."""

    start: int
    end: int = MAX_TIME + 1

    def max_timestamp(self) -> int:
        """Returns the last timestamp of the window."""
        return self.end - 1


@dataclass
class Contents:
    """What one key's window holds: its records, and the state of its trigger."""

    records: list[Record] = field(default_factory=list)
    count: int = 0
    fire_time: int | None = None


FIRE, PURGE = 1, 2


class TriggerRule:
    """When a window is evaluated. Methods return FIRE and PURGE, combined."""

    def on_element(self, time: int, window: Span, contents: Contents, timers: Timers) -> int:
        """A record was added."""
        return 0

    def on_timer(self, time: int, window: Span, contents: Contents, timers: Timers) -> int:
        """A timer of the window fires."""
        return 0

    def on_merge(self, window: Span, contents: Contents, merged: Iterable[Contents], timers: Timers) -> None:
        """Windows became one."""

    def clear(self, window: Span, contents: Contents, timers: Timers) -> None:
        """The window is removed."""


class AtEnd(TriggerRule):
    """When the watermark passes the end of the window, and again with each record after that."""

    def on_element(self, time: int, window: Span, contents: Contents, timers: Timers) -> int:
        """Fires at once if the watermark has passed the window."""
        if window.max_timestamp() <= timers.watermark:
            return FIRE
        timers.register(window.max_timestamp(), window)
        return 0

    def on_timer(self, time: int, window: Span, contents: Contents, timers: Timers) -> int:
        """Fires at the end of the window."""
        return FIRE if time == window.max_timestamp() else 0

    def on_merge(self, window: Span, contents: Contents, merged: Iterable[Contents], timers: Timers) -> None:
        """Waits for the end of the new window."""
        if window.max_timestamp() > timers.watermark:
            timers.register(window.max_timestamp(), window)

    def clear(self, window: Span, contents: Contents, timers: Timers) -> None:
        """Deletes the timer."""
        timers.delete(window.max_timestamp(), window)


@dataclass
class EveryNth(TriggerRule):
    """With every nth record."""

    number: int

    def on_element(self, time: int, window: Span, contents: Contents, timers: Timers) -> int:
        """Counts."""
        contents.count += 1
        if contents.count >= self.number:
            contents.count = 0
            return FIRE
        return 0

    def on_merge(self, window: Span, contents: Contents, merged: Iterable[Contents], timers: Timers) -> None:
        """Adds up the counts."""
        contents.count = sum(part.count for part in merged)

    def clear(self, window: Span, contents: Contents, timers: Timers) -> None:
        """Forgets the count."""
        contents.count = 0


@dataclass
class Continuous(TriggerRule):
    """At every interval of event time, and at the end of the window."""

    interval: int

    def on_element(self, time: int, window: Span, contents: Contents, timers: Timers) -> int:
        """Waits for the end and for the next interval."""
        if window.max_timestamp() <= timers.watermark:
            return FIRE
        timers.register(window.max_timestamp(), window)
        if contents.fire_time is None:
            self._next(time - time % self.interval, window, contents, timers)
        return 0

    def on_timer(self, time: int, window: Span, contents: Contents, timers: Timers) -> int:
        """Fires at the end of the window and at the interval, after which the next one is waited for."""
        if time == window.max_timestamp():
            return FIRE
        if contents.fire_time == time:
            self._next(time, window, contents, timers)
            return FIRE
        return 0

    def on_merge(self, window: Span, contents: Contents, merged: Iterable[Contents], timers: Timers) -> None:
        """Continues with the earliest of the next times."""
        contents.fire_time = min((part.fire_time for part in merged if part.fire_time is not None), default=None)
        if contents.fire_time is not None:
            timers.register(contents.fire_time, window)

    def clear(self, window: Span, contents: Contents, timers: Timers) -> None:
        """Deletes the timer."""
        if contents.fire_time is not None:
            timers.delete(contents.fire_time, window)
            contents.fire_time = None

    def _next(self, time: int, window: Span, contents: Contents, timers: Timers) -> None:
        contents.fire_time = min(time + self.interval, window.max_timestamp())
        timers.register(contents.fire_time, window)


@dataclass
class Purging(TriggerRule):
    """As another trigger, and empties the window when that fires."""

    inner: TriggerRule

    def on_element(self, time: int, window: Span, contents: Contents, timers: Timers) -> int:
        """Asks the other trigger."""
        return FIRE | PURGE if self.inner.on_element(time, window, contents, timers) else 0

    def on_timer(self, time: int, window: Span, contents: Contents, timers: Timers) -> int:
        """Asks the other trigger."""
        return FIRE | PURGE if self.inner.on_timer(time, window, contents, timers) else 0

    def on_merge(self, window: Span, contents: Contents, merged: Iterable[Contents], timers: Timers) -> None:
        """Asks the other trigger."""
        self.inner.on_merge(window, contents, merged, timers)

    def clear(self, window: Span, contents: Contents, timers: Timers) -> None:
        """Asks the other trigger."""
        self.inner.clear(window, contents, timers)


@dataclass
class WindowOracle:
    """A window operator. ``assign`` gives the windows of a value, its time and its number among those of its key."""

    assign: Callable[[Any, int | None, int], list[Span]]
    evaluate: Callable[[Any, Span, list[Any]], Iterable[Any]]
    trigger: TriggerRule
    lateness: int = 0
    merging: bool = False
    in_event_time: bool = True
    cleared: Callable[[Any, Span], None] = lambda _key, _window: None
    keeps_before: Callable[[list[Record]], list[Record]] = lambda records: records
    """What an evictor leaves for the function."""
    keeps_after: Callable[[list[Record]], list[Record]] = lambda records: records
    """What an evictor leaves for the next time."""

    def __post_init__(self) -> None:
        self.timers = Timers()
        self.outputs = {"": Flow(), "late": Flow()}
        self._windows: dict[Any, dict[Span, Contents]] = {}
        self._numbers: dict[Any, int] = {}

    def element(self, value: Any, time: int | None, side: int) -> None:
        """Puts a record into its windows."""
        key = self.timers.key
        number = self._numbers[key] = self._numbers.get(key, -1) + 1
        windows = self._windows.setdefault(key, {})
        skipped = True
        for window in self.assign(value, time, number):
            if self.merging:
                window = self._merge(windows, window)
            if self._is_late(window):
                windows.pop(window, None)
                continue
            skipped = False
            contents = windows.setdefault(window, Contents())
            contents.records.append(Record(value, time))
            self._react(window, self.trigger.on_element(time or 0, window, contents, self.timers))
            self.timers.register(self._cleanup_time(window), window)
        if skipped and self.in_event_time and time is not None and time + self.lateness <= self.timers.watermark:
            self.outputs["late"].emit(value, time)

    def timer(self, time: int, namespace: Any) -> None:
        """A timer of a window fires."""
        window: Span = namespace
        contents = self._windows.get(self.timers.key, {}).get(window)
        if contents is None:
            return
        self._react(window, self.trigger.on_timer(time, window, contents, self.timers))
        if self.in_event_time and time == self._cleanup_time(window):
            self._remove(window)

    def _react(self, window: Span, result: int) -> None:
        contents = self._windows[self.timers.key][window]
        if result & FIRE and contents.records:
            left = self.keeps_before(contents.records)
            for value in self.evaluate(self.timers.key, window, [record.value for record in left]):
                self.outputs[""].emit(value, window.max_timestamp())
            contents.records = self.keeps_after(left)
        if result & PURGE:
            contents.records = []

    def _remove(self, window: Span) -> None:
        contents = self._windows[self.timers.key].pop(window)
        self.trigger.clear(window, contents, self.timers)
        self.cleared(self.timers.key, window)

    def _is_late(self, window: Span) -> bool:
        return self.in_event_time and self._cleanup_time(window) <= self.timers.watermark

    def _cleanup_time(self, window: Span) -> int:
        return min(window.max_timestamp() + self.lateness, MAX_TIME)

    def _merge(self, windows: dict[Span, Contents], window: Span) -> Span:
        """Merges a new window with those that it overlaps or touches; returns the one it is part of now."""
        touched = sorted(other for other in windows if other.start <= window.end and window.start <= other.end)
        if not touched:
            return window
        whole = Span(min(window.start, touched[0].start), max(window.end, *(other.end for other in touched)))
        if touched == [whole]:
            return whole
        parts = [windows.pop(other) for other in touched]
        for other in touched:
            self.timers.delete(self._cleanup_time(other), other)
        merged = Contents([record for part in parts for record in part.records])
        self.trigger.on_merge(whole, merged, parts, self.timers)
        for other, part in zip(touched, parts, strict=True):
            self.trigger.clear(other, part, self.timers)
        windows[whole] = merged
        return whole
