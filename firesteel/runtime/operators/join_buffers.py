"""Buffers of an interval join: the records of one side by key and timestamp, until no record can match them.

The state of a side is a map state from timestamp to the records with it, as in Flink, in every backend. What differs is
how the timestamps of a key that lie between two bounds are found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Any

from firesteel.api.state import MapStateDescriptor
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, KeyedStateBackend, ObjectStateBackend
from firesteel.types.copying import copy_value

__all__ = ["Bucket", "JoinBuffer", "ObjectJoinBuffer", "SortedJoinBuffer", "StateJoinBuffer"]

Bucket = tuple[int, list[Any]]
"""A timestamp and the records that have it."""

_MAX_SCANNED = 16
"""Up to so many timestamps of a key are looked at one by one; a sorted list of more is kept beside the state."""


class JoinBuffer(ABC):
    """The buffered records of one side. All methods but ``end_key`` are about the current key."""

    shares_objects = True
    """Whether the records of a bucket are those in the buffer, and not copies."""

    @abstractmethod
    def add(self, timestamp: int, value: Any) -> bool:
        """Adds a record; whether it is the first with its timestamp."""

    @abstractmethod
    def between(self, lower: int, upper: int) -> Iterable[Bucket]:
        """The buckets from one timestamp to another, both included, in the order of time."""

    @abstractmethod
    def remove(self, timestamp: int) -> None:
        """Removes a bucket."""

    def is_plain(self) -> bool:
        """Whether no record in the buffer, for any key, can be changed; asked once, of restored state."""
        return True


class ObjectJoinBuffer(JoinBuffer):
    """A buffer in the tables of a backend that keeps objects."""

    def __init__(self, backend: ObjectStateBackend, descriptor: MapStateDescriptor):
        backend.get_state(descriptor, internal=True)
        self._backend = backend
        self._table = backend.state_table(descriptor.get_name())
        self._keys: dict[Any, dict[int, list[Any]]] = self._table.namespaces[VOID_NAMESPACE]
        self._sorted: dict[Any, list[int]] = {}
        """The timestamps of keys that have many."""
        self._changed: set[Any] = set()
        self._tracked = self._table.tracked
        if self._tracked:
            self._start_over()
            self._table.on_snapshot(self._start_over)

    def _start_over(self) -> None:
        self._changed = self._table.changed(VOID_NAMESPACE)

    def add(self, timestamp: int, value: Any) -> bool:
        key = self._backend.key
        if self._tracked:
            self._changed.add(key)
        buckets = self._keys.get(key)
        if buckets is None:
            self._keys[key] = {timestamp: [value]}
            return True
        bucket = buckets.get(timestamp)
        if bucket is not None:
            bucket.append(value)
            return False
        buckets[timestamp] = [value]
        if key in self._sorted:
            insort(self._sorted[key], timestamp)
        return True

    def between(self, lower: int, upper: int) -> Iterable[Bucket]:
        key = self._backend.key
        buckets = self._keys.get(key)
        if buckets is None:
            return ()
        if len(buckets) <= _MAX_SCANNED:
            found = [(timestamp, bucket) for timestamp, bucket in buckets.items() if lower <= timestamp <= upper]
            if len(found) > 1:
                found.sort(key=_timestamp_of)
            return found
        timestamps = self._sorted.get(key)
        if timestamps is None:
            timestamps = self._sorted[key] = sorted(buckets)
        return [(timestamp, buckets[timestamp]) for timestamp in _between(timestamps, lower, upper)]

    def remove(self, timestamp: int) -> None:
        key = self._backend.key
        buckets = self._keys.get(key)
        if buckets is None or buckets.pop(timestamp, None) is None:
            return
        if self._tracked:
            self._changed.add(key)
        if not buckets:
            del self._keys[key]
        if key in self._sorted:
            if len(buckets) <= _MAX_SCANNED:
                del self._sorted[key]
            else:
                _remove(self._sorted[key], timestamp)

    def is_plain(self) -> bool:
        return all(
            copy_value(value) is value
            for buckets in self._keys.values()
            for bucket in buckets.values()
            for value in bucket
        )


class StateJoinBuffer(JoinBuffer):
    """A buffer in a map state, with the timestamps of each key in memory, where their timers are too."""

    shares_objects = False

    def __init__(self, backend: KeyedStateBackend, descriptor: MapStateDescriptor, restored: Iterable[tuple[Any, int]]):
        """``restored`` are the keys and timestamps of restored buckets."""
        self._backend = backend
        self._state = backend.get_state(descriptor, internal=True)
        self._timestamps: dict[Any, list[int]] = {}
        for key, timestamp in restored:
            self._timestamps.setdefault(key, []).append(timestamp)
        for timestamps in self._timestamps.values():
            timestamps.sort()

    def add(self, timestamp: int, value: Any) -> bool:
        timestamps = self._timestamps.get(self._backend.key)
        if timestamps is None:
            self._timestamps[self._backend.key] = [timestamp]
        else:
            place = bisect_left(timestamps, timestamp)
            if place < len(timestamps) and timestamps[place] == timestamp:
                self._state.put(timestamp, [*self._state.get(timestamp), value])
                return False
            timestamps.insert(place, timestamp)
        self._state.put(timestamp, [value])
        return True

    def between(self, lower: int, upper: int) -> Iterable[Bucket]:
        timestamps = self._timestamps.get(self._backend.key)
        if timestamps is None:
            return ()
        found = _between(timestamps, lower, upper)
        # one bucket in memory at a time
        return zip(found, map(self._state.get, found), strict=True)

    def remove(self, timestamp: int) -> None:
        timestamps = self._timestamps.get(self._backend.key)
        if timestamps is not None:
            _remove(timestamps, timestamp)
            if not timestamps:
                del self._timestamps[self._backend.key]
        self._state.remove(timestamp)


class SortedJoinBuffer(JoinBuffer):
    """A buffer of batch execution: records of one key at a time, which come in the order of their timestamps."""

    def __init__(self) -> None:
        self._timestamps: list[int] = []
        self._buckets: list[list[Any]] = []

    def add(self, timestamp: int, value: Any) -> bool:
        timestamps = self._timestamps
        if timestamps and timestamps[-1] == timestamp:
            self._buckets[-1].append(value)
            return False
        timestamps.append(timestamp)
        self._buckets.append([value])
        return True

    def between(self, lower: int, upper: int) -> Iterable[Bucket]:
        timestamps = self._timestamps
        if not timestamps or timestamps[-1] < lower:
            return ()
        begin, end = bisect_left(timestamps, lower), bisect_right(timestamps, upper)
        return zip(timestamps[begin:end], self._buckets[begin:end], strict=True)

    def remove(self, timestamp: int) -> None:
        """Never called: a key's records go when it ends."""
        raise AssertionError("no timers in a batch")

    def end_key(self) -> None:
        """Removes all records."""
        self._timestamps.clear()
        self._buckets.clear()


def _timestamp_of(bucket: Bucket) -> int:
    return bucket[0]


def _between(timestamps: list[int], lower: int, upper: int) -> list[int]:
    # most often all that is buffered is older than what a record can match, or none of it is
    if timestamps[-1] < lower or timestamps[0] > upper:
        return []
    return timestamps[bisect_left(timestamps, lower) : bisect_right(timestamps, upper)]


def _remove(timestamps: list[int], timestamp: int) -> None:
    place = bisect_left(timestamps, timestamp)
    if place < len(timestamps) and timestamps[place] == timestamp:
        del timestamps[place]
