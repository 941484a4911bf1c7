"""Times at which the rows of keys are looked at: of all keys in arrays, or of keys that are stored elsewhere."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.state.columnar.slots import grown

__all__ = ["KeyTimers", "TimerHeap"]

Timer = tuple[int, Any, int | None]
"""A time, a key and a side; None for both."""


class KeyTimers:
    """The timers of keys, which are numbers."""

    def __init__(self, capacity: int):
        self.times = np.zeros(capacity, np.int64)
        self.is_set = np.zeros(capacity, bool)
        self._next = MAX_WATERMARK
        """No timer is before."""

    def reserve(self, capacity: int) -> None:
        """Makes place for keys."""
        self.times = grown(self.times, capacity)
        self.is_set = grown(self.is_set, capacity)

    def set(self, keys: Any, times: Any) -> None:
        """Sets the timers of keys."""
        if len(keys):
            self.times[keys] = times
            self.is_set[keys] = True
            self._next = min(self._next, int(times.min()))

    def set_earliest(self, keys: Any, times: Any) -> None:
        """Sets the timers of keys that have none before."""
        self.set(keys, np.where(self.is_set[keys], np.minimum(self.times[keys], times), times))

    def due(self, watermark: int) -> Any:
        """Takes the timers that the watermark has reached: their keys.

        >>> timers = KeyTimers(4)
        >>> timers.set(np.array([0, 2]), np.array([50, 70]))
        >>> timers.due(60).tolist(), timers.due(60).tolist(), timers.due(70).tolist()
        ([0], [], [2])
        """
        if self._next > watermark:
            return np.zeros(0, np.int64)
        due = np.flatnonzero(self.is_set & (self.times <= watermark))
        self.is_set[due] = False
        left = self.times[self.is_set]
        self._next = int(left.min()) if len(left) else MAX_WATERMARK
        return due

    def load(self, keys: list[int], times: list[int | None]) -> None:
        """Sets what was stored."""
        timed = [(key, time) for key, time in zip(keys, times, strict=True) if time is not None]
        if timed:
            found, due = (np.array(column, np.int64) for column in zip(*timed, strict=True))
            self.set(found, due)

    def entries(self, keys: Any) -> list[int | None]:
        """What is stored."""
        times, is_set = self.times[keys].tolist(), self.is_set[keys].tolist()
        return [time if there else None for time, there in zip(times, is_set, strict=True)]


class TimerHeap:
    """Timers in the order of their times, and of one time in that of their registration.

    What is stored of a key has its timer too: the heap is not part of snapshots, and a timer that is not the one of
    its key any more is void.

    >>> timers = TimerHeap()
    >>> timers.add(70, "a", 0)
    >>> timers.add(50, "b", 1)
    >>> timers.due(60, limit=10), timers.due(60, limit=10)
    ([(50, 'b', 1)], [])
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Any, int]] = []
        self._count = 0

    def add(self, time: int, key: Any, side: int) -> None:
        """Adds a timer of a key."""
        self._count += 1
        heappush(self._heap, (time, self._count, key, side))

    def due(self, watermark: int, limit: int) -> list[Timer]:
        """Takes timers that the watermark has reached, the first ones if there are more than the limit."""
        heap = self._heap
        found: list[Timer] = []
        while heap and heap[0][0] <= watermark and len(found) < limit:
            time, _, key, side = heappop(heap)
            found.append((time, key, side))
        return found
