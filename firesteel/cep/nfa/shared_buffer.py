"""The events of partial matches, shared between those that have the same beginning.

Flink keeps one graph of events per key whose edges have versions, and counts references. Here a partial match has a
reference to its last entry, and an entry to the one before it. Entries never change, so that partial matches share
them, the paths through them need no versions, and an entry is released with the last partial match that has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any, NamedTuple

__all__ = [
    "NEVER",
    "NO_START",
    "UNKNOWN",
    "Computation",
    "Entry",
    "NFAState",
    "events_of",
    "matched_events",
    "matched_ids",
]

NO_START = 1 << 62
"""The number of the first event where there is none yet: after all others."""


UNKNOWN, NEVER = -inf, inf
"""Times at which partial matches end."""


class Entry(NamedTuple):
    """An event of a partial match, and those before it."""

    stage: str
    event: Any
    number: int
    """Later events of a key have greater numbers."""
    previous: Any  # Entry | None


class Computation(NamedTuple):
    """A partial match: the state it is in, and its events."""

    start: int
    """The number of its first event."""
    state: str
    last: Entry | None
    start_timestamp: int
    previous_timestamp: int


class NFAState:
    """The partial matches of one key, and matches that wait for partial matches which began earlier.

    Both are binary heaps by the first event.
    """

    __slots__ = ("completed", "end", "has_new_start", "is_changed", "next_number", "partial")

    def __init__(self, partial: list[Computation], completed: list[Computation] | None = None, next_number: int = 0):
        self.partial = partial
        self.completed = [] if completed is None else completed
        self.next_number = next_number
        self.has_new_start = False
        """Whether a partial match has begun since this was reset."""
        self.is_changed = False
        """Whether anything has changed since this was reset."""
        self.end: float = UNKNOWN
        """Before that time no partial match times out."""

    def __reduce__(self) -> tuple[Any, ...]:
        # a loop has long chains of entries, on which pickle would recurse
        table: dict[int, int] = {}
        rows: list[tuple[str, Any, int, int]] = []
        partial = _pack(self.partial, table, rows)
        completed = _pack(self.completed, table, rows)
        return _unpickle, (rows, partial, completed, self.next_number)


def _pack(
    computations: Iterable[Computation], table: dict[int, int], rows: list[tuple[str, Any, int, int]]
) -> list[tuple[int, str, int, int, int]]:
    return [(each[0], each[1], _position(each.last, table, rows), each[3], each[4]) for each in computations]


def _position(entry: Entry | None, table: dict[int, int], rows: list[tuple[str, Any, int, int]]) -> int:
    """Adds an entry to the rows, after those before it, and returns its position; -1 for none."""
    chain = []
    while entry is not None and id(entry) not in table:
        chain.append(entry)
        entry = entry.previous
    position = -1 if entry is None else table[id(entry)]
    for each in reversed(chain):
        rows.append((each.stage, each.event, each.number, position))
        position = table[id(each)] = len(rows) - 1
    return position


def _unpickle(
    rows: list[tuple[str, Any, int, int]],
    partial: list[tuple[int, str, int, int, int]],
    completed: list[tuple[int, str, int, int, int]],
    next_number: int,
) -> NFAState:
    entries: list[Entry] = []
    for stage, event, number, position in rows:
        entries.append(Entry(stage, event, number, None if position < 0 else entries[position]))
    return NFAState(_unpack(partial, entries), _unpack(completed, entries), next_number)


def _unpack(packed: list[tuple[int, str, int, int, int]], entries: list[Entry]) -> list[Computation]:
    return [
        Computation(start, state, None if last < 0 else entries[last], first_time, previous_time)
        for start, state, last, first_time, previous_time in packed
    ]


def _path(entry: Entry | None) -> list[Entry]:
    path = []
    while entry is not None:
        path.append(entry)
        entry = entry.previous
    path.reverse()
    return path


def matched_events(entry: Entry | None) -> dict[str, list[Any]]:
    """Returns the events up to an entry by stage, in their order."""
    match: dict[str, list[Any]] = {}
    for each in _path(entry):
        match.setdefault(each.stage, []).append(each.event)
    return match


def matched_ids(entry: Entry | None) -> dict[str, list[int]]:
    """Returns the numbers of the events up to an entry by stage."""
    match: dict[str, list[int]] = {}
    for each in _path(entry):
        match.setdefault(each.stage, []).append(each.number)
    return match


def events_of(entry: Entry | None, stage: str) -> list[Any]:
    """Returns the events of one stage up to an entry."""
    events = []
    while entry is not None:
        if entry.stage == stage:
            events.append(entry.event)
        entry = entry.previous
    events.reverse()
    return events
