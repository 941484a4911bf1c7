"""Results of joins: pairs of rows as columns."""

from __future__ import annotations

from typing import Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.runtime.operators.rows import RowCodec, record_batch
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

__all__ = ["Pairs"]


class Pairs:
    """Rows that are emitted: the rows of both sides of which they are made, and their kinds."""

    def __init__(self, left: RowType, right: RowType, result: RowType, rowtime: int | None = None):
        self.codecs = (RowCodec(left), RowCodec(right))
        self._schema = columns_schema(result)
        self._has_right = len(result.fields) > len(left.fields)
        self._rowtime = rowtime
        self.kinds: list[int] = []
        self.rows: tuple[list[Any], list[Any]] = ([], [])

    def add(self, side: int, row: Any, other: Any, kind: int = 0) -> None:
        """Adds a row of one side and one of the other."""
        self.kinds.append(kind)
        self.rows[side].append(row)
        self.rows[1 - side].append(other)

    def pad(self, side: int, row: Any, kind: int = 0) -> None:
        """Adds a row of one side with nulls for the other."""
        self.kinds.append(kind)
        self.rows[side].append(row)
        self.rows[1 - side].append(self.codecs[1 - side].null_row)

    def take(self) -> ColumnBatch | None:
        """The rows since the last call; None if there are none."""
        count = len(self.rows[0])
        if not count:
            return None
        import numpy as np

        kinds = np.array(self.kinds, np.int8)
        arrays = self.codecs[0].arrays(self.rows[0])
        if self._has_right:
            arrays += self.codecs[1].arrays(self.rows[1])
        self.kinds = []
        self.rows = ([], [])
        return ColumnBatch(record_batch(arrays, self._schema, count), kinds if kinds.any() else None, self._rowtime)
