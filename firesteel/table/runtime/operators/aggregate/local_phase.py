"""What the local phases of aggregations have in common: partial results of each batch, without state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.runtime.state.columnar.state import empty_columns, is_number
from firesteel.table.runtime.operators.aggregate.feeds import Rows
from firesteel.table.runtime.operators.aggregate.group_aggregate import row_signs
from firesteel.table.runtime.operators.aggregate.handler import AggregateHandler

__all__ = ["LocalPhaseOperator", "PartialResults"]

_MIN_ROWS = 500
_MAX_SHARE = 0.8
"""Groups per row of a batch above which the next batches are not grouped."""
_UNGROUPED_BATCHES = 31


class PartialResults(NamedTuple):
    """The groups of a batch."""

    codes: Any
    """The group of each row."""
    first_rows: Any
    keys: list[Any]
    accumulators: list[Any]


class LocalPhaseOperator(ColumnOperator):
    """Emits one row of accumulators for each group of a batch.

    Where a batch has hardly any group twice, grouping is not worth its cost. The rows of the next batches then become
    accumulators one by one, if these are numbers.
    """

    def __init__(self, handler: AggregateHandler, keys: Sequence[int], schema: Any):
        self._handler = handler
        self._keys = tuple(keys)
        self._schema = schema
        self._has_numbers = all(is_number(dtype) for dtype in handler.dtypes)
        self._ungrouped = 0
        """Batches that are not grouped from now on."""

    def aggregated(self, batch: ColumnBatch, groups: Callable[[], tuple[Any, Any]]) -> PartialResults:
        """The partial results of a batch; ``groups`` returns the group of each row and the first row of each group."""
        if self._ungrouped:
            self._ungrouped -= 1
            codes = first_rows = np.arange(len(batch))
        else:
            codes, first_rows = groups()
            is_sparse = len(batch) >= _MIN_ROWS and len(first_rows) > _MAX_SHARE * len(batch)
            if is_sparse and self._has_numbers:
                self._ungrouped = _UNGROUPED_BATCHES
        slots = np.arange(len(first_rows))
        columns = empty_columns(self._handler.dtypes, len(slots))
        arrays = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in batch.data.columns
        ]
        self._handler.accumulate(columns, Rows(codes, row_signs(batch), arrays, slots))
        first = pa.array(first_rows)
        types = self._schema.types
        keys = [arrays[index].take(first).cast(types[place]) for place, index in enumerate(self._keys)]
        return PartialResults(codes, first_rows, keys, self._handler.partial(columns, slots))

    def emit_columns(self, columns: Sequence[Any]) -> None:
        """Emits a batch of these columns."""
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self._schema)))
