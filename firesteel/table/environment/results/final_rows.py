"""The final rows of a changelog, for batch queries that this engine runs itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.common.types import RowKind
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.connectors.in_memory import batch_of
from firesteel.types.internal import from_column
from firesteel.types.logical import RowType

__all__ = ["FinalRows"]

_RETRACTIONS = (RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value)


class FinalRows:
    """Reads a changelog to its end: the rows that were added and not taken back."""

    def __init__(self, changes: Iterable[ColumnBatch], row_type: RowType) -> None:
        self._changes = changes
        self._row_type = row_type

    def __iter__(self) -> Iterator[ColumnBatch]:
        rows: dict[str, tuple[Any, ...]] = {}
        counts: dict[str, int] = {}
        for batch in self._changes:
            fields = zip(batch.data.columns, self._row_type.fields, strict=True)
            columns = [from_column(array, part.type) for array, part in fields]
            kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
            for row, kind in zip(zip(*columns, strict=True), kinds, strict=True):
                key = repr(row)  # rows with lists have no hash
                counts[key] = counts.pop(key, 0) + (-1 if kind in _RETRACTIONS else 1)
                rows[key] = row
        final = [rows[key] for key, count in counts.items() for _ in range(count)]
        if final:
            yield batch_of(final, self._row_type)

    def close(self) -> None:
        """Cancels the job."""
        close = getattr(self._changes, "close", None)
        if close is not None:
            close()
