"""Feeds: which rows reach an accumulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["FeedKey", "Rows", "fed_rows", "signed_counts"]


@dataclass
class Rows:
    """Rows of a batch with the numbers of their keys."""

    codes: Any
    """Per row, the number of its key."""
    signs: Any
    """Per row, 1 if it joins and -1 if it leaves; None if all join."""
    arrays: Sequence[Any]
    """The columns."""
    slots: Any
    """Per key, its slot."""

    @cached_property
    def row_slots(self) -> Any:
        """The slot of each row."""
        return self.slots[self.codes]

    def take(self, indices: Any) -> Rows:
        """Some of the rows."""
        taken = pa.array(indices)
        signs = None if self.signs is None else self.signs[indices]
        return Rows(self.codes[indices], signs, [array.take(taken) for array in self.arrays], self.slots)


@dataclass(frozen=True)
class FeedKey:
    """What decides which rows an accumulator gets, and which of their columns."""

    arguments: tuple[int, ...]
    filter: int | None = None
    is_distinct: bool = False
    keeps_null: bool = False


def fed_rows(rows: Rows, key: FeedKey, filters: Sequence[int] = ()) -> Rows:
    """The rows that FILTER and the rule for nulls leave, with the arguments as columns, then other filters."""
    arrays = [rows.arrays[index] for index in key.arguments]
    keep = None
    if key.filter is not None:
        keep = rows.arrays[key.filter].fill_null(False).to_numpy(zero_copy_only=False)
    if not key.keeps_null:
        for array in arrays:
            if array.null_count:
                valid = array.is_valid().to_numpy(zero_copy_only=False)
                keep = valid if keep is None else keep & valid
    arrays += [rows.arrays[index].fill_null(False) for index in filters]
    if keep is None:
        return _with_arrays(rows, arrays)
    mask = pa.array(keep)
    signs = None if rows.signs is None else rows.signs[keep]
    return Rows(rows.codes[keep], signs, [array.filter(mask) for array in arrays], rows.slots)


def _with_arrays(rows: Rows, arrays: Sequence[Any]) -> Rows:
    fed = Rows(rows.codes, rows.signs, arrays, rows.slots)
    if "row_slots" in rows.__dict__:
        fed.__dict__["row_slots"] = rows.row_slots
    return fed


def signed_counts(rows: Rows) -> Any:
    """How many rows of each key there are, less those that leave."""
    count = len(rows.slots)
    if rows.signs is None:
        return np.bincount(rows.codes, minlength=count)
    joins = rows.signs > 0
    return np.bincount(rows.codes[joins], minlength=count) - np.bincount(rows.codes[~joins], minlength=count)
