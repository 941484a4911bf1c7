"""The changelog of a batch: which rows an aggregate emits for its keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.types import RowKind

__all__ = ["Changes", "are_equal"]

_INSERT, _UPDATE_BEFORE, _UPDATE_AFTER, _DELETE = (
    RowKind.INSERT.value,
    RowKind.UPDATE_BEFORE.value,
    RowKind.UPDATE_AFTER.value,
    RowKind.DELETE.value,
)


class Changes:
    """The rows to emit: for each key the old one, if any, then the new one, if any."""

    def __init__(self, is_new: Any, is_gone: Any, is_changed: Any, with_update_before: bool):
        """``is_gone`` and ``is_changed`` are None if no key is, or if all are."""
        count = len(is_new)
        is_known = ~is_new
        changes = is_known if is_changed is None else is_known & is_changed
        emits = np.zeros(2 * count, bool)
        kinds = np.empty(2 * count, np.int8)
        if with_update_before:
            emits[0::2] = changes
        emits[1::2] = is_new | changes
        kinds[0::2] = _UPDATE_BEFORE
        kinds[1::2] = np.where(is_new, _INSERT, _UPDATE_AFTER)
        if is_gone is not None:
            emits[0::2] = np.where(is_gone, is_known, emits[0::2])
            emits[1::2] &= ~is_gone
            kinds[0::2][is_gone] = _DELETE
        chosen = np.flatnonzero(emits)
        self._count = count
        self.keys = chosen >> 1
        """Per row, the number of its key."""
        self._is_new_row = chosen & 1
        self._kinds = kinds[chosen]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def kinds(self) -> Any:
        """The row kinds; None if all are insertions."""
        return self._kinds if self._kinds.any() else None

    def pick(self, old: Any, new: Any) -> Any:
        """The rows of a column, of whose old and new values there is one per key; without old ones all are new."""
        if old is None:
            return new.take(pa.array(self.keys))
        return pa.concat_arrays([old, new]).take(pa.array(self.keys + self._count * self._is_new_row))


def are_equal(old: Sequence[Any], new: Sequence[Any]) -> Any:
    """In which rows all columns are equal; null equals null, but NaN does not equal NaN."""
    equal = np.ones(len(old[0]), bool) if old else None
    for one, other in zip(old, new, strict=True):
        equal &= _equal(one, other)
    return equal


def _equal(one: Any, other: Any) -> Any:
    if one.type.num_fields:
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.fromiter((a == b for a, b in pairs), bool, len(one))
    equal = pc.equal(one, other)
    if equal.null_count:
        both = pc.and_(one.is_null(), other.is_null())
        equal = equal.fill_null(False)
        return equal.to_numpy(zero_copy_only=False) | both.to_numpy(zero_copy_only=False)
    return equal.to_numpy(zero_copy_only=False)
