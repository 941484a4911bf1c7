"""Entries of columnar state in chunks of snapshots: tuples for those who read them, columns when pickled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["ColumnValues"]


class ColumnValues(Sequence[Any]):
    """A tuple per key: its columns. With time-to-live it is the cell ``[tuple, last access]``.

    >>> list(ColumnValues([np.array([1, 2]), np.array([0.5, 1.5])]))
    [(1, 0.5), (2, 1.5)]
    """

    __slots__ = ("_columns", "_last_access")

    def __init__(self, columns: Sequence[Any], last_access: Any = None):
        self._columns = columns
        self._last_access = last_access

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            (value,) = self[index : index + 1]
            return value
        stamps = None if self._last_access is None else self._last_access[index]
        return ColumnValues([column[index] for column in self._columns], stamps)

    def __iter__(self) -> Iterator[Any]:
        rows = zip(*(column.tolist() for column in self._columns), strict=True)
        if self._last_access is None:
            return rows
        return map(list, zip(rows, self._last_access.tolist(), strict=True))

    def __reduce__(self) -> Any:
        stamps = None if self._last_access is None else self._last_access.tobytes()
        return _restored, ([_packed(column) for column in self._columns], stamps)


def _packed(column: Any) -> Any:
    # not numpy's own form, which names its modules
    return column.tolist() if column.dtype == object else (column.dtype.str, column.tobytes())


def _restored(packed: Sequence[Any], stamps: bytes | None) -> ColumnValues:
    columns = [_unpacked(column) for column in packed]
    return ColumnValues(columns, None if stamps is None else np.frombuffer(stamps, np.int64))


def _unpacked(packed: Any) -> Any:
    if isinstance(packed, list):
        return np.fromiter(packed, object, len(packed))
    dtype, data = packed
    return np.frombuffer(data, dtype)
