"""Keys of column batches: the key group of each row, the same as that of a record with this key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mmh3

from firesteel.common.time import Instant
from firesteel.common.types import Row
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.key_groups import HASH_SEED, encode_key
from firesteel.types.arrow import require_pyarrow
from firesteel.types.arrow_decoding import ArrowRecords

__all__ = ["ColumnKeySelector", "KeyGroups", "distinct_keys", "state_key"]


@dataclass(frozen=True)
class ColumnKeySelector:
    """The key of a row: the value of one column, or the tuple of the values of several; of none, the empty tuple.

    It stands where the key selector of a keyed stream of records stands.
    """

    columns: tuple[int, ...]

    def get_key(self, value: Any) -> Any:
        """Rows of a batch have no key one by one."""
        raise AssertionError("the keys of columns are computed by KeyGroups")


def distinct_keys(batch: ColumnBatch, columns: Sequence[int]) -> tuple[Any, list[Any]]:
    """Which key each row has, as a numpy array of positions, and the keys: as records have them, and each once."""
    pa = require_pyarrow("Columns")
    if not columns:
        import numpy as np

        return np.zeros(len(batch), np.int64), [()]
    codes: Any = None
    values: list[list[Any]] = []
    parts: list[Any] = []
    for column in columns:
        array = batch.data.column(column)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        field = batch.data.schema.field(column)
        if pa.types.is_nested(array.type):
            numbers, own = _nested_keys(array, field)
        else:
            encoded = array.dictionary_encode(null_encoding="encode")
            numbers = encoded.indices.to_numpy(zero_copy_only=False).astype("int64")
            own = _python_values(encoded.dictionary, field)
        values.append(own)
        parts.append(numbers)
        if codes is None:
            codes = numbers
        else:
            # renumbered after each column, so that the product of two stays far below 2**63
            combined = pa.array(codes * max(len(values[-1]), 1) + numbers).dictionary_encode()
            codes = combined.indices.to_numpy(zero_copy_only=False).astype("int64")
    if len(values) == 1:
        return codes, values[0]
    return codes, list(zip(*(_pick(codes, part, own) for part, own in zip(parts, values, strict=True)), strict=True))


def _pick(codes: Any, part: Any, values: list[Any]) -> list[Any]:
    """The value of one column in each distinct key."""
    import numpy as np

    count = int(codes.max()) + 1 if len(codes) else 0
    first = np.zeros(count, np.int64)
    first[codes] = part
    return [values[index] for index in first.tolist()]


def _nested_keys(array: Any, field: Any) -> tuple[Any, list[Any]]:
    """As ``distinct_keys``, of a column of arrays, rows or maps, for which Arrow has no kernel."""
    import numpy as np

    places: dict[Any, int] = {}
    numbers = [places.setdefault(_nested_key(value), len(places)) for value in _python_values(array, field)]
    return np.array(numbers, np.int64), list(places)


def _nested_key(value: Any) -> Any:
    """A value that may be nested as a key. Its first item tells it from a null, whose stand-in is a tuple, too.

    >>> _nested_key([1, None]), _nested_key({"b": [2.0], "a": -0.0})
    (('[]', 1, None), ('{}', ('a', '-0.0'), ('b', ('[]', 2.0))))
    """
    if value is None:
        return None
    if isinstance(value, dict):
        items = ((_nested_key(key), _nested_key(item)) for key, item in value.items())
        return ("{}", *sorted(items, key=repr))
    if isinstance(value, (list, tuple, Row)):
        return ("[]", *map(_nested_key, value))
    return state_key(value)


def _python_values(array: Any, field: Any) -> list[Any]:
    pa = require_pyarrow("Columns")
    if pa.types.is_dictionary(field.type):
        field = field.with_type(field.type.value_type)
    batch = pa.RecordBatch.from_arrays([array], schema=pa.schema([field.with_nullable(True)]))
    return [value for (value,) in ArrowRecords(batch.schema, as_tuples=True).decode(batch)]


class KeyGroups:
    """Computes the key groups of the rows of batches.

    Columns of integers are hashed as a whole. Of other keys the distinct ones of a batch are; their groups are kept.
    """

    CAPACITY = 1 << 18

    def __init__(self, columns: Sequence[int], max_parallelism: int):
        self._columns = tuple(columns)
        self._max_parallelism = max_parallelism
        self._known: dict[Any, int] = {}

    def of(self, batch: ColumnBatch) -> Any:
        """The key group of each row, as a numpy array."""
        import numpy as np

        arrays = [batch.data.column(column) for column in self._columns]
        if not arrays:
            return np.full(len(batch), self._group(()), np.uint32)
        if all(self._is_integer(array.type) and not array.null_count for array in arrays):
            numbers = [array.to_numpy(zero_copy_only=False).astype("<i8", copy=False) for array in arrays]
            return _hash_integers(numbers) % np.uint32(self._max_parallelism)
        codes, keys = distinct_keys(batch, self._columns)
        if any("float" in str(array.type) or "double" in str(array.type) for array in arrays):
            keys = list(map(state_key, keys))  # a dictionary would take -0.0 for 0.0
        return np.array(self._groups(keys), np.uint32)[codes]

    def _is_integer(self, type_: Any) -> bool:
        return type_ in self._integers

    @cached_property
    def _integers(self) -> frozenset[Any]:
        pa = require_pyarrow("Columns")
        return frozenset((pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()))

    def _groups(self, keys: list[Any]) -> list[int]:
        known = self._known
        try:
            groups = list(map(known.get, keys))
        except TypeError:  # an unhashable key, which encode_key refuses with a hint
            groups = [None] * len(keys)
        if None not in groups:
            return groups  # type: ignore[return-value]
        if len(known) > self.CAPACITY:
            known.clear()
        for index, group in enumerate(groups):
            if group is None:
                groups[index] = known[keys[index]] = self._group(keys[index])
        return groups  # type: ignore[return-value]

    def _group(self, key: Any) -> int:
        digest: int = mmh3.mmh3_32_uintdigest(encode_key(state_key(key)), HASH_SEED)
        return digest % self._max_parallelism


def state_key(key: Any) -> Any:
    """The key of a row as keyed state has it. Null, NaN, -0.0 and instants, which are keys in SQL, have stand-ins.

    >>> state_key("a"), state_key(("a", None)), state_key(None), state_key(-0.0)
    ('a', ('a', None), (None,), '-0.0')
    """
    if key is None:
        return (None,)
    if type(key) is Instant:
        return (key.seconds, key.nanos)
    if type(key) is float and (key != key or (key == 0 and math.copysign(1, key) < 0)):
        return "NaN" if key != key else "-0.0"
    if type(key) is tuple:
        return tuple(None if item is None else state_key(item) for item in key)
    return key


def _hash_integers(columns: Sequence[Any]) -> Any:
    """murmur3 of the keys that the integers of one column, or of several, are: see ``encode_key``."""
    import numpy as np

    if len(columns) == 1:
        return _murmur3(np.ascontiguousarray(columns[0]).view("<u4").reshape(-1, 2), 8)
    length = 1 + 12 * len(columns)
    encoded = np.zeros((len(columns[0]), length + -length % 4), np.uint8)
    encoded[:, 0] = ord("(")
    for index, column in enumerate(columns):
        start = 1 + 12 * index
        encoded[:, start] = 8  # the length of what follows, in 4 bytes
        encoded[:, start + 4 : start + 12] = np.ascontiguousarray(column).view(np.uint8).reshape(-1, 8)
    return _murmur3(encoded.view("<u4"), length)


def _murmur3(blocks: Any, length: int) -> Any:
    """murmur3 of rows of that many bytes, which are filled up with zeros to blocks of 4."""
    import numpy as np

    hashed = np.full(len(blocks), HASH_SEED, np.uint32)
    for index in range(blocks.shape[1]):
        k = blocks[:, index] * np.uint32(0xCC9E2D51)
        k = (k << np.uint32(15)) | (k >> np.uint32(17))
        k *= np.uint32(0x1B873593)
        hashed ^= k
        if index < length // 4:
            hashed = (hashed << np.uint32(13)) | (hashed >> np.uint32(19))
            hashed *= np.uint32(5)
            hashed += np.uint32(0xE6546B64)
    hashed ^= np.uint32(length)
    hashed ^= hashed >> np.uint32(16)
    hashed *= np.uint32(0x85EBCA6B)
    hashed ^= hashed >> np.uint32(13)
    hashed *= np.uint32(0xC2B2AE35)
    hashed ^= hashed >> np.uint32(16)
    return hashed
