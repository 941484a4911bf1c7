"""Events that wait for the watermark, in memory, by timestamp."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

__all__ = ["WaitingEvents"]

Events = tuple[list[Any], list[Any]]
"""Keys, and the event of each."""


class WaitingEvents:
    """The events of all keys; those of one timestamp in the order in which they arrived."""

    __slots__ = ("_by_time", "_times")

    def __init__(self) -> None:
        self._by_time: dict[int, Events] = {}
        self._times: list[int] = []

    def at(self, timestamp: int) -> Events:
        """Returns the lists that keys and events of a timestamp are to be appended to."""
        events = self._by_time.get(timestamp)
        if events is None:
            events = self._by_time[timestamp] = ([], [])
            heappush(self._times, timestamp)
        return events

    def put(self, timestamp: int, key: Any, event: Any) -> None:
        """Adds an event."""
        keys, events = self.at(timestamp)
        keys.append(key)
        events.append(event)

    def put_before(self, timestamp: int, keys: list[Any], events: list[Any]) -> None:
        """Adds events that arrived before those that wait for the same timestamp."""
        waiting_keys, waiting_events = self.at(timestamp)
        waiting_keys[:0] = keys
        waiting_events[:0] = events

    def pop_due(self, watermark: int) -> tuple[int, list[Any], list[Any]] | None:
        """Removes and returns the events of the earliest timestamp that the watermark has passed."""
        times = self._times
        if not times or times[0] > watermark:
            return None
        timestamp = heappop(times)
        keys, events = self._by_time.pop(timestamp)
        return timestamp, keys, events

    def pop_all(self) -> Iterator[tuple[int, list[Any], list[Any]]]:
        """Removes and yields all events, those of the earliest timestamp first."""
        while self._times:
            timestamp = heappop(self._times)
            keys, events = self._by_time.pop(timestamp)
            yield timestamp, keys, events
