"""The five kinds of keyed state whose values expire. Each row carries the time of its last access after the value.

As in Flink, elements of a list and entries of a map live and expire one by one; a reduced value and an accumulator
expire as a whole. Flink removes expired values while RocksDB compacts; from Python there is no way to take part in
that, so a few rows are looked at as the state is used, and at each snapshot, until all have been, and again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from firesteel.api.state import AggregatingState, ListState, MapState, ReducingState, ValueState
from firesteel.api.state_ttl import StateTtlConfig
from firesteel.runtime.state.api.backend import Clock
from firesteel.runtime.state.rocksdb.database import Table
from firesteel.runtime.state.rocksdb.keys import decode_object, encode_object
from firesteel.runtime.state.rocksdb.states import (
    RocksDBListState,
    RocksDBMapState,
    RocksDBState,
    check_not_none,
    pack_number,
)
from firesteel.runtime.state.rocksdb.values import STAMP_BYTES, originals_of, pack_stamp, stamp_of, without_originals
from firesteel.types.copying import copy_value

if TYPE_CHECKING:
    from firesteel.runtime.state.rocksdb.backend import RocksDBKeyedStateBackend

__all__ = ["STATES", "TtlState"]

SWEEP_ROWS = 512
"""Rows that are looked at together, after as many accesses: so each access pays for one."""

_loads = pickle.loads
_END = b"\xff" * 16


class TtlState(RocksDBState):
    """What the expiring kinds share: judging, stamping and cleaning up."""

    def __init__(self, backend: RocksDBKeyedStateBackend, table: Table, descriptor: Any, clock: Clock):
        super().__init__(backend, table, descriptor)
        config: StateTtlConfig = descriptor.ttl_config
        self._clock = clock
        self._ttl = config.ttl_millis
        self._touch_on_read = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self._show_expired = config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        strategies = config.get_cleanup_strategies()
        self._in_background = strategies.get_rocksdb_compact_filter_cleanup_strategy() is not None
        self._accesses = 0
        self._swept_to = b""

    def sweep(self) -> None:
        """Looks at the next rows and removes those that have expired."""
        self._accesses = 0
        if not self._in_background:
            return
        now = self._clock()
        rows = list(islice(self._table.scan(self._swept_to, _END), SWEEP_ROWS))
        for row, data in rows:
            if stamp_of(data) + self._ttl <= now:
                self._delete(row)
        # a row right after the last one begins with it
        self._swept_to = rows[-1][0] + b"\0" if len(rows) == SWEEP_ROWS else b""

    def _count_access(self) -> None:
        if self._backend.key is not self._key:
            self._turn()
        self._accesses += 1
        if self._accesses >= SWEEP_ROWS:
            self.sweep()

    def _expired(self, data: bytes, now: int) -> bool:
        return stamp_of(data) + self._ttl <= now

    def _read(self, row: bytes) -> bytes | None:
        """The row's value if it may be seen; removes it if it has expired."""
        data = self._get(row)
        return None if data is None else self._see(row, data, self._clock())

    def _see(self, row: bytes, data: bytes, now: int) -> bytes | None:
        if self._expired(data, now):
            self._delete(row)
            return data if self._show_expired else None
        if self._touch_on_read:
            self._put(row, data[:-STAMP_BYTES] + pack_stamp(now))
        return data

    def _see_all(self, rows: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Those of the rows that may be seen."""
        now, seen = self._clock(), []
        for row, data in rows:
            visible = self._see(row, data, now)
            if visible is not None:
                seen.append((row, visible))
        return seen

    def _store(self, row: bytes, value: Any) -> None:
        self._put(row, self._dump(value) + self._trailer + pack_stamp(self._clock()))


class TtlValueState(TtlState, ValueState[Any]):
    """One expiring value per key."""

    def value(self) -> Any:
        """The current key's value, or None."""
        self._count_access()
        data = self._read(self._row)
        return None if data is None else _loads(data)

    def update(self, value: Any) -> None:
        """Replaces the value; None removes it."""
        self._count_access()
        if value is None:
            self._delete(self._row)
        else:
            self._store(self._row, value)


class TtlListState(TtlState, RocksDBListState, ListState[Any]):
    """A list per key whose elements expire one by one."""

    def __init__(self, backend: RocksDBKeyedStateBackend, table: Table, descriptor: Any, clock: Clock):
        TtlState.__init__(self, backend, table, descriptor, clock)
        self._next_number = backend.next_number

    def get(self) -> list[Any]:
        """The elements that may be seen."""
        self._count_access()
        return [_loads(data) for _row, data in self._see_all(self._table.scan_prefix(self._row))]

    def add(self, value: Any) -> None:
        """Appends one element."""
        check_not_none(value)
        self._count_access()
        self._store(self._row + pack_number(self._next_number()), value)

    def add_all(self, values: Sequence[Any]) -> None:
        """Appends elements."""
        for value in values:
            check_not_none(value)
        for value in values:
            self.add(value)

    def _moved(self, data: bytes) -> bytes:
        return without_originals(data[:-STAMP_BYTES]) + self._trailer + data[-STAMP_BYTES:]


class TtlMapState(TtlState, RocksDBMapState, MapState[Any, Any]):
    """A map per key whose entries expire one by one."""

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        self._count_access()
        data = self._read(self._row + encode_object(key))
        return None if data is None else _loads(data)

    def put(self, key: Any, value: Any) -> None:
        """Sets one entry."""
        self._count_access()
        stamp = pack_stamp(self._clock())
        self._put(self._row + encode_object(key), self._dump(value) + self._trailer_with(key) + stamp)

    def contains(self, key: Any) -> bool:
        """Whether there is an entry that may be seen; counts as a read, as in Flink."""
        self._count_access()
        return self._read(self._row + encode_object(key)) is not None

    def items(self) -> list[tuple[Any, Any]]:
        """The entries that may be seen."""
        return [(self._map_key(row, data), _loads(data)) for row, data in self._seen()]

    def keys(self) -> list[Any]:
        """The map keys that may be seen."""
        return [self._map_key(row, data) for row, data in self._seen()]

    def values(self) -> list[Any]:
        """The values that may be seen."""
        return [_loads(data) for _row, data in self._seen()]

    def is_empty(self) -> bool:
        """Whether no entry may be seen."""
        return not self._seen()

    def _seen(self) -> list[tuple[bytes, bytes]]:
        self._count_access()
        return self._see_all(self._table.scan_prefix(self._row))

    def _map_key(self, row: bytes, data: bytes) -> Any:
        originals = originals_of(data[:-STAMP_BYTES])
        return decode_object(row[len(self._row) :]) if originals is None else originals[2]


class _TtlMergeable(TtlState):
    """A reduced value or an accumulator."""

    def _alive(self, data: bytes | None) -> Any:
        """The value if it has not expired."""
        return None if data is None or self._expired(data, self._clock()) else _loads(data)

    def _merge(self, target: Any, sources: Iterable[Any], combine: Callable[[Any, Any], Any]) -> None:
        now = self._clock()
        taken = [_loads(data) for data in self._take([target, *sources]) if not self._expired(data, now)]
        if taken:
            result = taken[0]
            for value in taken[1:]:
                result = combine(result, value)
            turn_back = self._turn_to(target)
            self._store(self._row, result)
            turn_back()


class TtlReducingState(_TtlMergeable, ReducingState[Any]):
    """An expiring reduced value per key."""

    def __init__(self, backend: RocksDBKeyedStateBackend, table: Table, descriptor: Any, clock: Clock):
        super().__init__(backend, table, descriptor, clock)
        self._reduce: Callable[[Any, Any], Any] = descriptor.get_reduce_function().reduce

    def get(self) -> Any:
        """The reduced value, or None."""
        self._count_access()
        data = self._read(self._row)
        return None if data is None else _loads(data)

    def add(self, value: Any) -> None:
        """Reduces the value into what has not expired."""
        self._count_access()
        current = self._alive(self._get(self._row))
        self._store(self._row, value if current is None else self._reduce(current, copy_value(value)))

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Reduces the sources' values into the target's."""
        self._merge(target, sources, self._reduce)


class TtlAggregatingState(_TtlMergeable, AggregatingState[Any, Any]):
    """An expiring accumulator per key."""

    def __init__(self, backend: RocksDBKeyedStateBackend, table: Table, descriptor: Any, clock: Clock):
        super().__init__(backend, table, descriptor, clock)
        self._function = descriptor.get_agg_function()

    def get(self) -> Any:
        """The accumulator's result, or None."""
        self._count_access()
        data = self._read(self._row)
        return None if data is None else self._function.get_result(_loads(data))

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator, or to a new one if that has expired."""
        self._count_access()
        accumulator = self._alive(self._get(self._row))
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._store(self._row, self._function.add(copy_value(value), accumulator))

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Merges the sources' accumulators into the target's."""
        self._merge(target, sources, self._function.merge)


STATES: dict[str, Any] = {
    "value": TtlValueState,
    "list": TtlListState,
    "map": TtlMapState,
    "reducing": TtlReducingState,
    "aggregating": TtlAggregatingState,
}
