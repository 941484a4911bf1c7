"""ColumnBatch: rows as Arrow columns, with their row kinds and their rowtime column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from firesteel.common.errors import InvalidProgramError
from firesteel.types.arrow import require_pyarrow

__all__ = ["ColumnBatch", "concat_batches"]


class ColumnBatch(Sequence[Any]):
    """The rows of an Arrow RecordBatch.

    It is the ``values`` of a ``Batch``: its length is the number of rows, and a slice of it shares its memory. So
    gates, credits, metrics and the size of turns count rows, whatever form they have. It is not iterated over:
    operators that read columns read ``data``, others need a border before them.
    """

    __slots__ = ("data", "kinds", "rowtime")

    def __init__(self, data: Any, kinds: Any = None, rowtime: int | None = None):
        self.data = data
        """The RecordBatch."""
        self.kinds = kinds
        """The row kinds as a numpy array of int8, with Flink's numbers; None if all rows are insertions."""
        self.rowtime = rowtime
        """The index of the column that is the event time of the rows, if there is one."""

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            raise TypeError("a ColumnBatch has slices, not items")
        start, stop, step = index.indices(len(self))
        if step != 1:
            raise ValueError(f"a slice of columns is contiguous, and has no step {step}")
        return self.slice(start, max(stop - start, 0))

    def slice(self, start: int, count: int) -> ColumnBatch:
        """Some of the rows; without a copy."""
        kinds = None if self.kinds is None else self.kinds[start : start + count]
        return ColumnBatch(self.data.slice(start, count), kinds, self.rowtime)

    def take(self, indices: Any) -> ColumnBatch:
        """The rows at the indices, a numpy array, in that order."""
        pa = require_pyarrow("Columns")
        data = self.data.take(pa.array(indices))
        return ColumnBatch(data, None if self.kinds is None else self.kinds[indices], self.rowtime)

    def with_data(self, data: Any, rowtime: int | None = None) -> ColumnBatch:
        """Other columns for the same rows."""
        if data.num_rows != len(self):
            raise ValueError(f"{len(self)} rows cannot become {data.num_rows}")
        return ColumnBatch(data, self.kinds, rowtime)

    def filter(self, mask: Any) -> ColumnBatch:
        """The rows for which a BooleanArray is true; null is not."""
        if self.kinds is None:
            return ColumnBatch(self.data.filter(mask), None, self.rowtime)
        kept = mask.fill_null(False).to_numpy(zero_copy_only=False)
        return ColumnBatch(self.data.filter(mask), self.kinds[kept], self.rowtime)

    @property
    def nbytes(self) -> int:
        """The size of the rows in memory."""
        return int(self.data.nbytes) + (0 if self.kinds is None else len(self.kinds))

    def __iter__(self) -> Iterator[Any]:
        _refuse()

    def __reduce__(self) -> Any:
        from firesteel.runtime.columns.wire import decode_columns, encode_columns

        return decode_columns, (encode_columns(self),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ColumnBatch):
            return NotImplemented
        mine = None if self.kinds is None else self.kinds.tolist()
        others = None if other.kinds is None else other.kinds.tolist()
        return bool(self.data.equals(other.data)) and mine == others and self.rowtime == other.rowtime

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.data.schema)
        return f"ColumnBatch({len(self)} rows of {columns})"


def _refuse() -> NoReturn:
    raise InvalidProgramError(
        "An operator that reads records one by one got a batch of columns.",
        hint="Put the operator that converts columns to rows before it: ColumnsToRowsSpec.",
    )


def concat_batches(batches: Sequence[ColumnBatch]) -> ColumnBatch:
    """The rows of batches of the same columns, in one."""
    if len(batches) == 1:
        return batches[0]
    pa = require_pyarrow("Columns")
    parts = [batch.data for batch in batches]
    if hasattr(pa, "concat_batches"):
        data = pa.concat_batches(parts)
    else:
        data = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    kinds = None
    if any(batch.kinds is not None for batch in batches):
        import numpy as np

        kinds = np.concatenate(
            [np.zeros(len(batch), np.int8) if batch.kinds is None else batch.kinds for batch in batches]
        )
    return ColumnBatch(data, kinds, batches[0].rowtime)
