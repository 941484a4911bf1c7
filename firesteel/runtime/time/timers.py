"""Timer service of a keyed operator: per key and namespace, deduplicated by timestamp, in both time domains."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.time.turns import Turn

__all__ = ["BatchTimerService", "InternalTimerService", "KeyedTimers", "TimerQueue", "Triggerable", "renumbered"]

_MAX_DELETED = 1024
"""Deleted timers that may stay in a heap however few others there are."""


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

    ``live`` maps each timer ``(timestamp, key, namespace)`` to its registration number; it is what snapshots contain
    and what a queue is restored from. A deleted timer stays in the heap until its time and is skipped then, so
    deletion costs one set operation. When deleted ones are the greater part, the heap is rebuilt without them:
    timeouts that every record moves on would else take an entry per record.
    """

    __slots__ = ("_heap", "_sequence", "live")

    def __init__(self, live: dict[tuple[int, Any, Any], int] | None = None) -> None:
        self.live: dict[tuple[int, Any, Any], int] = {} if live is None else live
        self._heap = _entries(self.live)
        heapq.heapify(self._heap)
        self._sequence = max(self.live.values(), default=0)

    def add(self, timestamp: int, key: Any, namespace: Any) -> bool:
        """Adds a timer; False if it is there already."""
        timer = (timestamp, key, namespace)
        if timer in self.live:
            return False
        self._sequence += 1
        self.live[timer] = self._sequence
        heapq.heappush(self._heap, (timestamp, self._sequence, key, namespace))
        return True

    def remove(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Removes a timer if it is there."""
        if self.live.pop((timestamp, key, namespace), None) is not None:
            self.compact()

    def compact(self) -> None:
        """Drops deleted timers from the heap if they are more than the others; amortised, it costs nothing."""
        heap, live = self._heap, self.live
        if len(heap) > 2 * len(live) + _MAX_DELETED:
            # in place: a batch holds on to the list
            heap[:] = _entries(live)
            heapq.heapify(heap)

    def pop_due(self, now: int) -> tuple[int, Any, Any] | None:
        """Removes and returns the first timer at or before now."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            timestamp, sequence, key, namespace = heapq.heappop(heap)
            timer = (timestamp, key, namespace)
            # a timer deleted and registered again has a later sequence: its old heap entry is void
            if self.live.get(timer) == sequence:
                del self.live[timer]
                return timer
        return None

    def pop_first(self) -> tuple[int, Any, Any] | None:
        """Removes and returns the first timer, even if it is not due."""
        while self._heap:
            timer = self.pop_due(self._heap[0][0])
            if timer is not None:
                return timer
        return None

    def peek(self) -> int | None:
        """The time of the first timer."""
        heap = self._heap
        while heap:
            timestamp, sequence, key, namespace = heap[0]
            if self.live.get((timestamp, key, namespace)) == sequence:
                return timestamp
            heapq.heappop(heap)
        return None

    def clear(self) -> None:
        for timer in list(self.live):
            self.remove(*timer)
        self._heap.clear()

    def timers(self) -> list[tuple[int, Any, Any]]:
        """Every live timer as (timestamp, key, namespace), in firing order."""
        return sorted(self.live, key=lambda timer: (timer[0], self.live[timer]))

    def __len__(self) -> int:
        return len(self.live)


def _entries(live: dict[tuple[int, Any, Any], int]) -> list[tuple[int, int, Any, Any]]:
    return [(timestamp, number, key, namespace) for (timestamp, key, namespace), number in live.items()]


def renumbered(live: dict[tuple[int, Any, Any], int]) -> dict[tuple[int, Any, Any], int]:
    """Timers of several queues as one: the order of each is kept, and no two have the same number.

    >>> renumbered({(5, "a", None): 7, (5, "b", None): 7, (1, "c", None): 3})
    {(1, 'c', None): 1, (5, 'a', None): 2, (5, 'b', None): 3}
    """
    return {timer: number for number, timer in enumerate(sorted(live, key=live.__getitem__), 1)}


class KeyedTimers(Protocol):
    """A keyed state backend, as timers need it: the present key, and the queues that snapshots contain."""

    key: Any

    def timer_queue(self, name: str) -> TimerQueue:
        """The timers of that name, with those restored."""
        ...


class InternalTimerService:
    """The timers of one operator. Registering and deleting act on the backend's current key.

    The backend keeps them as the queues ``<name>/event`` and ``<name>/processing``.
    """

    __slots__ = (
        "_backend",
        "_clock",
        "_schedule",
        "_scheduled",
        "_triggerable",
        "_turn",
        "current_watermark",
        "event",
        "processing",
    )

    def __init__(
        self,
        backend: KeyedTimers,
        triggerable: Triggerable,
        clock: Callable[[], int],
        schedule: Callable[[int, Callable[[int], None]], None],
        name: str = "timers",
        turn: Turn | None = None,
    ):
        self._backend = backend
        self._turn = Turn() if turn is None else turn
        self._triggerable = triggerable
        self._clock = clock
        self._schedule = schedule
        self._scheduled: int | None = None
        self.event = backend.timer_queue(f"{name}/event")
        self.processing = backend.timer_queue(f"{name}/processing")
        self.current_watermark = MIN_TIMESTAMP
        # those restored: if their time has passed while the job was down, they fire as soon as it runs
        self._arm()

    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._clock()

    @property
    def is_turn_over(self) -> bool:
        """Whether what fires timers should let others go on first."""
        return self._turn.is_over

    def register_event_time_timer(self, namespace: Any, timestamp: int) -> None:
        """Fires once the watermark reaches the timestamp; at the next watermark if it already has."""
        self.event.add(timestamp, self._backend.key, namespace)

    def delete_event_time_timer(self, namespace: Any, timestamp: int) -> None:
        self.event.remove(timestamp, self._backend.key, namespace)

    def register_processing_time_timer(self, namespace: Any, timestamp: int) -> None:
        """Fires once the wall clock reaches the timestamp, also while the input is idle."""
        if self.processing.add(timestamp, self._backend.key, namespace):
            self._arm()

    def delete_processing_time_timer(self, namespace: Any, timestamp: int) -> None:
        self.processing.remove(timestamp, self._backend.key, namespace)

    def advance_watermark(self, timestamp: int) -> bool:
        """Fires the event-time timers at or before the timestamp, also those registered while firing.

        False if the task's turn ended before: then it is to be called again. The timers that are left are in the
        queue, and in any snapshot taken meanwhile.
        """
        self.current_watermark = timestamp
        backend, fire, turn = self._backend, self._triggerable.on_event_time, self._turn
        while (timer := self.event.pop_due(timestamp)) is not None:
            backend.key = timer[1]
            fire(*timer)
            if turn.is_over:
                return False
        return True

    def _arm(self) -> None:
        first = self.processing.peek()
        if first is not None and (self._scheduled is None or first < self._scheduled):
            self._scheduled = first
            self._schedule(first, self._on_clock)

    def _on_clock(self, now: int) -> None:
        self._scheduled = None
        backend, fire, turn = self._backend, self._triggerable.on_processing_time, self._turn
        while (timer := self.processing.pop_due(now)) is not None:
            backend.key = timer[1]
            fire(*timer)
            if turn.is_over:
                # now, not when they were due: what else is due comes first
                self._scheduled = MIN_TIMESTAMP
                self._schedule(self._clock(), self._on_clock)
                return
        self._arm()


class BatchTimerService(InternalTimerService):
    """The timers of one operator in a batch, where records come key by key and time stands still until a key ends.

    Then all its timers fire: first those of event time, then those of processing time. A timer that is registered while
    they fire is ignored, or a function that always registers the next one would never end.
    """

    __slots__ = ()

    def register_event_time_timer(self, namespace: Any, timestamp: int) -> None:
        """Fires when the key ends."""
        if self.current_watermark != MAX_WATERMARK:
            self.event.add(timestamp, self._backend.key, namespace)

    def register_processing_time_timer(self, namespace: Any, timestamp: int) -> None:
        """Fires when the key ends."""
        if self.current_watermark != MAX_WATERMARK:
            self.processing.add(timestamp, self._backend.key, namespace)

    def advance_watermark(self, timestamp: int) -> bool:
        """The last key has ended before the input did: there is nothing left to fire."""
        return True

    @property
    def heaps(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Empty where the current key has no timers, not even deleted ones; always the same objects."""
        return self.event._heap, self.processing._heap

    def end_key(self) -> None:
        """Fires all timers of the current key, with event time at its end."""
        self.current_watermark = MAX_WATERMARK
        try:
            for queue, fire in (
                (self.event, self._triggerable.on_event_time),
                (self.processing, self._triggerable.on_processing_time),
            ):
                while (timer := queue.pop_first()) is not None:
                    fire(*timer)
        finally:
            self.current_watermark = MIN_TIMESTAMP
