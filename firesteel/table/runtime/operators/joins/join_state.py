"""The records of both sides of a regular join as keyed state: columns of all keys, or of the keys of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from firesteel.runtime.state.api.backend import KeyedStateBackend, ObjectStateBackend
from firesteel.runtime.state.api.chunks import CHUNK_ENTRIES
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.table.runtime.operators.joins.records import Records
from firesteel.table.runtime.operators.joins.side_tables import SideTables, key_types
from firesteel.table.runtime.operators.joins.sides import STATES, JoinSide
from firesteel.table.runtime.operators.keyed_objects import keyed_objects

__all__ = ["JoinState", "join_state"]

_MIN_SWEEP_MS = 1_000


class JoinState(ABC):
    """For each batch: ``lookup`` gives slots to its keys, the operator changes records, and ``finish`` ends it."""

    sides: tuple[Records, Records]

    @abstractmethod
    def lookup(self, keys: BatchKeys, now: int) -> Any:
        """The slot of each distinct key."""

    @abstractmethod
    def finish(self, slots: Any) -> None:
        """The records of these slots have been changed."""


def join_state(backend: KeyedStateBackend, sides: tuple[JoinSide, JoinSide]) -> JoinState:
    """The state of a join, with what was restored."""
    if isinstance(backend, ObjectStateBackend):
        return _RecordTables(backend, sides)
    return _StoredRecords(backend, sides)


class _RecordTables(JoinState):
    """The records of all keys."""

    def __init__(self, backend: ObjectStateBackend, sides: tuple[JoinSide, JoinSide]):
        self.sides = (Records(sides[0]), Records(sides[1]))
        types = key_types([side.row_type for side in sides], [side.keys for side in sides])
        self._tables = SideTables(backend, STATES, types, self.sides)
        self._next_sweep = 0

    def lookup(self, keys: BatchKeys, now: int) -> Any:
        self._sweep(now)
        return self._tables.lookup(keys)

    def finish(self, slots: Any) -> None:
        self._tables.release(slots)

    def _sweep(self, now: int) -> None:
        """Removes all records that have expired, from time to time."""
        times = [side.side.ttl_ms for side in self.sides if side.side.ttl_ms]
        if not times or now < self._next_sweep:
            return
        self._next_sweep = now + max(min(times) // 8, _MIN_SWEEP_MS)
        for side in self.sides:
            if side.side.ttl_ms:
                self.finish(side.expire(now))


class _StoredRecords(JoinState):
    """The records of the keys of one batch: read before it, and those that have changed written after it."""

    def __init__(self, backend: KeyedStateBackend, sides: tuple[JoinSide, JoinSide]):
        self._backend = backend
        self._sides = sides
        self._states = [keyed_objects(backend, name) for name in STATES]
        self._keys: list[Any] = []
        self._next_sweep = 0

    def lookup(self, keys: BatchKeys, now: int) -> Any:
        self._sweep(now)
        self._read(keys.values)
        return np.arange(keys.count)

    def _read(self, keys: list[Any]) -> None:
        self._keys = keys
        self.sides = (Records(self._sides[0]), Records(self._sides[1]))
        slots = np.arange(len(keys))
        for side, state in zip(self.sides, self._states, strict=True):
            side.reserve(len(keys))
            side.load(slots, state.load(keys))

    def finish(self, slots: Any) -> None:
        for side, state in zip(self.sides, self._states, strict=True):
            changed = np.flatnonzero(side.is_changed)
            state.store_all([self._keys[slot] for slot in changed.tolist()], side.entries(changed))

    def _sweep(self, now: int) -> None:
        """Removes all records that have expired, from time to time; reads all keys."""
        times = [side.ttl_ms for side in self._sides if side.ttl_ms]
        if not times or now < self._next_sweep:
            return
        is_first = not self._next_sweep
        self._next_sweep = now + max(*times, _MIN_SWEEP_MS)
        if is_first:
            return
        keys = list(dict.fromkeys(key for name in STATES for key in self._backend.keys(name)))
        for start in range(0, len(keys), CHUNK_ENTRIES):
            self._read(keys[start : start + CHUNK_ENTRIES])
            for side in self.sides:
                if side.side.ttl_ms:
                    side.expire(now)
            self.finish(np.arange(len(self._keys)))
