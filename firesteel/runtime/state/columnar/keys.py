"""The distinct keys of a batch, as columnar state looks them up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import distinct_keys, state_key

__all__ = ["BatchKeys", "are_hashed", "are_integers", "key_arrays", "key_values"]

_INTEGERS = frozenset((pa.int8(), pa.int16(), pa.int32(), pa.int64()))
_PLAIN = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal128, pa.types.is_date32)
"""Types whose values are keys as they are, but for null."""
_NULL = state_key(None)


class BatchKeys:
    """Numbers the distinct keys of a batch in the order in which they first occur.

    >>> batch = ColumnBatch(pa.record_batch({"k": pa.array([7, 5, 7, None])}))
    >>> keys = BatchKeys(batch, [0])
    >>> keys.codes.tolist(), keys.first_rows.tolist(), keys.values
    ([0, 1, 0, 2], [0, 1, 3], [7, 5, (None,)])
    """

    def __init__(self, batch: ColumnBatch, columns: Sequence[int]):
        arrays = [_plain(batch.data.column(column)) for column in columns]
        types = [array.type for array in arrays]
        self.integers: Any = None
        """The keys as an array, where they are one column of integers; that of null is 0."""
        self.null_code = -1
        """The number of the key that is null, among ``integers``."""
        self.arrays: list[Any] = []
        """The columns of the keys, where ``are_hashed`` is true for their types."""
        if are_integers(types):
            encoded = arrays[0].dictionary_encode(null_encoding="encode")
            self.codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
            dictionary = encoded.dictionary
            if dictionary.null_count:
                self.null_code = dictionary.is_null().index(True).as_py()
                dictionary = dictionary.fill_null(0)
            self.integers = dictionary.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
            self.count = len(self.integers)
        elif are_hashed(types):
            self._encode(arrays)
        else:
            self.codes, keys = distinct_keys(batch, columns)
            self._take_stand_ins(list(map(state_key, keys)))
            self.count = len(self._keys)

    @cached_property
    def values(self) -> list[Any]:
        """The keys as keyed state has them."""
        if self.integers is None:
            return key_values(self.arrays) if self.arrays else self._keys
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

    def _encode(self, columns: list[Any]) -> None:
        """Numbers the keys without a Python object for any."""
        encoded = [column.dictionary_encode(null_encoding="encode") for column in columns]
        numbers = [column.indices.to_numpy(zero_copy_only=False).astype(np.int64) for column in encoded]
        codes = numbers[0]
        for column, more in zip(encoded[1:], numbers[1:], strict=True):
            # renumbered after each column, so that the product of two stays far below 2**63
            combined = pa.array(codes * max(len(column.dictionary), 1) + more).dictionary_encode()
            codes = combined.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        self.codes = codes.astype(np.intp, copy=False)
        self.arrays = [column.dictionary for column in encoded]
        self.count = len(self.arrays[0])
        if len(columns) > 1:
            self.count = int(codes.max()) + 1 if len(codes) else 0
            self.arrays = [
                array.take(pa.array(own[self.first_rows])) for array, own in zip(self.arrays, numbers, strict=True)
            ]

    def _take_stand_ins(self, keys: list[Any]) -> None:
        """Takes stand-ins for the keys; there is one NaN, although floats have several."""
        numbers: dict[Any, int] = {}
        new_codes = [numbers.setdefault(key, len(numbers)) for key in keys]
        if len(numbers) < len(keys):
            self.codes = np.array(new_codes, np.intp)[self.codes]
        self._keys = list(numbers)


def are_integers(types: Sequence[Any]) -> bool:
    """Whether keys of these types are one column of integers."""
    return len(types) == 1 and types[0] in _INTEGERS


def are_hashed(types: Sequence[Any]) -> bool:
    """Whether keys of these types are looked up by hash: neither floats nor instants, which have stand-ins."""
    return bool(types) and all(any(plain(type_) for plain in _PLAIN) for type_ in types)


def key_values(arrays: Sequence[Any]) -> list[Any]:
    """Keys of columns as keyed state has them.

    >>> key_values([pa.array(["a", None])]), key_values([pa.array(["a", None]), pa.array([1, 2])])
    (['a', (None,)], [('a', 1), (None, 2)])
    """
    columns = list(map(_values, arrays))
    if len(columns) > 1:
        return list(zip(*columns, strict=True))
    return [_NULL if key is None else key for key in columns[0]] if arrays[0].null_count else columns[0]


def key_arrays(keys: Sequence[Any], types: Sequence[Any]) -> list[Any]:
    """The columns of keys as keyed state has them.

    >>> [array.to_pylist() for array in key_arrays(["a", (None,)], [pa.string()])]
    [['a', None]]
    """
    if len(types) == 1:
        return [pa.array([None if key == _NULL else key for key in keys], types[0])]
    return [pa.array(column, type_) for column, type_ in zip(zip(*keys, strict=True), types, strict=True)]


def _values(array: Any) -> list[Any]:
    if pa.types.is_string(array.type):  # by way of numpy at a fraction of the cost
        return list(array.to_numpy(zero_copy_only=False).tolist())
    return list(array.to_pylist())


def _plain(array: Any) -> Any:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
