"""Session windows: an aggregation of sessions by key, and the table function that gives rows their session."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch, concat_batches
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.state.columnar.slots import grown, reset
from firesteel.runtime.state.columnar.state import empty_columns
from firesteel.table.bound.session import Session as SqlSession
from firesteel.table.plan.nodes import AggregateCall
from firesteel.table.plan.time_attributes import is_proctime
from firesteel.table.plan.windows import WindowColumn
from firesteel.table.runtime.operators.aggregate.feeds import Rows
from firesteel.table.runtime.operators.aggregate.handler import AggregateHandler
from firesteel.table.runtime.operators.windows.base import WindowOperator
from firesteel.table.runtime.operators.windows.key_rows import KeyRows
from firesteel.table.runtime.operators.windows.output import grouped_columns
from firesteel.table.runtime.operators.windows.row_collector import RowCollector
from firesteel.table.runtime.operators.windows.sessions import Merge, Session, Sessions, in_sessions
from firesteel.table.runtime.operators.windows.state import WindowState, keys_in_place
from firesteel.table.runtime.operators.windows.times import WindowTimes, timestamps
from firesteel.table.user_functions.scope import scoped
from firesteel.types.internal import columns_schema
from firesteel.types.logical import LogicalType, RowType

__all__ = ["SessionAggregateSpec", "SessionTableFunctionSpec"]


@dataclass(frozen=True)
class _SessionSpec(OperatorSpec):
    gap: int
    input_type: RowType
    row_type: RowType
    time_type: LogicalType
    keys: tuple[int, ...]
    time: int
    session: SqlSession
    rowtime: int | None
    """The rowtime column of the results."""

    @property
    def is_proctime(self) -> bool:
        """Whether sessions are those of the clock."""
        return is_proctime(self.time_type)


@dataclass(frozen=True)
class SessionAggregateSpec(_SessionSpec):
    """Aggregates by session and key."""

    grouping: tuple[int | WindowColumn, ...]
    calls: tuple[AggregateCall, ...]
    retracts: bool

    def create(self, runtime: OperatorRuntime) -> _SessionAggregate:
        """Returns a new operator for one subtask."""
        return _SessionAggregate(self)


@dataclass(frozen=True)
class SessionTableFunctionSpec(_SessionSpec):
    """Emits the rows of a session with its bounds when it is over."""

    def create(self, runtime: OperatorRuntime) -> _SessionTableFunction:
        """Returns a new operator for one subtask."""
        return _SessionTableFunction(self)


class _SessionOperator(WindowOperator):
    """Keeps the open sessions of keys, with the columns of a handler at their slots."""

    def __init__(self, spec: _SessionSpec):
        super().__init__(WindowTimes(spec.time_type, spec.session.local_time_zone), spec.is_proctime)
        self._gap = spec.gap
        self._time = spec.time
        self._key_columns = spec.keys
        self._row_type = spec.row_type
        self._input_type = spec.input_type
        self._rowtime = spec.rowtime
        self._sessions = Sessions()
        self._free: list[int] = []
        self._next = 0

    @abstractmethod
    def create_handler(self) -> Any:
        """What belongs to sessions."""

    @abstractmethod
    def emit_sessions(self, sessions: Sequence[Session]) -> None:
        """Emits the results of sessions."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._handler = self.create_handler()
        self._capacity = 1024
        self._columns = empty_columns(self._handler.dtypes, self._capacity)
        self._state = WindowState(context, "sessions", range(len(self._key_columns)))
        width = len(self._key_columns)
        schema = columns_schema(self._input_type)
        self._keys = KeyRows(self._key_columns, [schema.field(column).type for column in self._key_columns])
        for end, rows in self._state.restore():
            batch = keys_in_place(rows.columns[:width], self._key_columns, rows.num_rows, schema)
            codes, numbers = self._keys.lookup(batch)
            slots = self._new_slots(rows.num_rows)
            arrays = rows.columns[width + 1 :]
            self._handler.merge(self._columns, Rows(np.arange(len(slots)), None, arrays, slots))
            starts = rows.column(width).to_pylist()
            for key, start, slot in zip(numbers[codes].tolist(), starts, slots.tolist(), strict=True):
                self._keys.refer(np.array([key]))
                self._sessions.add(key, start, end, slot)
            self.register(end)
        self._sessions.changed.clear()

    # -- rows -----------------------------------------------------------------------------------------

    def process_columns(self, batch: ColumnBatch) -> None:
        times = self.current_times(len(batch)) if self._is_proctime else self._times.of_rows(batch, self._time)
        may_be_late = self._may_be_late(times)
        if not may_be_late.any():
            self._add(batch, times)
            return
        # whether such a row is late depends on the rows before it
        start = 0
        for index in [*np.flatnonzero(may_be_late).tolist(), len(batch)]:
            if index > start:
                self._add(batch.slice(start, index - start), times[start:index])
            if index < len(batch):
                self._add_unless_late(batch.slice(index, 1), times[index : index + 1])
            start = index + 1

    def _may_be_late(self, times: Any) -> Any:
        if self._is_proctime or not self.is_over(int(times.min()) + self._gap):
            return np.zeros(len(times), bool)
        distinct, codes = np.unique(times + self._gap, return_inverse=True)
        return self.are_over(distinct)[codes]

    def _add_unless_late(self, row: ColumnBatch, time: Any) -> None:
        _, numbers = self._keys.lookup(row)
        start = int(time[0])
        self._keys.refer(numbers)
        if self._sessions.find(int(numbers[0]), start, start + self._gap):
            self._add(row, time)
        else:
            self.count_late(1)
        self._keys.release(numbers)

    def _add(self, batch: ColumnBatch, times: Any) -> None:
        key_codes, numbers = self._keys.lookup(batch)
        codes, keys, first, last = in_sessions(numbers[key_codes], times, self._gap)
        slots = self._new_slots(len(keys))
        signs = None if batch.kinds is None else np.where((batch.kinds == 1) | (batch.kinds == 3), -1, 1)
        self._handler.accumulate(self._columns, Rows(codes, signs, batch.data.columns, slots))
        self._keys.refer(keys)
        merges: list[Merge] = []
        intervals = zip(keys.tolist(), first.tolist(), last.tolist(), slots.tolist(), strict=True)
        for key, start, latest, slot in intervals:
            session, more = self._sessions.add(key, start, latest + self._gap, slot)
            merges += more
            self.register(session.end)
        if merges:
            self._merge(merges)

    def _merge(self, merges: Sequence[Merge]) -> None:
        pairs = np.array(merges, np.intp)
        targets, codes = np.unique(pairs[:, 0], return_inverse=True)
        sources = pairs[:, 1]
        self._handler.merge(self._columns, Rows(codes, None, self._handler.partial(self._columns, sources), targets))
        self._forget(sources)
        self._keys.release(pairs[:, 2])

    # -- results --------------------------------------------------------------------------------------

    def fire(self, ends: list[int]) -> None:
        sessions = [session for end in ends for session in self._sessions.pop(end)]
        if not sessions:
            return
        self.emit_sessions(sessions)
        self._keys.release(np.array([session.key for session in sessions]))
        self._forget(np.array([session.slot for session in sessions]))

    # -- snapshots ------------------------------------------------------------------------------------

    def store_windows(self) -> None:
        for end in self._sessions.changed:
            sessions = self._sessions.at(end)
            if not sessions:
                self._state.drop(end)
                continue
            slots = np.array([session.slot for session in sessions])
            keys = self._keys.columns_of(np.array([session.key for session in sessions]))
            starts = pa.array([session.start for session in sessions], pa.int64())
            arrays = [*keys, starts, *self._handler.partial(self._columns, slots)]
            names = [f"f{index}" for index in range(len(arrays))]
            self._state.store(end, pa.RecordBatch.from_arrays(arrays, names))
        self._sessions.changed.clear()

    # -- slots ----------------------------------------------------------------------------------------

    def _new_slots(self, count: int) -> Any:
        taken = self._free[len(self._free) - count :] if count <= len(self._free) else list(self._free)
        del self._free[len(self._free) - len(taken) :]
        missing = count - len(taken)
        taken += range(self._next, self._next + missing)
        self._next += missing
        while self._capacity < self._next:
            self._capacity *= 2
        self._columns[:] = [grown(column, self._capacity) for column in self._columns]
        return np.array(taken, np.intp)

    def _forget(self, slots: Any) -> None:
        reset(self._columns, slots)
        self._free += slots.tolist()


class _SessionAggregate(_SessionOperator):
    def __init__(self, spec: SessionAggregateSpec):
        super().__init__(spec)
        self._spec = spec

    def create_handler(self) -> Any:
        spec = self._spec
        return AggregateHandler(spec.input_type, spec.calls, spec.retracts, scoped(self, spec.session))

    def emit_sessions(self, sessions: Sequence[Session]) -> None:
        starts, ends, slots, keys = np.array(sessions, np.int64).T
        empty = self._handler.are_empty(self._columns, slots)
        if empty is not None and empty.any():
            starts, ends, slots, keys = (part[~empty] for part in (starts, ends, slots, keys))
        arrays = grouped_columns(self._spec.grouping, self._keys.columns_of(keys), starts, ends, self._times)
        arrays += self._handler.results(self._columns, slots)
        data = pa.RecordBatch.from_arrays(arrays, schema=columns_schema(self._row_type))
        self.emit(ColumnBatch(data, None, self._rowtime))


class _SessionTableFunction(_SessionOperator):
    def create_handler(self) -> Any:
        return RowCollector(columns_schema(self._input_type))

    def emit_sessions(self, sessions: Sequence[Session]) -> None:
        batches, counts = [], []
        for session in sessions:
            rows = self._handler.rows(self._columns, session.slot)
            batches += rows
            counts.append(sum(batch.num_rows for batch in rows))
        data = concat_batches([ColumnBatch(batch) for batch in batches]).data
        starts, ends = (np.repeat(bounds, counts) for bounds in np.array(sessions, np.int64).T[:2])
        added = [timestamps(starts), timestamps(ends), self._times.window_times(ends)]
        result = pa.RecordBatch.from_arrays([*data.columns, *added], schema=columns_schema(self._row_type))
        self.emit(ColumnBatch(result, None, self._rowtime))
