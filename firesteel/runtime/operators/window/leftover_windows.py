"""Restored windows of another size, from before the program was changed: they keep their bounds until they fire."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from firesteel.common.windows import TimeWindow
from firesteel.runtime.model.elements import MAX_WATERMARK

__all__ = ["LeftoverWindows"]


class LeftoverWindows:
    """Fires and deletes windows that no record is added to any more."""

    def __init__(self, fire: Callable[[TimeWindow, list[Any]], bool], delete: Callable[[TimeWindow], None]):
        """``fire`` returns False if it has to be left to a later turn to fire all keys."""
        self._fire = fire
        self._delete = delete
        self._agenda: list[tuple[int, int, int, int]] = []  # (time, 0 to fire or 1 to delete, start, end)
        self._yet_to_fire: dict[TimeWindow, list[Any]] = {}

    def add(self, window: TimeWindow, yet_to_fire: list[Any], cleanup_time: int) -> None:
        """Adds a window and the keys it has not fired for."""
        if cleanup_time < MAX_WATERMARK:
            heapq.heappush(self._agenda, (cleanup_time, 1, window.start, window.end))
        if yet_to_fire:
            self._yet_to_fire[window] = yet_to_fire
            heapq.heappush(self._agenda, (window.max_timestamp(), 0, window.start, window.end))

    def advance(self, timestamp: int) -> bool:
        """Event time has reached the timestamp; False if ``fire`` was."""
        agenda = self._agenda
        while agenda and agenda[0][0] <= timestamp:
            _, what, start, end = heapq.heappop(agenda)
            window = TimeWindow(start, end)
            if what == 0:
                if not self._fire(window, self._yet_to_fire.pop(window)):
                    return False
            else:
                self._delete(window)
        return True
