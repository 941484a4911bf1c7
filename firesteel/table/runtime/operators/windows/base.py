"""What all operators of windows do: they know which windows are over, and fire them at watermarks or by the clock."""

from __future__ import annotations

import heapq
from abc import abstractmethod
from typing import Any

import numpy as np

from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.operators.base import OperatorContext, StateInitializationContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.table.runtime.operators.windows.state import restored_watermark, store_watermark
from firesteel.table.runtime.operators.windows.times import WindowTimes

__all__ = ["WindowOperator"]


class WindowOperator(ColumnOperator):
    """Fires windows in the order of their ends. Subclasses register the windows of their rows."""

    fires_together = True
    """Whether windows that are over fire in one call; not if a window that fires registers the next one."""

    def __init__(self, times: WindowTimes, is_proctime: bool):
        self._times = times
        self._is_proctime = is_proctime
        self._watermark = MIN_TIMESTAMP
        self._agenda: list[int] = []
        self._registered: set[int] = set()
        self._triggers: dict[int, int] = {}
        self._scheduled: int | None = None

    def initialize_state(self, context: StateInitializationContext) -> None:
        super().initialize_state(context)
        self._watermark = restored_watermark(context)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._dropped = context.counter("numLateRecordsDropped")

    def snapshot_state(
        self, checkpoint_id: int, operator_state: OperatorStateBackend, timestamp: int | None = None
    ) -> None:
        super().snapshot_state(checkpoint_id, operator_state, timestamp)
        self.store_windows()
        store_watermark(operator_state, self._watermark)

    @abstractmethod
    def store_windows(self) -> None:
        """Stores what has changed since the last snapshot in keyed state, also when the input has ended."""

    @abstractmethod
    def fire(self, ends: list[int]) -> None:
        """Emits the results of windows that are over, by their ends in order."""

    def is_over(self, end: int) -> bool:
        """Whether a window has fired, so that rows for it are late."""
        return not self._is_proctime and self._trigger(end) <= self._watermark

    def are_over(self, ends: Any) -> Any:
        """The same of an array of ends."""
        return np.fromiter((self.is_over(end) for end in ends.tolist()), bool, len(ends))

    def register(self, end: int) -> None:
        """Has a window fire when it is over."""
        if end not in self._registered:
            self._registered.add(end)
            heapq.heappush(self._agenda, end)
            if self._is_proctime:
                self._schedule()

    def count_late(self, rows: int) -> None:
        """Counts rows that are dropped."""
        self._dropped.inc(rows)

    def fire_timers(self, timestamp: int) -> bool:
        if not self._is_proctime:
            self._watermark = max(self._watermark, timestamp)
            self._fire_due(timestamp)
        return True

    def current_times(self, count: int) -> Any:
        """The local time of now, for each of a number of rows."""
        return np.full(count, self._times.local_one(self.context.processing_time()), np.int64)

    def _trigger(self, end: int) -> int:
        found = self._triggers.get(end)
        if found is None:
            if len(self._triggers) > 1 << 16:
                self._triggers.clear()
            found = self._triggers[end] = self._times.trigger(end)
        return found

    def _fire_due(self, now: int) -> None:
        while self._agenda and self._trigger(self._agenda[0]) <= now:
            due = [heapq.heappop(self._agenda)]
            while self.fires_together and self._agenda and self._trigger(self._agenda[0]) <= now:
                due.append(heapq.heappop(self._agenda))
            self.fire(due)
            self._registered.difference_update(due)

    def _schedule(self) -> None:
        first = self._trigger(self._agenda[0])
        if self._scheduled is None or first < self._scheduled:
            self._scheduled = first
            self.context.schedule(first, self._on_clock)

    def _on_clock(self, now: int) -> None:
        self._scheduled = None
        self._fire_due(now)
        if self._agenda:
            self._schedule()
