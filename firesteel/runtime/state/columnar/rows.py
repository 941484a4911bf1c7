"""Columnar state over a backend that stores rows: the columns hold the keys of one batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from firesteel.runtime.state.api.backend import KeyedStateBackend
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.runtime.state.columnar.pairs import PairColumn, Pairs, map_value, numbers_of, stored_value
from firesteel.runtime.state.columnar.state import (
    ColumnarKeyedState,
    ColumnarStateDescriptor,
    empty_columns,
    is_in_rows,
)

__all__ = ["StoredRows"]


class StoredRows(ColumnarKeyedState):
    """Reads the distinct keys of a batch into temporary slots, and stores those that changed as tuples.

    Columns of maps have objects that read and write one entry of a map state at a time.
    """

    def __init__(self, backend: KeyedStateBackend, descriptor: ColumnarStateDescriptor):
        self._backend = backend
        self._dtypes = descriptor.dtypes
        self._rows = [index for index, dtype in enumerate(descriptor.dtypes) if is_in_rows(dtype)]
        self._state = backend.get_state(descriptor.as_value_state(), internal=True)
        self._maps = {
            index: backend.get_state(map_state, internal=True) for index, map_state in descriptor.map_states().items()
        }
        self._keys: list[Any] = []
        self.columns = empty_columns(self._dtypes, 0)

    def lookup(self, keys: BatchKeys) -> tuple[Any, Any]:
        self._keys = keys.values
        rows = self._read(self._keys)
        is_new = np.fromiter((row is None for row in rows), bool, len(rows))
        self.columns = empty_columns(self._dtypes, len(rows))
        known = np.flatnonzero(~is_new)
        if len(known):
            stored = zip(*(row for row in rows if row is not None), strict=True)
            for index, values in zip(self._rows, stored, strict=True):
                column = self.columns[index]
                if isinstance(column, PairColumn):
                    column.load(known, values)
                else:
                    column[known] = np.fromiter(values, column.dtype, len(known))
        for index, state in self._maps.items():
            dtype = self._dtypes[index]
            if isinstance(dtype, Pairs):
                self.columns[index] = _StoredPairs(self._backend, state, self._keys, dtype.width)
                continue
            maps = (_StoredMap(self._backend, state, key) for key in self._keys)
            self.columns[index] = np.fromiter(maps, object, len(rows))
        return np.arange(len(rows)), is_new

    def update(self, slots: Any) -> None:
        rows = zip(*(_entries_at(self.columns[index], slots) for index in self._rows), strict=True)
        self._write([self._keys[slot] for slot in slots.tolist()], rows)

    def remove(self, slots: Any) -> None:
        keys = [self._keys[slot] for slot in slots.tolist()]
        self._write(keys, [None] * len(keys))
        for state in self._maps.values():
            for key in keys:
                self._backend.key = key
                state.clear()

    def __len__(self) -> int:
        return 0

    def _read(self, keys: Sequence[Any]) -> list[Any]:
        if hasattr(self._state, "values_of"):
            found: list[Any] = self._state.values_of(keys)
            return found
        rows = []
        for key in keys:
            self._backend.key = key
            rows.append(self._state.value())
        return rows

    def _write(self, keys: Sequence[Any], rows: Iterable[Any]) -> None:
        if hasattr(self._state, "update_all"):
            self._state.update_all(keys, rows)
            return
        for key, row in zip(keys, rows, strict=True):
            self._backend.key = key
            if row is None:
                self._state.clear()
            else:
                self._state.update(row)


class _StoredMap:
    """The map of one key, as far as counters need it."""

    __slots__ = ("_backend", "_key", "_state")

    def __init__(self, backend: KeyedStateBackend, state: Any, key: Any):
        self._backend = backend
        self._state = state
        self._key = key

    def get(self, value: Any, default: Any) -> Any:
        self._backend.key = self._key
        found = self._state.get(stored_value(value))
        return default if found is None else found

    def __setitem__(self, value: Any, count: Any) -> None:
        self._backend.key = self._key
        self._state.put(stored_value(value), count)

    def pop(self, value: Any, default: Any) -> None:
        self._backend.key = self._key
        self._state.remove(stored_value(value))

    def items(self) -> list[tuple[Any, Any]]:
        self._backend.key = self._key
        return [(map_value(value), count) for value, count in self._state.items()]


class _StoredPairs:
    """A column of pairs whose values are entries of a map state."""

    def __init__(self, backend: KeyedStateBackend, state: Any, keys: Sequence[Any], width: int):
        self._backend = backend
        self._state = state
        self._keys = keys
        self._width = width
        self._read: tuple[list[Any], list[Any], Any] = ([], [], None)

    def read(self, slots: Any, values: Any) -> Any:
        """The numbers of pairs, each of which occurs once."""
        keys = [self._keys[slot] for slot in slots.tolist()]
        stored = [stored_value(value) for value in values.tolist()]
        zeros = 0 if self._width == 1 else (0,) * self._width
        found = [zeros if entry is None else entry for entry in self._entries(keys, stored)]
        numbers = numbers_of(found, self._width)
        self._read = (keys, stored, numbers)
        return numbers.copy()

    def write(self, numbers: Any) -> None:
        """Sets the numbers of the pairs that were read last; stores those that differ."""
        keys, values, before = self._read
        differs = np.flatnonzero((numbers != before).any(axis=1)).tolist()
        entries = numbers[:, 0].tolist() if self._width == 1 else list(map(tuple, numbers.tolist()))
        is_there = numbers.any(axis=1).tolist()
        self._update(
            [keys[index] for index in differs],
            [values[index] for index in differs],
            [entries[index] if is_there[index] else None for index in differs],
        )

    def _entries(self, keys: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        if hasattr(self._state, "entries_of"):
            found: list[Any] = self._state.entries_of(keys, values)
            return found
        entries = []
        for key, value in zip(keys, values, strict=True):
            self._backend.key = key
            entries.append(self._state.get(value))
        return entries

    def _update(self, keys: Sequence[Any], values: Sequence[Any], entries: Sequence[Any]) -> None:
        if hasattr(self._state, "update_entries"):
            self._state.update_entries(keys, values, entries)
            return
        for key, value, entry in zip(keys, values, entries, strict=True):
            self._backend.key = key
            if entry is None:
                self._state.remove(value)
            else:
                self._state.put(value, entry)


def _entries_at(column: Any, slots: Any) -> list[Any]:
    if isinstance(column, PairColumn):
        return column.maps_at(slots)
    found: list[Any] = column[slots].tolist()
    return found
