"""Window Top-N: the first rows of each window and partition in an order, when the window is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.table.plan.nodes import SortKey
from firesteel.table.plan.time_attributes import is_proctime
from firesteel.table.runtime.operators.aggregate.domains import Domain
from firesteel.table.runtime.operators.windows.base import WindowOperator
from firesteel.table.runtime.operators.windows.rows import WindowRows
from firesteel.table.runtime.operators.windows.slices import encoded
from firesteel.table.runtime.operators.windows.times import WindowTimes
from firesteel.types.internal import columns_schema
from firesteel.types.logical import LogicalType, RowType

__all__ = ["WindowRankSpec", "ranked_rows"]


@dataclass(frozen=True)
class WindowRankSpec(OperatorSpec):
    """Ranks rows of windows; see ``plan.windows.WindowRank``."""

    input_type: RowType
    row_type: RowType
    time_type: LogicalType
    end: int
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    first: int
    last: int
    has_number: bool
    keeps_last: bool
    zone: str
    rowtime: int | None

    def create(self, runtime: OperatorRuntime) -> _WindowRank:
        """Returns a new operator for one subtask."""
        return _WindowRank(self)


class _WindowRank(WindowOperator):
    def __init__(self, spec: WindowRankSpec):
        super().__init__(WindowTimes(spec.time_type, spec.zone), is_proctime(spec.time_type))
        self._spec = spec

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._rows = WindowRows(context, "rows", self._spec.partition, self._kept)
        for end in self._rows.ends():
            self.register(end)

    def process_columns(self, batch: ColumnBatch) -> None:
        codes, ends = encoded(rowtime_millis(ColumnBatch(batch.data, rowtime=self._spec.end)))
        data = batch.data
        over = self.are_over(ends)
        if over.any():
            late = over[codes]
            self.count_late(int(np.count_nonzero(late)))
            data, codes = data.filter(pa.array(~late)), codes[~late]
        self._rows.add(data, codes, ends)
        for end in ends[~over].tolist():
            self.register(end)

    def fire(self, ends: list[int]) -> None:
        spec = self._spec
        for end in ends:
            data = self._rows.pop(end)
            if data is None:
                continue
            rows, numbers = ranked_rows(data, spec)
            chosen = (numbers >= spec.first) & (numbers <= spec.last)
            arrays = list(data.take(pa.array(rows[chosen])).columns)
            if spec.has_number:
                arrays.append(pa.array(numbers[chosen]))
            result = pa.RecordBatch.from_arrays(arrays, schema=columns_schema(spec.row_type))
            self.emit(ColumnBatch(result, None, spec.rowtime))

    def store_windows(self) -> None:
        self._rows.snapshot()

    def _kept(self, data: Any) -> Any:
        """The rows of a window that may be among the results, in the order in which they came."""
        rows, numbers = ranked_rows(data, self._spec)
        return data.take(pa.array(np.sort(rows[numbers <= self._spec.last])))


def ranked_rows(data: Any, spec: WindowRankSpec) -> tuple[Any, Any]:
    """The rows by partition and order, and the number of each in its partition."""
    partitions = BatchKeys(ColumnBatch(data), spec.partition).codes
    arrival = np.arange(data.num_rows)
    keys = [_sort_codes(data.column(key.index), spec.input_type, key) for key in spec.order]
    rows = np.lexsort((-arrival if spec.keeps_last else arrival, *reversed(keys), partitions))
    ordered = partitions[rows]
    begins = np.ones(len(rows), bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(begins)
    return rows, np.arange(len(rows)) - np.repeat(starts, np.diff([*starts, len(rows)])) + 1


def _sort_codes(array: Any, row_type: RowType, key: SortKey) -> Any:
    """A number for the value of each row, in the order of a key."""
    places, _ = Domain(row_type.fields[key.index].type).ranked(array.drop_null())
    if key.descending:
        places = -places
    if not array.null_count:
        return places
    codes = np.full(len(array), len(array) if key.nulls_last else -len(array), np.intp)
    codes[array.is_valid().to_numpy(zero_copy_only=False)] = places
    return codes
