"""The distinct keys of a batch, as columnar state looks them up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import distinct_keys, state_key

__all__ = ["BatchKeys"]

_INTEGERS = frozenset((pa.int8(), pa.int16(), pa.int32(), pa.int64()))
_PLAIN = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_date)
"""Types whose values are keys as they are, but for null."""


class BatchKeys:
    """Numbers the distinct keys of a batch in the order in which they first occur.

    >>> batch = ColumnBatch(pa.record_batch({"k": pa.array([7, 5, 7, None])}))
    >>> keys = BatchKeys(batch, [0])
    >>> keys.codes.tolist(), keys.first_rows.tolist(), keys.values
    ([0, 1, 0, 2], [0, 1, 3], [7, 5, (None,)])
    """

    def __init__(self, batch: ColumnBatch, columns: Sequence[int]):
        self._batch = batch
        self._columns = columns
        self.integers: Any = None
        """The keys as an array, where they are one column of integers; that of null is 0."""
        self.null_code = -1
        """The number of the key that is null, among ``integers``."""
        if len(columns) == 1 and batch.data.column(columns[0]).type in _INTEGERS:
            encoded = batch.data.column(columns[0]).dictionary_encode(null_encoding="encode")
            self.codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
            dictionary = encoded.dictionary
            if dictionary.null_count:
                self.null_code = dictionary.is_null().index(True).as_py()
                dictionary = dictionary.fill_null(0)
            self.integers = dictionary.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
            self.count = len(self.integers)
        else:
            self.codes, self._keys = distinct_keys(batch, columns)
            if self._needs_stand_ins():
                self._replace_keys(list(map(state_key, self._keys)))
            self.count = len(self._keys)

    @cached_property
    def values(self) -> list[Any]:
        """The keys as keyed state has them."""
        if self.integers is None:
            return self._keys
        keys: list[Any] = self.integers.tolist()
        if self.null_code >= 0:
            keys[self.null_code] = state_key(None)
        return keys

    @cached_property
    def first_rows(self) -> Any:
        """The first row of each key."""
        rows = np.empty(self.count, np.intp)
        rows[self.codes[::-1]] = np.arange(len(self.codes) - 1, -1, -1)
        return rows

    def _needs_stand_ins(self) -> bool:
        """Whether keys may be null, NaN, -0.0 or instants."""
        columns = [self._batch.data.column(column) for column in self._columns]
        return any(column.null_count or not any(plain(column.type) for plain in _PLAIN) for column in columns)

    def _replace_keys(self, keys: list[Any]) -> None:
        """Takes stand-ins for the keys; there is one NaN, although floats have several."""
        numbers: dict[Any, int] = {}
        new_codes = [numbers.setdefault(key, len(numbers)) for key in keys]
        if len(numbers) < len(keys):
            self.codes = np.array(new_codes, np.intp)[self.codes]
        self._keys = list(numbers)
