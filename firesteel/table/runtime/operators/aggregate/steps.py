"""Rows one after the other: what accumulators are after each of them, without mini-batches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from firesteel.table.runtime.operators.aggregate.feeds import FeedKey, Rows

__all__ = ["RowOrder", "Steps", "fed_signs"]


class RowOrder:
    """The rows of a batch by key, in the order in which they came.

    >>> order = RowOrder(np.array([0, 1, 0]), 2)
    >>> order.before.tolist(), order.totals(np.array([1, 10, 2])).tolist()
    ([-1, -1, 0], [1, 10, 3])
    """

    def __init__(self, codes: Any, keys: int):
        self._codes = codes
        self._by_key = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes, minlength=keys)
        self._starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        """Of the key of each row, by key."""

    @cached_property
    def before(self) -> Any:
        """The row before of the same key, -1 for the first."""
        rows = np.empty(len(self._codes), np.intp)
        rows[self._by_key] = np.where(self._starts == np.arange(len(rows)), -1, np.roll(self._by_key, 1))
        return rows

    def totals(self, numbers: Any) -> Any:
        """The sum of the numbers of each row and those before it of its key; it wraps."""
        sums = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(numbers[self._by_key], out=sums[1:])
        totals = np.empty(len(numbers), np.int64)
        totals[self._by_key] = sums[1:] - sums[self._starts]
        return totals


class Steps:
    """The rows that one accumulator gets, among all rows of a batch."""

    def __init__(self, rows: Rows, order: RowOrder, signs: Any, arguments: Sequence[int]):
        self.slots = rows.slots
        """Per key, its slot."""
        self.codes = rows.codes
        """Per row, the number of its key."""
        self.order = order
        self.signs = signs
        """Per row, 1 if it joins, -1 if it leaves, and 0 if it does not matter."""
        self._arrays = [rows.arrays[index] for index in arguments]

    @cached_property
    def fed(self) -> Any:
        """Which rows matter."""
        return np.flatnonzero(self.signs)

    def arguments(self) -> list[Any]:
        """The arguments of the rows that matter."""
        return [array.take(self.fed) for array in self._arrays]

    def pairs(self, values: Any) -> zip[tuple[int, int, Any]]:
        """For each row the number of its key, its sign, and the value of those that matter."""
        spread = np.full(len(self.codes), None, object)
        spread[self.fed] = values
        return zip(self.codes.tolist(), self.signs.tolist(), spread.tolist(), strict=True)


def fed_signs(rows: Rows, key: FeedKey) -> Any:
    """The signs of the rows that FILTER and the rule for nulls leave; 0 for others."""
    signs = np.ones(len(rows.codes), np.int64) if rows.signs is None else rows.signs.astype(np.int64)
    if key.filter is not None:
        signs = signs * rows.arrays[key.filter].fill_null(False).to_numpy(zero_copy_only=False)
    if not key.keeps_null:
        for index in key.arguments:
            if rows.arrays[index].null_count:
                signs = signs * rows.arrays[index].is_valid().to_numpy(zero_copy_only=False)
    return signs
