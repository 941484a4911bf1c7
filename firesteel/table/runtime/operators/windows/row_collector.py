"""All rows of a window, where those of aggregations have accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.table.runtime.operators.aggregate.feeds import Rows

__all__ = ["RowCollector"]


class RowCollector:
    """Keeps a list of RecordBatches at each slot."""

    dtypes = ("O",)

    def __init__(self, schema: Any):
        self._schema = schema

    def accumulate(self, columns: Sequence[Any], rows: Rows) -> None:
        """Takes up the rows of a batch."""
        order = np.argsort(rows.codes, kind="stable")
        ordered = pa.RecordBatch.from_arrays(list(rows.arrays), schema=self._schema).take(pa.array(order))
        codes, starts = np.unique(rows.codes[order], return_index=True)
        limits = [*starts[1:].tolist(), len(order)]
        for slot, start, limit in zip(rows.slots[codes].tolist(), starts.tolist(), limits, strict=True):
            self._add(columns[0], slot, [ordered.slice(start, limit - start)])

    def merge(self, columns: Sequence[Any], rows: Rows) -> None:
        """Takes up the rows of other slots."""
        for slot, data in zip(rows.row_slots.tolist(), rows.arrays[0].to_pylist(), strict=True):
            self._add(columns[0], slot, list(pa.ipc.open_stream(data)))

    def partial(self, columns: Sequence[Any], slots: Any) -> list[Any]:
        """The rows of slots as Arrow IPC."""
        return [pa.array([self._serialized(columns[0][slot]) for slot in slots.tolist()], pa.binary())]

    def rows(self, columns: Sequence[Any], slot: int) -> list[Any]:
        """The batches of a slot."""
        found: list[Any] = columns[0][slot]
        return found

    def _add(self, column: Any, slot: int, batches: list[Any]) -> None:
        column[slot] = [*(column[slot] or ()), *batches]

    def _serialized(self, batches: Sequence[Any]) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return bytes(sink.getvalue())
