"""Slots of keys of strings, decimals, dates and of several columns: by hash, and compared with the keys themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.state.columnar.integer_index import IntegerIndex
from firesteel.runtime.state.columnar.keys import BatchKeys, key_arrays, key_values
from firesteel.runtime.state.columnar.row_columns import RowColumns
from firesteel.runtime.state.columnar.slots import KeySlots, grown

__all__ = ["HashedSlots"]

_MIN_GARBAGE = 4096


class HashedSlots(KeySlots):
    """The columns of keys are kept as they are; no key becomes a Python object but in snapshots."""

    def __init__(self, types: tuple[Any, ...]):
        super().__init__()
        self._types = types
        self._columns = range(len(types))
        self._rows = RowColumns(pa.schema([(str(index), type_) for index, type_ in enumerate(types)]))
        self._index = IntegerIndex()
        self._hashes = np.zeros(self.capacity, np.int64)
        self._row_of = np.zeros(self.capacity, np.int64)

    def find(self, keys: BatchKeys) -> Any:
        return self._find(keys.arrays, self._hash(keys.arrays))

    def insert(self, keys: BatchKeys, codes: Any, slots: Any) -> None:
        chosen = pa.array(codes)
        self._add([array.take(chosen) for array in keys.arrays], slots)

    def remove(self, slots: Any) -> None:
        self._index.remove(self._hashes[slots], slots)
        self.give_back(slots)
        if self._rows.count > 2 * self.count + _MIN_GARBAGE:
            kept = self.live()
            self._rows.keep(self._row_of[kept])
            self._row_of[kept] = np.arange(len(kept))

    def keys_at(self, slots: Any) -> list[Any]:
        return key_values(self._rows.take(self._row_of[slots]))

    def slots_of(self, keys: Sequence[Any]) -> Any:
        if not keys:
            return np.zeros(0, np.intp)
        arrays = key_arrays(keys, self._types)
        return self._find(arrays, self._hash(arrays))

    def load(self, keys: list[Any]) -> None:
        self._add(key_arrays(keys, self._types), self.take(len(keys)))

    def _hash(self, arrays: list[Any]) -> Any:
        return self._rows.hash(arrays, self._columns).view(np.int64)

    def _find(self, arrays: list[Any], hashes: Any) -> Any:
        def equal(positions: Any, slots: Any) -> Any:
            return self._rows.equal(self._row_of[slots], arrays, positions, self._columns)

        return self._index.find_equal(hashes, equal)

    def _add(self, arrays: list[Any], slots: Any) -> None:
        hashes = self._hash(arrays)
        first = self._rows.append(pa.RecordBatch.from_arrays(arrays, schema=self._rows.schema))
        self._hashes = grown(self._hashes, self.capacity)
        self._row_of = grown(self._row_of, self.capacity)
        self._hashes[slots] = hashes
        self._row_of[slots] = np.arange(first, first + len(slots))
        self._index.insert(hashes, slots)
