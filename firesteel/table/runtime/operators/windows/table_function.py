"""The table function of windows that are the same for all keys: repeats rows, with the bounds of their windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.plan.window_kinds import AlignedWindow
from firesteel.table.runtime.operators.windows.times import WindowTimes, timestamps
from firesteel.types.internal import columns_schema
from firesteel.types.logical import LogicalType, RowType

__all__ = ["WindowTableFunctionSpec"]


@dataclass(frozen=True)
class WindowTableFunctionSpec(OperatorSpec):
    """Assigns windows."""

    window: AlignedWindow
    row_type: RowType
    time_type: LogicalType
    time: int | None
    """None for the time at which rows are processed."""
    zone: str
    rowtime: int | None = None

    def create(self, runtime: OperatorRuntime) -> _WindowTableFunction:
        """Returns a new operator for one subtask."""
        return _WindowTableFunction(self)


class _WindowTableFunction(ColumnOperator):
    def __init__(self, spec: WindowTableFunctionSpec):
        self._spec = spec
        self._times = WindowTimes(spec.time_type, spec.zone)

    def process_columns(self, batch: ColumnBatch) -> None:
        window = self._spec.window
        slices = window.slice_ends(self._local_times(batch))
        ends = window.first_end(slices)
        if window.is_sliced:
            counts = np.maximum((window.last_end(slices) - ends) // window.step + 1, 0)
            rows = np.repeat(np.arange(len(batch)), counts)
            before = np.cumsum(counts) - counts
            ends = ends[rows] + (np.arange(len(rows)) - before[rows]) * window.step
            batch = batch.take(rows)
        added = [timestamps(window.window_start(ends)), timestamps(ends), self._times.window_times(ends)]
        data = pa.RecordBatch.from_arrays([*batch.data.columns, *added], schema=columns_schema(self._spec.row_type))
        self.emit(batch.with_data(data, self._spec.rowtime))

    def _local_times(self, batch: ColumnBatch) -> Any:
        if self._spec.time is None:
            now = self._times.local_one(self.context.processing_time())
            return np.full(len(batch), now, np.int64)
        return self._times.of_rows(batch, self._spec.time)
