"""Columnar state over a backend that stores rows: the columns hold the keys of one batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from firesteel.runtime.state.api.backend import KeyedStateBackend
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.runtime.state.columnar.state import ColumnarKeyedState, ColumnarStateDescriptor, empty_columns

__all__ = ["StoredRows"]


class StoredRows(ColumnarKeyedState):
    """Reads the distinct keys of a batch into temporary slots, and stores those that changed as tuples."""

    def __init__(self, backend: KeyedStateBackend, descriptor: ColumnarStateDescriptor):
        self._backend = backend
        self._dtypes = descriptor.dtypes
        self._state = backend.get_state(descriptor.as_value_state(), internal=True)
        self._keys: list[Any] = []
        self.columns = empty_columns(self._dtypes, 0)

    def lookup(self, keys: BatchKeys) -> tuple[Any, Any]:
        backend, read = self._backend, self._state.value
        self._keys = keys.values
        rows = []
        for key in self._keys:
            backend.key = key
            rows.append(read())
        is_new = np.fromiter((row is None for row in rows), bool, len(rows))
        self.columns = empty_columns(self._dtypes, len(rows))
        known = np.flatnonzero(~is_new)
        if len(known):
            stored = zip(*(rows[index] for index in known.tolist()), strict=True)
            for column, values in zip(self.columns, stored, strict=True):
                column[known] = np.fromiter(values, column.dtype, len(known))
        return np.arange(len(rows)), is_new

    def update(self, slots: Any) -> None:
        backend, write = self._backend, self._state.update
        rows = zip(*(column[slots].tolist() for column in self.columns), strict=True)
        for slot, row in zip(slots.tolist(), rows, strict=True):
            backend.key = self._keys[slot]
            write(row)

    def remove(self, slots: Any) -> None:
        for slot in slots.tolist():
            self._backend.key = self._keys[slot]
            self._state.clear()

    def __len__(self) -> int:
        return 0
