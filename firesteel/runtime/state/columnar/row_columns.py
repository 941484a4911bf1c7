"""Rows as arrays that grow: rows are appended and found by number, all columns of many rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.runtime.state.columnar.hashing import SEED, hash_bytes, hash_words, raw_values

__all__ = ["Decoder", "RowColumns"]

Decoder = Callable[[int, Any], list[Any]]
"""Takes the number of a column and an array: its values as Python objects whose ``repr`` is equal for equal values."""

_MIN_CAPACITY = 1024
_FAN_IN = 4
"""So many segments of a level become one of the next."""
_MAX_SEGMENT_BYTES = 256 * 1024 * 1024
_MAX_COPIED = 1 << 16
"""Rows that are copied at a time."""


class RowColumns:
    """Rows with the columns of a schema, numbered from 0.

    Values of a fixed width and strings are in arrays with room to grow, of which a row is read at its number. Columns
    of other types are segments of Arrow arrays; to compare their values ``decode`` is called.

    >>> rows = RowColumns(pa.schema([("k", pa.int64()), ("s", pa.string())]))
    >>> rows.append(pa.record_batch({"k": [1, 2, None], "s": ["a", None, "c"]}, schema=rows.schema))
    0
    >>> [column.to_pylist() for column in rows.take(np.array([2, 0]))]
    [[None, 1], ['c', 'a']]
    """

    def __init__(self, schema: Any, decode: Decoder | None = None):
        self.schema = schema
        self._columns = [_column(index, field.type, decode) for index, field in enumerate(schema)]
        self.count = 0

    def append(self, data: Any) -> int:
        """Adds the rows of a RecordBatch; returns the number of the first one."""
        first = self.count
        if data.num_rows:
            for column, array in zip(self._columns, data.columns, strict=True):
                column.append(_plain(array, column.type), first)
            self.count += data.num_rows
        return first

    def take(self, numbers: Any, columns: Sequence[int] | None = None, is_null: Any = None) -> list[Any]:
        """Some columns of the rows with these numbers; all null where ``is_null``."""
        chosen = self._columns if columns is None else [self._columns[index] for index in columns]
        return [column.take(numbers, is_null) for column in chosen]

    def hash(self, arrays: Sequence[Any], columns: Sequence[int], hashes: Any = None) -> Any:
        """A hash of 64 bits of each row of arrays, which have the types of columns."""
        if hashes is None:
            hashes = np.full(len(arrays[0]) if arrays else 0, SEED)
        for index, array in zip(columns, arrays, strict=True):
            column = self._columns[index]
            hashes = column.hash(_plain(array, column.type), hashes)
        return hashes

    def equal(self, numbers: Any, arrays: Sequence[Any], rows: Any, columns: Sequence[int]) -> Any:
        """Whether rows with numbers are equal to rows of the arrays; null is equal to null, and NaN to NaN."""
        same = np.ones(len(numbers), bool)
        for index, array in zip(columns, arrays, strict=True):
            column = self._columns[index]
            same &= column.equal(numbers, _plain(array, column.type), rows)
        return same

    def are_equal(self, column: int, left: Any, right: Any) -> Any:
        """Whether values of two arrays of a column are equal; as ``equal`` compares them."""
        found = self._columns[column]
        return found.are_equal(_plain(left, found.type), _plain(right, found.type))

    def keep(self, numbers: Any) -> None:
        """Keeps these rows only, which are numbered from 0 again."""
        columns, self._columns = self._columns, [column.empty() for column in self._columns]
        self.count = 0
        if not columns:
            self.count = len(numbers)
            return
        # an array of strings has at most 2 GB
        for start in range(0, len(numbers), _MAX_COPIED):
            part = numbers[start : start + _MAX_COPIED]
            self.append(pa.RecordBatch.from_arrays([column.take(part, None) for column in columns], schema=self.schema))


class _Column(ABC):
    def __init__(self, index: int, type_: Any, decode: Decoder | None):
        self.type = type_
        self._index = index
        self._decode = decode
        self._valid: Any = None
        """Which values are not null, once there has been a null."""

    def empty(self) -> _Column:
        return type(self)(self._index, self.type, self._decode)

    @abstractmethod
    def append(self, array: Any, first: int) -> None: ...

    @abstractmethod
    def take(self, numbers: Any, is_null: Any) -> Any: ...

    @abstractmethod
    def hash(self, array: Any, hashes: Any) -> Any: ...

    def equal(self, numbers: Any, array: Any, rows: Any) -> Any:
        return self.are_equal(self.take(numbers, None), array.take(pa.array(rows)))

    def are_equal(self, left: Any, right: Any) -> Any:
        return _equal_arrays(left, right)

    def _append_valid(self, array: Any, first: int, capacity: int) -> None:
        if self._valid is None:
            if not array.null_count:
                return
            self._valid = np.ones(capacity, bool)
        elif len(self._valid) < capacity:
            self._valid = np.concatenate([self._valid, np.ones(capacity - len(self._valid), bool)])
        self._valid[first : first + len(array)] = array.is_valid().to_numpy(zero_copy_only=False)

    def _valid_at(self, numbers: Any, is_null: Any) -> Any:
        """Which of the rows are not null; None for all."""
        if self._valid is None:
            return None if is_null is None else ~is_null
        return self._valid[numbers] if is_null is None else self._valid[numbers] & ~is_null


class _FixedColumn(_Column):
    """Values of at most 16 bytes."""

    def __init__(self, index: int, type_: Any, decode: Decoder | None):
        super().__init__(index, type_, decode)
        self._values: Any = None

    def append(self, array: Any, first: int) -> None:
        values = raw_values(array)
        end = first + len(values)
        if self._values is None:
            self._values = np.zeros((max(_MIN_CAPACITY, end), *values.shape[1:]), values.dtype)
        self._values = _with_room(self._values, end)
        self._values[first:end] = values
        self._append_valid(array, first, len(self._values))

    def take(self, numbers: Any, is_null: Any) -> Any:
        if self._values is None:
            return pa.nulls(len(numbers), self.type)
        values = self._values[numbers]
        valid = self._valid_at(numbers, is_null)
        is_bool = pa.types.is_boolean(self.type)
        if is_bool:
            values = np.packbits(values, bitorder="little")
        bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(self.type, len(numbers), [bitmap, pa.py_buffer(values)])

    def hash(self, array: Any, hashes: Any) -> Any:
        values = raw_values(array)
        if values.ndim == 1:
            hashed = hash_words(hashes, values.astype(np.uint64))
        else:
            hashed = hash_words(hash_words(hashes, values[:, 0]), values[:, 1])
        return _with_nulls(hashed, hashes, array)

    def equal(self, numbers: Any, array: Any, rows: Any) -> Any:
        same = _same_bits(self._values[numbers], raw_values(array)[rows])
        if self._valid is None and not array.null_count:
            return same
        mine = np.ones(len(numbers), bool) if self._valid is None else self._valid[numbers]
        valid = array.is_valid().to_numpy(zero_copy_only=False)[rows]
        return (mine == valid) & (same | ~valid)

    def are_equal(self, left: Any, right: Any) -> Any:
        same = _same_bits(raw_values(left), raw_values(right))
        if not left.null_count and not right.null_count:
            return same
        mine, valid = (array.is_valid().to_numpy(zero_copy_only=False) for array in (left, right))
        return (mine == valid) & (same | ~valid)


class _BytesColumn(_Column):
    """Strings and byte strings, one after the other."""

    def __init__(self, index: int, type_: Any, decode: Decoder | None):
        super().__init__(index, type_, decode)
        self._large = pa.large_string() if pa.types.is_string(type_) else pa.large_binary()
        self._offsets = np.zeros(_MIN_CAPACITY, np.int64)
        self._bytes = np.zeros(_MIN_CAPACITY, np.uint8)
        self._count = 0

    def append(self, array: Any, first: int) -> None:
        offsets, data = _offsets_and_bytes(array)
        end = first + len(array)
        begin = int(self._offsets[first])
        size = int(offsets[-1] - offsets[0])
        self._offsets = _with_room(self._offsets, end + 1)
        self._bytes = _with_room(self._bytes, begin + size)
        self._offsets[first + 1 : end + 1] = offsets[1:].astype(np.int64) + (begin - int(offsets[0]))
        self._bytes[begin : begin + size] = data[offsets[0] : offsets[-1]]
        self._append_valid(array, first, len(self._offsets))
        self._count = end

    def take(self, numbers: Any, is_null: Any) -> Any:
        valid = self._valid_at(numbers, is_null)
        indices = pa.array(numbers, mask=None if valid is None else ~valid)
        buffers = [None, pa.py_buffer(self._offsets), pa.py_buffer(self._bytes)]
        return pa.Array.from_buffers(self._large, self._count, buffers).take(indices).cast(self.type)

    def hash(self, array: Any, hashes: Any) -> Any:
        return _with_nulls(hash_bytes(hashes, *_offsets_and_bytes(array)), hashes, array)


class _SegmentedColumn(_Column):
    """Values of other types: a value is copied as often as its segment is merged with others."""

    def __init__(self, index: int, type_: Any, decode: Decoder | None):
        super().__init__(index, type_, decode)
        self._segments: list[Any] = []
        self._starts: list[int] = []
        self._levels: list[int] = []

    def append(self, array: Any, first: int) -> None:
        self._segments.append(array)
        self._starts.append(first)
        self._levels.append(0)
        while len(self._levels) >= _FAN_IN and self._levels[-_FAN_IN] == self._levels[-1]:
            if sum(segment.nbytes for segment in self._segments[-_FAN_IN:]) > _MAX_SEGMENT_BYTES:
                break
            self._segments[-_FAN_IN:] = [pa.concat_arrays(self._segments[-_FAN_IN:])]
            self._starts[-_FAN_IN:] = [self._starts[-_FAN_IN]]
            self._levels[-_FAN_IN:] = [self._levels[-1] + 1]

    def take(self, numbers: Any, is_null: Any) -> Any:
        if is_null is not None:
            taken = np.full(len(numbers), -1)
            kept = np.flatnonzero(~is_null)
            taken[kept] = np.arange(len(kept))
            return self.take(numbers[kept], None).take(pa.array(taken, mask=is_null))
        if not len(numbers):
            return pa.array([], self.type)
        first = bisect_right(self._starts, int(numbers.min())) - 1
        last = bisect_right(self._starts, int(numbers.max()))
        if last - first == 1:
            return self._segments[first].take(pa.array(numbers - self._starts[first]))
        of_row = np.searchsorted(np.array(self._starts), numbers, "right") - 1
        order = np.argsort(of_row, kind="stable")
        parts = []
        for segment in range(first, last):
            chosen = numbers[order[of_row[order] == segment]] - self._starts[segment]
            parts.append(self._segments[segment].take(pa.array(chosen)))
        inverse = np.empty(len(order), np.int64)
        inverse[order] = np.arange(len(order))
        return pa.concat_arrays(parts).take(pa.array(inverse))

    def hash(self, array: Any, hashes: Any) -> Any:
        texts = self._texts(array)
        return hash_bytes(hashes, *_offsets_and_bytes(texts))

    def are_equal(self, left: Any, right: Any) -> Any:
        return _equal_arrays(self._texts(left), self._texts(right))

    def _texts(self, array: Any) -> Any:
        values = array.to_pylist() if self._decode is None else self._decode(self._index, array)
        return pa.array([repr(value) for value in values], pa.string())


def _column(index: int, type_: Any, decode: Decoder | None) -> _Column:
    kinds = pa.types
    if kinds.is_string(type_) or kinds.is_binary(type_):
        return _BytesColumn(index, type_, decode)
    if kinds.is_nested(type_) or kinds.is_null(type_) or kinds.is_dictionary(type_):
        return _SegmentedColumn(index, type_, decode)
    if kinds.is_primitive(type_) or kinds.is_decimal128(type_):
        return _FixedColumn(index, type_, decode)
    return _SegmentedColumn(index, type_, decode)


def _with_nulls(hashed: Any, before: Any, array: Any) -> Any:
    """The hashes of values, where those of nulls do not depend on what is in their places."""
    if not array.null_count:
        return hashed
    return np.where(array.is_valid().to_numpy(zero_copy_only=False), hashed, ~before)


def _plain(array: Any, type_: Any) -> Any:
    if array.type == type_:
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(type_)


def _offsets_and_bytes(array: Any) -> tuple[Any, Any]:
    """The offsets of strings, and the bytes that they are in."""
    _, offsets, data = array.buffers()
    if offsets is None:
        return np.zeros(1, np.int32), np.zeros(0, np.uint8)
    found = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return found, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def _same_bits(left: Any, right: Any) -> Any:
    same = left == right
    return same.all(axis=1) if same.ndim == 2 else same


def _equal_arrays(left: Any, right: Any) -> Any:
    same = pc.equal(left, right)
    if same.null_count:
        same = pc.if_else(pc.is_null(same), pc.and_(pc.is_null(left), pc.is_null(right)), same)
    return same.to_numpy(zero_copy_only=False)


def _with_room(array: Any, count: int) -> Any:
    if len(array) >= count:
        return array
    capacity = len(array)
    while capacity < count:
        capacity *= 2
    larger = np.zeros((capacity, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
