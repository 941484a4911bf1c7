"""Changes that an operator emits: rows of the batch that it processes, and rows that it has in its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.types.arrow import require_pyarrow

__all__ = ["DELETE", "INSERT", "UPDATE_AFTER", "UPDATE_BEFORE", "Changes"]

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)


class Changes:
    """Collects changes. A row is known by its identity: one that is emitted several times is encoded once."""

    def __init__(self, codec: RowCodec, data: Any, rows: Sequence[tuple[Any, ...]], with_numbers: bool = False) -> None:
        self._codec = codec
        self._data = data
        self._decoded = rows
        self.kinds: list[int] = []
        self.rows: list[tuple[Any, ...]] = []
        self.numbers: list[int] | None = [] if with_numbers else None
        """The last column of the rows, if they have numbers."""

    def build(self, schema: Any, rowtime: int | None) -> ColumnBatch | None:
        """The batch of the changes; None if there are none."""
        import numpy as np

        pa = require_pyarrow("SQL")
        if not self.kinds:
            return None
        places = dict(zip(map(id, self._decoded), range(len(self._decoded)), strict=True))
        stored: list[tuple[Any, ...]] = []
        indices = list(map(places.get, map(id, self.rows)))
        if None in indices:
            for index, row in enumerate(self.rows):
                if indices[index] is None:
                    place = places.setdefault(id(row), len(self._decoded) + len(stored))
                    if place == len(self._decoded) + len(stored):
                        stored.append(row)
                    indices[index] = place
        data = self._data
        if stored:
            old = self._codec.encode(stored)
            data = pa.Table.from_batches([data, old]).combine_chunks().to_batches()[0] if len(self._decoded) else old
        taken = data.take(pa.array(indices, pa.int64()))
        if self.numbers is not None:
            taken = pa.RecordBatch.from_arrays([*taken.columns, pa.array(self.numbers, pa.int64())], schema=schema)
        kinds = np.array(self.kinds, np.int8)
        return ColumnBatch(taken, kinds if kinds.any() else None, rowtime)
