"""Sessions of keys: intervals of time that grow and merge, each with a slot for what belongs to it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Session", "Sessions", "in_sessions"]


class Session(NamedTuple):
    """A session of a key, by its number; times in milliseconds."""

    start: int
    end: int
    slot: int
    key: int


class Merge(NamedTuple):
    """The contents of one slot are to be added to another."""

    target: int
    source: int
    key: int


def in_sessions(keys: Any, times: Any, gap: int) -> tuple[Any, Any, Any, Any]:
    """Rows in sessions among themselves: which one each row has; the key, first and last time of each.

    >>> codes, keys, first, last = in_sessions(np.array([1, 2, 1, 1]), np.array([5, 5, 9, 30]), 10)
    >>> codes.tolist(), keys.tolist(), first.tolist(), last.tolist()
    ([0, 2, 0, 1], [1, 1, 2], [5, 30, 5], [9, 30, 5])
    """
    order = np.lexsort((times, keys))
    sorted_keys, sorted_times = keys[order], times[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (sorted_keys[1:] != sorted_keys[:-1]) | (sorted_times[1:] - sorted_times[:-1] > gap)
    codes = np.empty(len(order), np.intp)
    codes[order] = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    lasts = np.append(starts[1:], len(order)) - 1
    return codes, sorted_keys[starts], sorted_times[starts], sorted_times[lasts]


class Sessions:
    """The open sessions of all keys."""

    def __init__(self) -> None:
        self._by_key: dict[int, list[Session]] = {}
        self._by_end: dict[int, dict[Session, None]] = {}
        self.changed: set[int] = set()
        """Ends at which sessions have come or gone since the last snapshot."""

    def find(self, key: int, start: int, end: int) -> list[Session]:
        """The sessions of a key that an interval touches, in order."""
        return [found for found in self._by_key.get(key, ()) if found.start <= end and start <= found.end]

    def add(self, key: int, start: int, end: int, slot: int) -> tuple[Session, list[Merge]]:
        """Adds an interval: the session that it is part of now, and which contents are merged."""
        touched = self.find(key, start, end)
        if not touched:
            session = Session(start, end, slot, key)
            self._put(session)
            return session, []
        for found in touched:
            self._take(found)
        target = touched[0].slot
        session = Session(min(start, touched[0].start), max(end, *(found.end for found in touched)), target, key)
        self._put(session)
        return session, [Merge(target, slot, key), *(Merge(target, found.slot, key) for found in touched[1:])]

    def at(self, end: int) -> list[Session]:
        """The sessions with an end."""
        return list(self._by_end.get(end, ()))

    def pop(self, end: int) -> list[Session]:
        """Removes the sessions with an end."""
        found = self.at(end)
        for session in found:
            self._take(session)
        return found

    def _put(self, session: Session) -> None:
        sessions = self._by_key.setdefault(session.key, [])
        sessions.append(session)
        sessions.sort()
        self._by_end.setdefault(session.end, {})[session] = None
        self.changed.add(session.end)

    def _take(self, session: Session) -> None:
        sessions = self._by_key[session.key]
        sessions.remove(session)
        if not sessions:
            del self._by_key[session.key]
        ends = self._by_end[session.end]
        del ends[session]
        if not ends:
            del self._by_end[session.end]
        self.changed.add(session.end)
