"""Rows of keys as columns, each with numbers that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from firesteel.runtime.state.columnar.groups import Groups
from firesteel.runtime.state.columnar.row_columns import RowColumns
from firesteel.runtime.state.columnar.slots import SlotPool, grown
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.types.internal import from_column
from firesteel.types.logical import RowType

__all__ = ["KeyedRows"]

_MIN_GARBAGE = 4096


class KeyedRows:
    """A record is a row of a key, which is given as a slot, with a number in each of some columns."""

    def __init__(self, row_type: RowType, columns: Sequence[str]):
        self.codec = RowCodec(row_type)
        self.rows = RowColumns(self.codec.schema, self.decode)
        self._groups = Groups()
        """The records of keys."""
        self._pool = SlotPool()
        capacity = self._pool.capacity
        self.keys = np.zeros(capacity, np.int64)
        """The key of each record."""
        self._row_of = np.zeros(capacity, np.int64)
        self.columns = {name: np.zeros(capacity, np.int64) for name in columns}
        """The numbers of each record."""

    def decode(self, column: int, array: Any) -> list[Any]:
        """The values of a column as rows have them."""
        return from_column(array, self.codec.types[column])

    def reserve(self, capacity: int) -> None:
        """Makes room for slots of keys."""
        self._groups.reserve(capacity)

    def members(self, keys: Any) -> tuple[Any, Any]:
        """The records of keys, and for each the position of its key among these."""
        return self._groups.members(keys)

    def first(self, keys: Any) -> Any:
        """A record of each key, -1 if it has none."""
        return self._groups.first(keys)

    def sizes(self, keys: Any) -> Any:
        """How many records keys have."""
        return self._groups.lengths[keys]

    def live(self) -> Any:
        """All records."""
        return self._pool.live()

    def row_numbers(self, records: Any) -> Any:
        """The numbers of their rows in ``rows``."""
        return self._row_of[records]

    def tuples(self, records: Any) -> list[tuple[Any, ...]]:
        """The rows of records."""
        arrays = self.rows.take(self._row_of[records])
        columns = [self.decode(index, array) for index, array in enumerate(arrays)]
        return list(zip(*columns, strict=True)) if columns else [()] * len(records)

    def append(self, data: Any, keys: Any) -> Any:
        """Adds the rows of a RecordBatch; returns their records."""
        records = self._pool.take(len(keys))
        capacity = self._pool.capacity
        if len(self.keys) < capacity:
            self.keys = grown(self.keys, capacity)
            self._row_of = grown(self._row_of, capacity)
            self.columns = {name: grown(column, capacity) for name, column in self.columns.items()}
        first = self.rows.append(data)
        self._row_of[records] = np.arange(first, first + len(records))
        self.keys[records] = keys
        self._groups.add(keys, records)
        return records

    def replace(self, records: Any, data: Any) -> None:
        """Gives records other rows."""
        first = self.rows.append(data)
        self._row_of[records] = np.arange(first, first + len(records))

    def remove(self, records: Any) -> None:
        """Removes records, each given once."""
        if len(records):
            self._pool.give_back(records)
            self._groups.retain(np.unique(self.keys[records]), self._pool.is_live)

    def release(self, keys: Any) -> None:
        """Forgets keys without records."""
        self._groups.release(keys)

    def collect_garbage(self) -> None:
        """Drops rows of no record, if they are more than the others."""
        if self.rows.count > 2 * self._pool.count + _MIN_GARBAGE:
            records = self._pool.live()
            self.rows.keep(self._row_of[records])
            self._row_of[records] = np.arange(len(records))
