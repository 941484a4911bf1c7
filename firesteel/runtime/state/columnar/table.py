"""Columnar state on the hashmap backend: the arrays are the state table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from firesteel.runtime.state.api.backend import VOID_NAMESPACE
from firesteel.runtime.state.api.chunks import encode_chunks
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.runtime.state.columnar.pairs import PackedMap, PairColumn, map_value, stored_value
from firesteel.runtime.state.columnar.slots import grown, key_slots, reset
from firesteel.runtime.state.columnar.state import (
    ColumnarKeyedState,
    ColumnarStateDescriptor,
    empty_columns,
    is_in_rows,
)
from firesteel.runtime.state.columnar.values import ColumnValues
from firesteel.runtime.state.hashmap.state_table import Cleanup, StateTable

__all__ = ["ColumnTable"]

_MIN_SWEEP_MS = 1_000


class ColumnTable(StateTable, ColumnarKeyedState):
    """The state of all keys as arrays, and the state table of which snapshots are made.

    The synchronous part of a snapshot copies what changed, or everything, out of the arrays.
    """

    def __init__(
        self,
        descriptor: ColumnarStateDescriptor,
        restored: StateTable,
        restored_maps: Mapping[int, StateTable],
        clock: Callable[[], int],
    ):
        super().__init__(descriptor.name, restored.tracked)
        self._clock = clock
        self._ttl = descriptor.ttl_ms
        self._next_sweep = 0
        self._slots = key_slots(descriptor.key_types)
        self._removed: set[Any] = set()
        """Keys that the last snapshot may have and that are not there any more, unless they came again."""
        self.columns = empty_columns(descriptor.dtypes, self._slots.capacity)
        self._stamps: Any = np.zeros(self._slots.capacity, np.int64) if self._ttl else None
        self._is_changed = np.zeros(self._slots.capacity, bool)
        self._in_rows = [index for index, dtype in enumerate(descriptor.dtypes) if is_in_rows(dtype)]
        self._load(restored.namespaces.get(VOID_NAMESPACE, {}))
        self.map_tables = [MapColumnTable(table.name, self, index) for index, table in restored_maps.items()]
        """The tables of the columns of maps."""
        for index, table in restored_maps.items():
            self._load_maps(self.columns[index], table.namespaces.get(VOID_NAMESPACE, {}))
        self.namespaces = {VOID_NAMESPACE: _Entries(self)}  # type: ignore[dict-item]

    # -- the state ------------------------------------------------------------------------------------

    def lookup(self, keys: BatchKeys) -> tuple[Any, Any]:
        if self._ttl:
            self._sweep()
        slots = self._slots.find(keys)
        is_new = slots < 0
        if is_new.any():
            codes = np.flatnonzero(is_new)
            taken = self._slots.take(len(codes))
            self._grow()
            self._slots.insert(keys, codes, taken)
            slots[codes] = taken
        if self._ttl:
            expired = ~is_new & (self._stamps[slots] <= self._clock() - self._ttl)
            if expired.any():
                reset(self.columns, slots[expired])
                is_new |= expired
        return slots, is_new

    def update(self, slots: Any) -> None:
        self._is_changed[slots] = True
        if self._ttl:
            self._stamps[slots] = self._clock()

    def remove(self, slots: Any) -> None:
        if self.tracked:
            self._removed.update(self._slots.keys_at(slots))
        reset(self.columns, slots)
        self._is_changed[slots] = False
        self._slots.remove(slots)

    def __len__(self) -> int:
        return self._slots.count

    def _grow(self) -> None:
        capacity = self._slots.capacity
        if len(self._is_changed) < capacity:
            self.columns[:] = [grown(column, capacity) for column in self.columns]
            self._is_changed = grown(self._is_changed, capacity)
            if self._ttl:
                self._stamps = grown(self._stamps, capacity)

    def _sweep(self) -> None:
        """Forgets all keys that have expired, from time to time."""
        now = self._clock()
        if now < self._next_sweep:
            return
        self._next_sweep = now + max(self._ttl // 8, _MIN_SWEEP_MS)
        live = self._slots.live()
        expired = live[self._stamps[live] <= now - self._ttl]
        if len(expired):
            self.remove(expired)

    def _load(self, entries: Mapping[Any, Any]) -> None:
        if not entries:
            return
        self._slots.load(list(entries))
        self._grow()
        rows = list(entries.values())
        if self._ttl:
            self._stamps[: len(rows)] = [stamp for _, stamp in rows]
            rows = [row for row, _ in rows]
        for index, values in zip(self._in_rows, zip(*rows, strict=True), strict=True):
            column = self.columns[index]
            if isinstance(column, PairColumn):
                column.load(np.arange(len(rows)), values)
            else:
                column[: len(rows)] = np.fromiter(values, column.dtype, len(rows))

    def _load_maps(self, column: Any, entries: Mapping[Any, Any]) -> None:
        slots = np.fromiter(map(self._slots.slot_of, entries), np.intp, len(entries))
        known = [
            (slot, {map_value(value): count for value, count in found.items()})
            for slot, found in zip(slots.tolist(), entries.values(), strict=True)
            if slot >= 0
        ]
        if isinstance(column, PairColumn):
            column.load(slots[slots >= 0], [found for _, found in known])
            return
        for slot, found in known:
            column[slot] = found

    # -- the table of snapshots -----------------------------------------------------------------------

    def values_at(self, slots: Any) -> ColumnValues:
        """The entries of some slots."""
        columns = [_entries_at(self.columns[index], slots) for index in self._in_rows]
        return ColumnValues(columns, self._stamps[slots] if self._ttl else None)

    def maps_at(self, index: int, slots: Any) -> tuple[list[Any], list[Any]]:
        """The keys of slots that have entries in a column of maps, and these maps as map states have them."""
        column = self.columns[index]
        is_packed = isinstance(column, PairColumn)
        maps = column.packed_at(slots) if is_packed else column[slots].tolist()
        found = [(slot, entries) for slot, entries in zip(slots.tolist(), maps, strict=True) if entries]
        keys = self._slots.keys_at(np.array([slot for slot, _ in found], np.intp))
        if is_packed:
            return keys, [entries.stored() for _, entries in found]
        return keys, [
            {stored_value(value): count for value, count in entries.items()} if None in entries else entries
            for _, entries in found
        ]

    def live(self) -> Any:
        """The slots of all keys."""
        return self._slots.live()

    def changed_keys(self) -> tuple[Any, list[Any]]:
        """The slots that have changed since the last snapshot, and the keys that are gone."""
        removed = list(self._removed)
        slots = self._slots.slots_of(removed).tolist()
        return np.flatnonzero(self._is_changed), [key for key, slot in zip(removed, slots, strict=True) if slot < 0]

    def encode_all(self, cleanup: Cleanup | None, now: int) -> Iterator[bytes]:
        return self._encode(self._slots.live())

    def encode_changes(self) -> Iterator[bytes]:
        changed, gone = self.changed_keys()
        yield from encode_chunks(self.name, VOID_NAMESPACE, gone, None)
        yield from self._encode(changed)

    def _encode(self, slots: Any) -> Iterator[bytes]:
        return encode_chunks(self.name, VOID_NAMESPACE, self._slots.keys_at(slots), self.values_at(slots))

    def count(self) -> int:
        return len(self)

    def start_over(self, *, known: bool = False) -> None:
        self._is_changed[:] = False
        self._removed = set()

    def entry(self, key: Any) -> Any:
        """The stored value of a key, None if it has none."""
        slot = self._slots.slot_of(key)
        return None if slot < 0 else self.values_at(np.array([slot]))[0]

    def keys(self) -> list[Any]:
        """All keys."""
        return self.keys_at(self._slots.live())

    def keys_at(self, slots: Any) -> list[Any]:
        """The keys of slots."""
        return self._slots.keys_at(slots)


class MapColumnTable(StateTable):
    """The state table of a column of maps: a map state in snapshots."""

    def __init__(self, name: str, table: ColumnTable, index: int):
        super().__init__(name, table.tracked)
        self._table = table
        self._index = index
        self.namespaces = {VOID_NAMESPACE: _Maps(table, index)}  # type: ignore[dict-item]

    def encode_all(self, cleanup: Cleanup | None, now: int) -> Iterator[bytes]:
        return self._encode(self._table.live())

    def encode_changes(self) -> Iterator[bytes]:
        changed, gone = self._table.changed_keys()
        if len(changed):
            # a map may have lost its last entry
            gone = [*gone, *self._table.keys_at(changed)]
        yield from encode_chunks(self.name, VOID_NAMESPACE, gone, None)
        yield from self._encode(changed)

    def _encode(self, slots: Any) -> Iterator[bytes]:
        return encode_chunks(self.name, VOID_NAMESPACE, *self._table.maps_at(self._index, slots))

    def count(self) -> int:
        return len(self.namespaces[VOID_NAMESPACE])

    def start_over(self, *, known: bool = False) -> None:
        """The table of the rows starts over for all."""


class _Maps(Mapping[Any, Any]):
    """The maps as those read them who know state tables."""

    def __init__(self, table: ColumnTable, index: int):
        self._table = table
        self._index = index

    def _all(self) -> dict[Any, Any]:
        keys, maps = self._table.maps_at(self._index, self._table.live())
        return {
            key: found.unpacked() if isinstance(found, PackedMap) else found
            for key, found in zip(keys, maps, strict=True)
        }

    def __getitem__(self, key: Any) -> Any:
        return self._all()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class _Entries(Mapping[Any, Any]):
    """The entries as those read them who know state tables."""

    def __init__(self, table: ColumnTable):
        self._table = table

    def __getitem__(self, key: Any) -> Any:
        value = self._table.entry(key)
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._table.keys())

    def __len__(self) -> int:
        return len(self._table)


def _entries_at(column: Any, slots: Any) -> Any:
    """A column of the tuples of keys."""
    if not isinstance(column, PairColumn):
        return column[slots]
    return np.fromiter(column.maps_at(slots), object, len(slots))
