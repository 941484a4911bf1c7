"""Timers of a keyed operator: per key and namespace, deduplicated by timestamp, in both time domains."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Protocol

from firesteel.runtime.elements import MIN_TIMESTAMP
from firesteel.runtime.state.backend import KeyedStateBackend

__all__ = ["InternalTimerService", "TimerQueue", "Triggerable"]


class Triggerable(Protocol):
    """Called back when a timer is due, with the timer's key already set in the backend."""

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """The watermark has reached the timestamp."""
        ...

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """The wall clock has reached the timestamp."""
        ...


class TimerQueue:
    """Timers by time; those of one time in the order they were registered.

    A deleted timer stays in the heap until its time and is skipped then, so deletion costs one set operation.
    """

    __slots__ = ("_heap", "_live", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Any, Any]] = []
        self._live: dict[tuple[int, Any, Any], int] = {}
        self._sequence = 0

    def add(self, timestamp: int, key: Any, namespace: Any) -> bool:
        """Adds a timer; False if it is there already."""
        timer = (timestamp, key, namespace)
        if timer in self._live:
            return False
        self._sequence += 1
        self._live[timer] = self._sequence
        heapq.heappush(self._heap, (timestamp, self._sequence, key, namespace))
        return True

    def remove(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Removes a timer if it is there."""
        self._live.pop((timestamp, key, namespace), None)

    def pop_due(self, now: int) -> tuple[int, Any, Any] | None:
        """Removes and returns the first timer at or before now."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            timestamp, sequence, key, namespace = heapq.heappop(heap)
            timer = (timestamp, key, namespace)
            # a timer deleted and registered again has a later sequence: its old heap entry is void
            if self._live.get(timer) == sequence:
                del self._live[timer]
                return timer
        return None

    def peek(self) -> int | None:
        """The time of the first timer."""
        heap = self._heap
        while heap:
            timestamp, sequence, key, namespace = heap[0]
            if self._live.get((timestamp, key, namespace)) == sequence:
                return timestamp
            heapq.heappop(heap)
        return None

    def timers(self) -> list[tuple[int, Any, Any]]:
        """Every live timer as (timestamp, key, namespace), in firing order."""
        return sorted(self._live, key=lambda timer: (timer[0], self._live[timer]))

    def __len__(self) -> int:
        return len(self._live)


class InternalTimerService:
    """The timers of one operator. Registering and deleting act on the backend's current key."""

    __slots__ = (
        "_backend",
        "_clock",
        "_schedule",
        "_scheduled",
        "_triggerable",
        "current_watermark",
        "event",
        "processing",
    )

    def __init__(
        self,
        backend: KeyedStateBackend,
        triggerable: Triggerable,
        clock: Callable[[], int],
        schedule: Callable[[int, Callable[[int], None]], None],
    ):
        self._backend = backend
        self._triggerable = triggerable
        self._clock = clock
        self._schedule = schedule
        self._scheduled: int | None = None
        self.event = TimerQueue()
        self.processing = TimerQueue()
        self.current_watermark = MIN_TIMESTAMP

    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._clock()

    def register_event_time_timer(self, namespace: Any, timestamp: int) -> None:
        """Fires once the watermark reaches the timestamp; at the next watermark if it already has."""
        self.event.add(timestamp, self._backend.key, namespace)

    def delete_event_time_timer(self, namespace: Any, timestamp: int) -> None:
        """Takes back a registration."""
        self.event.remove(timestamp, self._backend.key, namespace)

    def register_processing_time_timer(self, namespace: Any, timestamp: int) -> None:
        """Fires once the wall clock reaches the timestamp, also while the input is idle."""
        if self.processing.add(timestamp, self._backend.key, namespace):
            self._arm()

    def delete_processing_time_timer(self, namespace: Any, timestamp: int) -> None:
        """Takes back a registration."""
        self.processing.remove(timestamp, self._backend.key, namespace)

    def advance_watermark(self, timestamp: int) -> None:
        """Fires every event-time timer at or before the timestamp, also those registered while firing."""
        self.current_watermark = timestamp
        backend, fire = self._backend, self._triggerable.on_event_time
        while (timer := self.event.pop_due(timestamp)) is not None:
            backend.key = timer[1]
            fire(*timer)

    def _arm(self) -> None:
        first = self.processing.peek()
        if first is not None and (self._scheduled is None or first < self._scheduled):
            self._scheduled = first
            self._schedule(first, self._on_clock)

    def _on_clock(self, now: int) -> None:
        self._scheduled = None
        backend, fire = self._backend, self._triggerable.on_processing_time
        while (timer := self.processing.pop_due(now)) is not None:
            backend.key = timer[1]
            fire(*timer)
        self._arm()
