"""The input of the chaos job and what must come of it, both as functions of an index alone.

The input is a log that grows: record *i* is the same whenever and by whomever it is read. All records of a key lie in
one split, so they reach the key's operator in order and every result, also the running ones, is known exactly. Each
result is a line ``<kind> <group> <number> <payload>`` whose first three words no other result has.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "ALARM_EVERY",
    "JITTER_MS",
    "LANES",
    "SIDE_EVERY",
    "WINDOW_MS",
    "Event",
    "Expectations",
    "event_at",
    "line",
    "sum_payload",
]

LANES = 4
"""Splits; the parallelism of the source is at most this."""
KEYS_PER_LANE = 100
GROUPS_PER_LANE = 4
STEP_MS = 10
JITTER_MS = 400
WINDOW_MS = 2_000
SIDE_EVERY = 7
ALARM_EVERY = 25
_START_MS = 1_700_000_000_000 // WINDOW_MS * WINDOW_MS
_MASK = (1 << 64) - 1


class Event(NamedTuple):
    """A record: ``key`` for the sums, ``group``, of which there are fewer, for windows and timers."""

    position: int
    key: int
    group: int
    value: int
    time: int


def event_at(index: int) -> Event:
    """The record of an index."""
    noise = (index * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & _MASK
    noise ^= noise >> 31
    noise = (noise * 0xBF58476D1CE4E5B9) & _MASK
    noise ^= noise >> 29
    lane = index % LANES
    key = lane + LANES * (noise % KEYS_PER_LANE)
    group = lane + LANES * (noise // 1_000 % GROUPS_PER_LANE)
    time = _START_MS + index * STEP_MS + noise // 100_000 % JITTER_MS
    return Event(index, key, group, noise // 10_000_000 % 1_000, time)


def line(kind: str, group: int, number: int, payload: object) -> str:
    """A result as it stands in the output."""
    return f"{kind} {group} {number} {payload}"


def sum_payload(total: int, index: int) -> str:
    """What a running sum says beside its number: also which record it comes from."""
    return f"{total}@{index}"


@dataclass
class Bucket:
    """The records of a group in one window, which are also those of one timer."""

    count: int = 0
    total: int = 0


class Expectations:
    """What the job gives for the first records, as far as they have been looked at.

    ``results[kind, group]`` has the payloads by number, in the order in which they must become visible.
    """

    def __init__(self) -> None:
        self.results: dict[tuple[str, int], dict[int, str]] = defaultdict(dict)
        self.events = 0
        self._sums: dict[int, Bucket] = defaultdict(Bucket)
        self._counts: dict[int, int] = defaultdict(int)
        self._sides: dict[int, int] = defaultdict(int)
        self._open: dict[int, dict[int, Bucket]] = defaultdict(lambda: defaultdict(Bucket))

    def advance(self, events: int) -> None:
        """Takes the records into account up to a number of them."""
        while self.events < events:
            self._add(event_at(self.events))
            self.events += 1

    def end(self) -> None:
        """There are no more records: what is open closes."""
        for start in sorted(self._open):
            self._close(start)

    def __len__(self) -> int:
        return sum(len(payloads) for payloads in self.results.values())

    def _add(self, event: Event) -> None:
        for start in sorted(self._open):
            # no record comes any more that is this old
            if start + WINDOW_MS > _START_MS + event.position * STEP_MS:
                break
            self._close(start)
        total = self._sums[event.key]
        total.count += 1
        total.total += event.value
        self.results["sum", event.key][total.count] = sum_payload(total.total, event.position)
        if event.value % SIDE_EVERY == 0:
            self._sides[event.key] += 1
            self.results["side", event.key][self._sides[event.key]] = str(event.position)
        bucket = self._open[event.time // WINDOW_MS * WINDOW_MS][event.group]
        bucket.count += 1
        bucket.total += event.value
        self._counts[event.group] += 1
        if self._counts[event.group] % ALARM_EVERY == 0:
            self.results["alarm", event.group][self._counts[event.group]] = str(event.position)

    def _close(self, start: int) -> None:
        for group, bucket in self._open.pop(start).items():
            self.results["window", group][start] = f"{bucket.count}:{bucket.total}"
            self.results["timer", group][start + WINDOW_MS] = str(bucket.count)
