"""The keys of a state as rows of columns, so that results can have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.runtime.state.columnar.slots import grown, key_slots

__all__ = ["KeyRows"]

_MIN_GARBAGE = 4096
_MAX_CHUNKS = 64


class KeyRows:
    """Numbers keys, and keeps the columns of each. A key is forgotten when nothing refers to it."""

    def __init__(self, columns: Sequence[int], types: Sequence[Any]):
        self._columns = list(columns)
        self._slots = key_slots(types)
        self._references = np.zeros(self._slots.capacity, np.int64)
        self._rows = np.zeros(self._slots.capacity, np.int64)
        """Per key, its row in the chunks."""
        self._chunks: list[Any] = []
        self._count = 0

    def lookup(self, batch: ColumnBatch) -> tuple[Any, Any]:
        """Which of its distinct keys each row of a batch has, and their numbers."""
        keys = BatchKeys(batch, self._columns)
        numbers = self._slots.find(keys)
        is_new = numbers < 0
        if is_new.any():
            codes = np.flatnonzero(is_new)
            taken = self._slots.take(len(codes))
            self._slots.insert(keys, codes, taken)
            numbers[codes] = taken
            self._references = grown(self._references, self._slots.capacity)
            self._rows = grown(self._rows, self._slots.capacity)
            if self._columns:
                chunk = batch.data.select(self._columns).take(pa.array(keys.first_rows[codes]))
                self._chunks.append(chunk)
                self._rows[taken] = np.arange(self._count, self._count + len(codes))
                self._count += len(codes)
        return keys.codes, numbers

    def refer(self, numbers: Any) -> None:
        """One more reference to each of some keys, which may occur several times."""
        np.add.at(self._references, numbers, 1)

    def release(self, numbers: Any) -> None:
        """One reference less."""
        np.subtract.at(self._references, numbers, 1)
        touched = np.unique(numbers)
        gone = touched[self._references[touched] == 0]
        if len(gone):
            self._slots.remove(gone)
            live = int(np.count_nonzero(self._slots.is_live))
            if self._count > 2 * live + _MIN_GARBAGE:
                self._compact()

    def columns_of(self, numbers: Any) -> list[Any]:
        """The columns of keys."""
        if not self._columns:
            return []
        if len(self._chunks) > _MAX_CHUNKS:
            self._join()
        rows = pa.array(self._rows[numbers])
        if len(self._chunks) == 1:
            return list(self._chunks[0].take(rows).columns)
        taken = pa.Table.from_batches(self._chunks).take(rows).combine_chunks()
        return [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in taken.columns]

    def _join(self) -> None:
        self._chunks = pa.Table.from_batches(self._chunks).combine_chunks().to_batches()

    def _compact(self) -> None:
        live = self._slots.live()
        if not self._columns:
            return
        if len(live):
            self._join()
            self._chunks = [self._chunks[0].take(pa.array(self._rows[live]))]
        else:
            self._chunks = []
        self._rows[live] = np.arange(len(live))
        self._count = len(live)
