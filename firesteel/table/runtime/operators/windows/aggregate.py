"""Aggregation of windows that are the same for all keys, in slices."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.state.columnar.state import empty_columns
from firesteel.table.bound.session import Session
from firesteel.table.plan.nodes import AggregateCall
from firesteel.table.plan.time_attributes import is_proctime
from firesteel.table.plan.window_kinds import AlignedWindow, TumblingWindow
from firesteel.table.plan.windows import WindowColumn
from firesteel.table.runtime.operators.aggregate.feeds import Rows
from firesteel.table.runtime.operators.aggregate.handler import AggregateHandler
from firesteel.table.runtime.operators.windows.base import WindowOperator
from firesteel.table.runtime.operators.windows.output import grouped_columns
from firesteel.table.runtime.operators.windows.slices import SliceTable, encoded
from firesteel.table.runtime.operators.windows.state import WindowState, keys_in_place
from firesteel.table.runtime.operators.windows.times import WindowTimes
from firesteel.table.user_functions.scope import scoped
from firesteel.types.internal import columns_schema
from firesteel.types.logical import LogicalType, RowType

__all__ = ["WindowAggregateOperator", "WindowAggregateSpec"]


@dataclass(frozen=True)
class WindowAggregateSpec(OperatorSpec):
    """Aggregates by window and key; see ``plan.windows.WindowAggregate``."""

    window: AlignedWindow
    input_type: RowType
    row_type: RowType
    time_type: LogicalType
    grouping: tuple[int | WindowColumn, ...]
    calls: tuple[AggregateCall, ...]
    time: int | None
    end: int | None
    retracts: bool
    session: Session
    rowtime: int | None = None
    """The rowtime column of the results."""

    @property
    def keys(self) -> tuple[int, ...]:
        """The columns of the key."""
        return tuple(column for column in self.grouping if isinstance(column, int))

    @property
    def is_proctime(self) -> bool:
        """Whether windows end by the clock."""
        return is_proctime(self.time_type)

    def create_handler(self, session: Session | None = None) -> AggregateHandler:
        """Returns what computes the calls; raises ValidationError for those that cannot be computed so."""
        return AggregateHandler(self.input_type, self.calls, self.retracts, session or self.session)

    def create(self, runtime: OperatorRuntime) -> WindowAggregateOperator:
        """Returns a new operator for one subtask."""
        return WindowAggregateOperator(self)


class WindowAggregateOperator(WindowOperator):
    """Keeps accumulators by slice and key, and merges the slices of a window when it is over."""

    def __init__(self, spec: WindowAggregateSpec):
        super().__init__(WindowTimes(spec.time_type, spec.session.local_time_zone), spec.is_proctime)
        self._spec = spec
        # the windows of rows that have them are told apart by their ends
        self._window = spec.window if spec.end is None else TumblingWindow(1)
        self.fires_together = not self._window.is_sliced
        self._changed: set[int] = set()
        """Slices that are not in the last snapshot as they are."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        spec = self._spec
        self._handler = spec.create_handler(scoped(self, spec.session))
        schema, keys = self.input_schema(), self.key_columns()
        self._table = SliceTable(self._handler, keys, [schema.field(column).type for column in keys])
        self._state = WindowState(context, "windows", range(len(spec.keys)))
        width = len(spec.keys)
        for end, rows in self._state.restore():
            batch = keys_in_place(rows.columns[:width], keys, rows.num_rows, schema)
            codes = np.zeros(rows.num_rows, np.intp)
            self._table.merge(batch, rows.columns[width:], codes, np.array([end], np.int64))
            self._register(end)

    def input_schema(self) -> Any:
        """The columns of the batches."""
        return columns_schema(self._spec.input_type)

    def key_columns(self) -> tuple[int, ...]:
        """Where the columns of the key are in batches."""
        return self._spec.keys

    # -- rows -----------------------------------------------------------------------------------------

    def process_columns(self, batch: ColumnBatch) -> None:
        codes, ends = encoded(self.slice_ends(batch))
        is_late = self.are_over(self._window.last_end(ends))
        outside = self._window.last_end(ends) < ends
        if is_late.any() or outside.any():
            batch, codes, ends = self._without(batch, codes, ends, is_late & ~outside, is_late | outside)
            if not len(batch):
                return
        self.take_up(batch, codes, ends)
        for end in ends.tolist():
            self._changed.add(end)
            self._register(end)

    def take_up(self, batch: ColumnBatch, codes: Any, ends: Any) -> None:
        """Takes up rows; ``codes`` says which of the ends of slices each of them has."""
        signs = None if batch.kinds is None else np.where((batch.kinds == 1) | (batch.kinds == 3), -1, 1)
        self._table.accumulate(batch, codes, ends, signs)

    def late_rows(self, batch: ColumnBatch, is_late: Any) -> int:
        """How many rows are late."""
        return int(np.count_nonzero(is_late))

    def slice_ends(self, batch: ColumnBatch) -> Any:
        """The ends of the slices of the rows."""
        spec = self._spec
        if spec.end is not None:
            return rowtime_millis(ColumnBatch(batch.data, rowtime=spec.end))
        if spec.is_proctime:
            return self._window.slice_ends(self.current_times(len(batch)))
        assert spec.time is not None
        return self._window.slice_ends(self._times.of_rows(batch, spec.time))

    def _without(self, batch: ColumnBatch, codes: Any, ends: Any, late: Any, gone: Any) -> tuple[ColumnBatch, Any, Any]:
        """The rows without those of some slices."""
        self.count_late(self.late_rows(batch, late[codes]))
        keep = ~gone[codes]
        places = np.cumsum(~gone) - 1
        return batch.filter(pa.array(keep)), places[codes[keep]], ends[~gone]

    def _register(self, slice_end: int) -> None:
        """The next window that has the slice."""
        end = int(self._window.first_end(slice_end))
        while self.is_over(end):
            end += self._window.step
        self.register(end)

    # -- results --------------------------------------------------------------------------------------

    def fire(self, ends: list[int]) -> None:
        window = self._window
        if not window.is_sliced:
            slots = self._table.slots_between(ends[0] - 1, ends[-1])
            self._emit(self._table.columns, slots, self._table.keys_of(slots), self._table.ends_of(slots))
            self._remove(slots)
            return
        due, last = deque(ends), ends[-1]
        while due:
            end = due.popleft()
            slots = self._table.slots_between(int(window.window_start(end)), end)
            self._emit_merged(slots, end)
            is_done = window.last_end(self._table.ends_of(slots)) <= end
            following = end + window.step
            if is_done.all():
                pass
            elif following > last:
                self.register(following)
            elif following != due[0]:
                # it fires before later windows, which remove slices of it
                due.appendleft(following)
            self._remove(slots[is_done])

    def _emit_merged(self, slots: Any, end: int) -> None:
        columns, keys = self._table.columns, self._table.keys_of(slots)
        distinct, codes = np.unique(keys, return_inverse=True)
        if len(distinct) < len(slots):
            merged = empty_columns(self._handler.dtypes, len(distinct))
            targets = np.arange(len(distinct))
            self._handler.merge(merged, Rows(codes, None, self._handler.partial(columns, slots), targets))
            columns, slots, keys = merged, targets, distinct
        self._emit(columns, slots, keys, np.full(len(slots), end, np.int64))

    def _emit(self, columns: Sequence[Any], slots: Any, keys: Any, ends: Any) -> None:
        empty = self._handler.are_empty(columns, slots)
        if empty is not None and empty.any():
            slots, keys, ends = slots[~empty], keys[~empty], ends[~empty]
        if not len(slots):
            return
        spec = self._spec
        starts = spec.window.window_start(ends)
        arrays = grouped_columns(spec.grouping, self._table.keys.columns_of(keys), starts, ends, self._times)
        arrays += self._handler.results(columns, slots)
        data = pa.RecordBatch.from_arrays(arrays, schema=columns_schema(spec.row_type))
        self.emit(ColumnBatch(data, None, spec.rowtime))

    def _remove(self, slots: Any) -> None:
        for end in np.unique(self._table.ends_of(slots)).tolist():
            self._changed.discard(end)
            self._state.drop(end)
        self._table.remove(slots)

    # -- snapshots ------------------------------------------------------------------------------------

    def store_windows(self) -> None:
        for end in self._changed:
            slots = self._table.slots_between(end - 1, end)
            keys = self._table.keys.columns_of(self._table.keys_of(slots))
            arrays = [*keys, *self._handler.partial(self._table.columns, slots)]
            names = [f"f{index}" for index in range(len(arrays))]
            self._state.store(end, pa.RecordBatch.from_arrays(arrays, names))
        self._changed.clear()
