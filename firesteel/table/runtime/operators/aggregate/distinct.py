"""DISTINCT: the distinct values of arguments, kept once for all calls that differ by their FILTER only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.state.columnar.pairs import Pairs
from firesteel.table.runtime.operators.aggregate.accumulators import Columns
from firesteel.table.runtime.operators.aggregate.counters import ValueCounter
from firesteel.table.runtime.operators.aggregate.feeds import FeedKey, Rows, fed_rows
from firesteel.table.runtime.operators.aggregate.steps import fed_signs
from firesteel.types.internal import arrow_type
from firesteel.types.logical import LogicalType

__all__ = ["DistinctView"]

_MAX_BITS = 63


class DistinctView:
    """Turns rows into those that bring a value for the first time, or take away its last occurrence, for each filter.

    A value of a key has the number of its occurrences for each filter. Where rows never leave it has a bit for each
    filter instead: whether it occurs.
    """

    def __init__(self, types: Sequence[LogicalType], keeps_null: bool, retracts: bool):
        self._types = types
        self._keeps_null = keeps_null
        self._retracts = retracts
        self._counter = ValueCounter(types)
        self._has_objects = keeps_null or self._counter.has_objects
        self._feeds: list[FeedKey] = []
        self._valued: set[FeedKey] = set()
        """Feeds of accumulators that need values, not only their number."""

    def add(self, feed: FeedKey, needs_values: bool) -> None:
        """One more accumulator gets the distinct values of a feed."""
        if feed not in self._feeds:
            self._feeds.append(feed)
        if needs_values:
            self._valued.add(feed)

    @cached_property
    def _has_bits(self) -> bool:
        return not self._retracts and len(self._feeds) <= _MAX_BITS

    @cached_property
    def dtype(self) -> Pairs:
        """That of its column. It is read when all accumulators are known."""
        return Pairs(1 if self._has_bits else len(self._feeds), self._has_objects)

    # -- rows and partial results ---------------------------------------------------------------------

    def accumulated(self, columns: Columns, rows: Rows) -> Iterator[tuple[FeedKey, Rows]]:
        """Counts rows, with all columns of the input; the rows that accumulators get."""
        first = self._feeds[0]
        fed = fed_rows(rows, FeedKey(first.arguments, None, False, self._keeps_null), self._filters)
        masks = fed.arrays[len(self._types) :]
        filters = dict(zip(self._filters, (mask.to_numpy(zero_copy_only=False) for mask in masks), strict=True))
        codes, keys, values = self._counter.pairs(fed.codes, fed.arrays[: len(self._types)])
        numbers = np.zeros((len(keys), self.dtype.width), np.int64)
        for index, feed in enumerate(self._feeds):
            chosen = None if feed.filter is None else filters[feed.filter]
            own = codes if chosen is None else codes[chosen]
            if self._has_bits:
                _set_bit(numbers, own, index)
            elif fed.signs is None:
                numbers[:, index] = np.bincount(own, minlength=len(keys))
            else:
                np.add.at(numbers[:, index], own, fed.signs if chosen is None else fed.signs[chosen])
        return self._changed(columns, rows.slots, keys, values, numbers)

    def run(self, columns: Columns, rows: Rows) -> Iterator[tuple[FeedKey, Any]]:
        """Counts rows one after the other; for each feed 1 for rows that bring a value and -1 for those that take it.

        Other rows have 0.
        """
        first = self._feeds[0]
        matters = np.flatnonzero(fed_signs(rows, FeedKey(first.arguments, None, False, self._keeps_null)))
        arguments = [rows.arrays[index].take(matters) for index in first.arguments]
        codes, keys, values = self._counter.pairs(rows.codes[matters], arguments)
        before = columns[0].read(rows.slots[keys], values)
        after = before.copy()
        for index, feed in enumerate(self._feeds):
            signs = fed_signs(rows, feed)[matters]
            changes = np.zeros(len(rows.codes), np.int64)
            bits = after[:, 0] >> index & 1 if self._has_bits else after[:, index]
            counts = bits.tolist()
            for row, pair, sign in zip(matters.tolist(), codes.tolist(), signs.tolist(), strict=True):
                if sign:
                    count = counts[pair]
                    counts[pair] = count + sign
                    if (count > 0) != (count + sign > 0):
                        changes[row] = sign
            if self._has_bits:
                after[:, 0] |= (np.array(counts, np.int64) > 0).astype(np.int64) << index
            else:
                after[:, index] = counts
            yield feed, changes
        columns[0].write(after)

    def merged(self, columns: Columns, rows: Rows) -> Iterator[tuple[FeedKey, Rows]]:
        """Merges partial results; the rows that accumulators get."""
        arguments = len(self._types)
        lengths = rows.arrays[0].value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        owners = np.repeat(rows.codes, lengths)
        codes, keys, values = self._counter.pairs(owners, [array.flatten() for array in rows.arrays[:arguments]])
        numbers = np.zeros((len(keys), self.dtype.width), np.int64)
        for index, array in enumerate(rows.arrays[arguments:]):
            found = array.flatten().to_numpy(zero_copy_only=False)
            if not self._has_bits:
                np.add.at(numbers[:, index], codes, found)
            elif len(self._feeds) == 1:
                numbers[:] = 1
            else:
                for bit in range(len(self._feeds)):
                    _set_bit(numbers, codes[(found >> bit) & 1 == 1], bit)
        return self._changed(columns, rows.slots, keys, values, numbers)

    def partial(self, columns: Columns, slots: Any) -> list[Any]:
        """The values of slots as lists, for each argument, and then lists of their numbers."""
        sizes, values, numbers = columns[0].of(slots)
        offsets = np.zeros(len(slots) + 1, np.int32)
        np.cumsum(sizes, out=offsets[1:])
        arrays = [*self._counter.decode(values), *map(pa.array, np.ascontiguousarray(numbers.T))]
        return [
            pa.ListArray.from_arrays(pa.array(offsets), array, type_)
            for array, type_ in zip(arrays, self.partial_types(), strict=True)
        ]

    def partial_types(self) -> list[Any]:
        """The types of these columns."""
        return self._partial_types

    @cached_property
    def _partial_types(self) -> list[Any]:
        arguments = [pa.list_(arrow_type(type_)) for type_ in self._types]
        return [*arguments, *[pa.list_(pa.int64())] * self.dtype.width]

    @cached_property
    def _filters(self) -> tuple[int, ...]:
        return tuple(feed.filter for feed in self._feeds if feed.filter is not None)

    def _changed(
        self, columns: Columns, slots: Any, keys: Any, values: Any, numbers: Any
    ) -> Iterator[tuple[FeedKey, Rows]]:
        """Applies what rows amount to; for each feed the values that came and went."""
        matters = numbers.any(axis=1)
        if not matters.all():
            keys, values, numbers = keys[matters], values[matters], numbers[matters]
        column = columns[0]
        before = column.read(slots[keys], values)
        after = before | numbers if self._has_bits else before + numbers
        column.write(after)
        for index, feed in enumerate(self._feeds):
            if self._has_bits:
                changed = np.flatnonzero((after[:, 0] & ~before[:, 0]) >> index & 1)
                signs = None
            else:
                is_there = after[:, index] > 0
                changed = np.flatnonzero(is_there != (before[:, index] > 0))
                signs = np.where(is_there[changed], 1, -1)
                if (signs > 0).all():
                    signs = None
            arrays = self._counter.decode(values[changed]) if feed in self._valued else []
            yield feed, Rows(keys[changed], signs, arrays, slots)


def _set_bit(numbers: Any, codes: Any, bit: int) -> None:
    occurs = np.zeros(len(numbers), np.int64)
    occurs[codes] = 1 << bit
    numbers[:, 0] |= occurs
