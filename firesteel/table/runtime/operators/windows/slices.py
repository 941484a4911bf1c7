"""Accumulators by slice of time and key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.state.columnar.slots import IntegerSlots, grown, reset
from firesteel.runtime.state.columnar.state import empty_columns
from firesteel.table.runtime.operators.aggregate.feeds import Rows
from firesteel.table.runtime.operators.aggregate.handler import AggregateHandler
from firesteel.table.runtime.operators.windows.key_rows import KeyRows

__all__ = ["SliceTable", "encoded"]

_SHIFT = np.int64(32)


class _Pairs:
    """Numbers of slices and keys as the keys of slots."""

    null_code = -1

    def __init__(self, integers: Any):
        self.integers = integers
        self.count = len(integers)


class SliceTable:
    """One slot for each slice and key, with the columns of all accumulators."""

    def __init__(self, handler: AggregateHandler, key_columns: Sequence[int], key_types: Sequence[Any]):
        self._handler = handler
        self.keys = KeyRows(key_columns, key_types)
        self._slots = IntegerSlots()
        self.columns = empty_columns(handler.dtypes, self._slots.capacity)
        self._ends = np.zeros(self._slots.capacity, np.int64)
        self._key_numbers = np.zeros(self._slots.capacity, np.int64)
        self._numbers: dict[int, int] = {}
        """The numbers of slices by their ends."""
        self._next_number = 0

    def slices(self) -> list[int]:
        """The ends of all slices that have rows."""
        return list(self._numbers)

    def locate(self, batch: ColumnBatch, codes: Any, ends: Any) -> tuple[Any, Any]:
        """Slots for the rows of a batch: per row the number of its slot among these, and these.

        ``ends`` are the ends of slices, and ``codes`` says which of them each row has.
        """
        key_codes, key_numbers = self.keys.lookup(batch)
        slices = np.array([self._number(end) for end in ends.tolist()], np.int64)
        if len(ends) == 1:
            row_codes = key_codes
            pairs = (slices[0] << _SHIFT) | key_numbers
            slice_of, key_of = np.zeros(len(pairs), np.intp), np.arange(len(pairs))
        else:
            row_codes, distinct = encoded(codes * len(key_numbers) + key_codes)
            slice_of, key_of = np.divmod(distinct, len(key_numbers))
            pairs = (slices[slice_of] << _SHIFT) | key_numbers[key_of]
        found: Any = _Pairs(pairs)
        slots = self._slots.find(found)
        is_new = slots < 0
        if is_new.any():
            new = np.flatnonzero(is_new)
            taken = self._slots.take(len(new))
            self._slots.insert(found, new, taken)
            slots[new] = taken
            self._grow()
            self._ends[taken] = ends[slice_of[new]]
            numbers = key_numbers[key_of[new]]
            self._key_numbers[taken] = numbers
            self.keys.refer(numbers)
        return row_codes, slots

    def accumulate(self, batch: ColumnBatch, codes: Any, ends: Any, signs: Any) -> None:
        """Takes up the rows of a batch."""
        row_codes, slots = self.locate(batch, codes, ends)
        self._handler.accumulate(self.columns, Rows(row_codes, signs, batch.data.columns, slots))

    def merge(self, batch: ColumnBatch, arrays: Sequence[Any], codes: Any, ends: Any) -> None:
        """Takes up partial results of the keys of a batch."""
        row_codes, slots = self.locate(batch, codes, ends)
        self._handler.merge(self.columns, Rows(row_codes, None, arrays, slots))

    def slots_between(self, start: int, end: int) -> Any:
        """The slots of slices that end after ``start`` and not after ``end``, by time."""
        live = self._slots.live()
        ends = self._ends[live]
        chosen = live[(ends > start) & (ends <= end)]
        return chosen[np.argsort(self._ends[chosen], kind="stable")]

    def ends_of(self, slots: Any) -> Any:
        """The ends of the slices of slots."""
        return self._ends[slots]

    def keys_of(self, slots: Any) -> Any:
        """The numbers of the keys of slots."""
        return self._key_numbers[slots]

    def remove(self, slots: Any) -> None:
        """Forgets slots; all those of their slices."""
        if not len(slots):
            return
        for end in np.unique(self._ends[slots]).tolist():
            del self._numbers[end]
        self.keys.release(self._key_numbers[slots])
        self._slots.remove(slots)
        reset(self.columns, slots)

    def _number(self, end: int) -> int:
        number = self._numbers.get(end)
        if number is None:
            number = self._numbers[end] = self._next_number
            self._next_number += 1
        return number

    def _grow(self) -> None:
        capacity = self._slots.capacity
        if len(self._ends) < capacity:
            self.columns[:] = [grown(column, capacity) for column in self.columns]
            self._ends = grown(self._ends, capacity)
            self._key_numbers = grown(self._key_numbers, capacity)


def encoded(values: Any) -> tuple[Any, Any]:
    """Which of the distinct ones each of an array of integers is, and these."""
    if len(values) and values[0] == values[-1] and (values == values[0]).all():
        return np.zeros(len(values), np.intp), values[:1]
    found = pa.array(values).dictionary_encode()
    return found.indices.to_numpy(zero_copy_only=False).astype(np.intp), found.dictionary.to_numpy()
