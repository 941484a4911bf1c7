"""Timer queue for incremental snapshots, which tracks the timers added and removed since the last one."""

from __future__ import annotations

import heapq
from typing import Any

from firesteel.runtime.state.api.backend import VOID_NAMESPACE
from firesteel.runtime.state.hashmap.state_table import StateTable
from firesteel.runtime.time.timers import TimerQueue

__all__ = ["TrackedTimerQueue"]


class TrackedTimerQueue(TimerQueue):
    """A timer queue that marks changes in its table.

    A timer that comes and goes between two snapshots, as most do, leaves no mark.
    """

    __slots__ = ("_fresh", "_gone", "_state_table")

    def __init__(self, state_table: StateTable):
        super().__init__(state_table.namespaces[VOID_NAMESPACE])
        self._state_table = state_table
        state_table.on_snapshot(self._start_over)
        self._start_over()

    def add(self, timestamp: int, key: Any, namespace: Any) -> bool:
        """Adds a timer; False if it is there already."""
        timer = (timestamp, key, namespace)
        if timer in self.live:
            return False
        self._sequence += 1
        self.live[timer] = self._sequence
        heapq.heappush(self._heap, (timestamp, self._sequence, key, namespace))
        self._fresh.add(timer)
        return True

    def remove(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Removes a timer if it is there."""
        timer = (timestamp, key, namespace)
        if self.live.pop(timer, None) is not None:
            # an old timer that was removed and added again stays among the gone ones: the files still have it
            if timer in self._fresh:
                self._fresh.remove(timer)
            else:
                self._gone.add(timer)
            self.compact()

    def pop_due(self, now: int) -> tuple[int, Any, Any] | None:
        """Removes and returns the first timer at or before now."""
        heap, live = self._heap, self.live
        while heap and heap[0][0] <= now:
            timestamp, sequence, key, namespace = heapq.heappop(heap)
            timer = (timestamp, key, namespace)
            if live.get(timer) == sequence:
                del live[timer]
                if timer in self._fresh:
                    self._fresh.remove(timer)
                else:
                    self._gone.add(timer)
                return timer
        return None

    def _start_over(self) -> None:
        self._fresh = self._state_table.changed(VOID_NAMESPACE)
        self._gone = self._state_table.gone
