"""Rows that are only added: kept as the columns in which they came, and found by number."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from firesteel.runtime.columns.batch import ColumnBatch, concat_batches
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.types.arrow import require_pyarrow
from firesteel.types.logical import RowType

__all__ = ["RowStore"]

_FAN_IN = 4
"""So many segments of a level become one of the next."""
_MAX_SEGMENT_BYTES = 16 * 1024 * 1024


class RowStore:
    """Segments of rows, numbered from 0. A row is copied as often as its segment is merged with others."""

    def __init__(self, row_type: RowType):
        self._codec = RowCodec(row_type)
        self._segments: list[Any] = []
        self._starts: list[int] = []
        self._levels: list[int] = []
        self._count = 0
        self._decoded: dict[int, list[tuple[Any, ...]]] = {}
        store = self

        class RowNumbers(list[int]):
            """The rows of a key by their numbers; in snapshots, the rows themselves."""

            __slots__ = ()

            def __reduce_ex__(self, _: Any) -> Any:
                return list, ([store.row(number) for number in self],)

        self.row_numbers = RowNumbers
        """Makes the state of a key of a list of numbers."""

    def append(self, data: Any) -> int:
        """Adds the rows of a RecordBatch; returns the number of the first one."""
        first = self._count
        self._segments.append(data)
        self._starts.append(first)
        self._levels.append(0)
        self._count += data.num_rows
        while len(self._levels) >= _FAN_IN and self._levels[-_FAN_IN] == self._levels[-1]:
            merged = self._segments[-_FAN_IN:]
            level = self._levels[-1] + 1
            if sum(segment.nbytes for segment in merged) > _MAX_SEGMENT_BYTES:
                break
            self._segments[-_FAN_IN:] = [concat_batches([ColumnBatch(segment) for segment in merged]).data]
            self._starts[-_FAN_IN:] = [self._starts[-_FAN_IN]]
            self._levels[-_FAN_IN:] = [level]
        return first

    def append_rows(self, rows: list[tuple[Any, ...]]) -> int:
        """Adds rows; returns the number of the first one."""
        return self.append(self._codec.encode(rows))

    def take(self, numbers: Any, columns: list[int]) -> list[Any]:
        """Some columns of the rows with these numbers, a numpy array."""
        pa = require_pyarrow("SQL")
        first = bisect_right(self._starts, int(numbers.min())) - 1
        last = bisect_right(self._starts, int(numbers.max()))
        indices = pa.array(numbers - self._starts[first])
        segments = [segment.select(columns) for segment in self._segments[first:last]]
        if len(segments) == 1:
            return list(segments[0].take(indices).columns)
        taken = pa.Table.from_batches(segments).take(indices)
        return [_combined(column) for column in taken.columns]

    # -- snapshots ---------------------------------------------------------------------------------------------

    def row(self, number: int) -> tuple[Any, ...]:
        """A row; all rows of its segment are decoded until ``forget_decoded``."""
        segment = bisect_right(self._starts, number) - 1
        rows = self._decoded.get(segment)
        if rows is None:
            rows = self._decoded[segment] = self._codec.decode(self._segments[segment])
        return rows[number - self._starts[segment]]

    def forget_decoded(self) -> None:
        """Has the rows that were decoded for a snapshot forgotten."""
        if self._decoded:
            self._decoded = {}


def _combined(column: Any) -> Any:
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined.chunk(0) if hasattr(combined, "chunk") else combined
