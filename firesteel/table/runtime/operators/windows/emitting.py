"""Aggregation of windows with results before they end, and again for late rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.table.bound.session import Session
from firesteel.table.plan.nodes import AggregateCall
from firesteel.table.plan.time_attributes import is_proctime
from firesteel.table.plan.window_kinds import AlignedWindow
from firesteel.table.plan.windows import EmitStrategy, WindowColumn
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.table.runtime.operators.windows.output import grouped_columns
from firesteel.table.runtime.operators.windows.row_calls import RowCalls
from firesteel.table.runtime.operators.windows.times import WindowTimes
from firesteel.table.user_functions.scope import scoped
from firesteel.types.internal import columns_schema, to_column
from firesteel.types.logical import LogicalType, RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["EmittingWindowAggregateSpec"]

_INSERT, _UPDATE_BEFORE, _UPDATE_AFTER, _DELETE = range(4)
_ACCUMULATORS, _COUNT, _EMITTED, _HAS_FIRED, _NEXT = range(5)
"""Of a window of a key: accumulators, the number of rows, the results emitted last, whether it has ended, and when it
has results next by the clock."""


@dataclass(frozen=True)
class EmittingWindowAggregateSpec(OperatorSpec):
    """Aggregates by window and key, with changes of the results; see ``plan.windows.EmitStrategy``."""

    window: AlignedWindow
    emit: EmitStrategy
    input_type: RowType
    row_type: RowType
    time_type: LogicalType
    grouping: tuple[int | WindowColumn, ...]
    calls: tuple[AggregateCall, ...]
    time: int
    retracts: bool
    update_before: bool
    per_row: bool
    """Whether every row that has results emits them; else those of a batch are emitted once."""
    session: Session
    rowtime: int | None = None

    @property
    def keys(self) -> tuple[int, ...]:
        """The columns of the key."""
        return tuple(column for column in self.grouping if isinstance(column, int))

    def create(self, runtime: OperatorRuntime) -> EmittingWindowAggregateOperator:
        """Returns a new operator for one subtask."""
        return EmittingWindowAggregateOperator(self)


class EmittingWindowAggregateOperator(KeyedColumnOperator):
    """Follows Flink's trigger ``AfterEndOfWindow`` with early and late firings.

    1. Before its end, a window fires with each row, or by the clock: a delay after its first row, and then again.
    2. At its end it fires.
    3. Then it fires with each late row or by the clock, until rows are too late. A window whose first row is late fires
       with each of its rows.

    A window that fires emits its results if they are not those that it emitted last. State of a key: the values of the
    key, and its windows by their ends.
    """

    def __init__(self, spec: EmittingWindowAggregateSpec) -> None:
        super().__init__(spec.keys, "emitting-windows", 0)
        self._spec = spec
        self._is_proctime = is_proctime(spec.time_type)
        self._times = WindowTimes(spec.time_type, spec.session.local_time_zone)
        self._calls = RowCalls(spec.input_type, spec.calls, spec.retracts, scoped(self, spec.session))
        self._codec = RowCodec(spec.input_type)
        self._schema = columns_schema(spec.row_type)
        self._changes: list[tuple[int, tuple[Any, ...], int, tuple[Any, ...]]] = []
        """Kind, key, end of the window, and results."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._timers = context.timer_service("emitting-windows", self)
        self._dropped = context.counter("numLateRecordsDropped")

    # -- rows --------------------------------------------------------------------------------------------------

    def process_columns(self, batch: ColumnBatch) -> None:
        """Takes up rows; windows that fire with rows emit their results."""
        spec = self._spec
        if self._is_proctime:
            times = np.full(len(batch), self._times.local_one(self.context.processing_time()), np.int64)
        else:
            times = self._times.of_rows(batch, spec.time)
        slices = spec.window.slice_ends(times)
        first, last = spec.window.first_end(slices), spec.window.last_end(slices)
        codes, keys = self._keys_of(batch)
        states = self._objects.load(keys)
        kinds = np.zeros(len(batch), np.int8) if batch.kinds is None else batch.kinds
        fired: dict[tuple[int, int], None] = {}
        rows = zip(
            self._codec.decode(batch.data), codes.tolist(), kinds.tolist(), first.tolist(), last.tolist(), strict=True
        )
        for row, code, kind, first_end, last_end in rows:
            if states[code] is None:
                states[code] = [tuple([row[column] for column in spec.keys]), {}]
            self._backend.key = keys[code]
            for end in self._add(states[code][1], row, kind, first_end, last_end):
                if spec.per_row:
                    self._fire(states[code], end)
                else:
                    fired[code, end] = None
        for code, end in fired:
            self._fire(states[code], end)
        for code, key in enumerate(keys):
            self._objects.store(key, states[code] if states[code] is not None and states[code][1] else None)
        self._flush()

    def _add(self, windows: dict[int, list[Any]], row: Any, kind: int, first_end: int, last_end: int) -> Iterator[int]:
        """Adds a row to its windows, the latest first: those that fire."""
        is_late = True
        for end in range(last_end, first_end - 1, -self._spec.window.step):
            trigger = self._times.trigger(end)
            if not self._is_proctime and trigger + self._spec.emit.lateness_ms <= self._timers.current_watermark:
                continue
            is_late = False
            window = windows.get(end)
            if window is None:
                window = windows[end] = [self._calls.create(), 0, None, False, None]
                self._register(trigger)
            joins = kind not in (_UPDATE_BEFORE, _DELETE)
            window[_COUNT] += 1 if joins else -1
            self._calls.change(window[_ACCUMULATORS], row, joins)
            if self._fires_with_row(window, trigger):
                yield end
        if is_late and first_end <= last_end:
            self._dropped.inc()

    def _register(self, trigger: int) -> None:
        if self._is_proctime:
            self._timers.register_processing_time_timer(None, trigger)
            return
        if trigger > self._timers.current_watermark:
            self._timers.register_event_time_timer(None, trigger)
        if self._spec.emit.lateness_ms:
            self._timers.register_event_time_timer(None, trigger + self._spec.emit.lateness_ms)

    def _fires_with_row(self, window: list[Any], trigger: int) -> bool:
        emit = self._spec.emit
        if not window[_HAS_FIRED] and not self._is_proctime and trigger <= self._timers.current_watermark:
            return True
        delay = emit.late_ms if window[_HAS_FIRED] else emit.early_ms
        if delay is not None and delay > 0 and window[_NEXT] is None:
            self._schedule(window, self.context.processing_time() + delay)
        return delay == 0

    def _schedule(self, window: list[Any], timestamp: int) -> None:
        window[_NEXT] = timestamp
        self._timers.register_processing_time_timer(None, timestamp)

    # -- timers ------------------------------------------------------------------------------------------------

    def fire_timers(self, timestamp: int) -> bool:
        """Fires the windows that end."""
        done = self._timers.advance_watermark(timestamp)
        self._flush()
        return done

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Windows end, or take no late rows any more."""
        (state,) = self._objects.load([key])
        if state is None:
            return
        windows = state[1]
        for end in list(windows):
            trigger = self._times.trigger(end)
            if trigger == timestamp and not windows[end][_HAS_FIRED]:
                windows[end][_HAS_FIRED], windows[end][_NEXT] = True, None
                self._fire(state, end)
            if trigger + self._spec.emit.lateness_ms == timestamp:
                del windows[end]
        self._objects.store(key, state if windows else None)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Windows fire by the clock."""
        (state,) = self._objects.load([key])
        if state is None:
            return
        self._backend.key = key
        windows, emit = state[1], self._spec.emit
        for end in list(windows):
            window = windows[end]
            if self._is_proctime and self._times.trigger(end) == timestamp:
                self._fire(state, end)
                del windows[end]
            elif window[_NEXT] == timestamp:
                self._fire(state, end)
                delay = emit.late_ms if window[_HAS_FIRED] else emit.early_ms
                assert delay is not None
                self._schedule(window, timestamp + delay)
        self._objects.store(key, state if windows else None)
        self._flush()

    # -- results -----------------------------------------------------------------------------------------------

    def _fire(self, state: list[Any], end: int) -> None:
        key, windows = state
        window = windows[end]
        before = window[_EMITTED]
        results = self._calls.results(window[_ACCUMULATORS]) if window[_COUNT] else None
        window[_EMITTED] = results
        if results is None:
            if before is not None:
                self._changes.append((_DELETE, key, end, before))
        elif before is None:
            self._changes.append((_INSERT, key, end, results))
        elif before != results:
            if self._spec.update_before:
                self._changes.append((_UPDATE_BEFORE, key, end, before))
            self._changes.append((_UPDATE_AFTER, key, end, results))

    def _flush(self) -> None:
        if not self._changes:
            return
        spec, changes = self._spec, self._changes
        self._changes = []
        ends = np.array([end for _, _, end, _ in changes], np.int64)
        fields = self._spec.input_type.fields
        keys = [
            to_column([key[place] for _, key, _, _ in changes], fields[column].type)
            for place, column in enumerate(spec.keys)
        ]
        arrays = grouped_columns(spec.grouping, keys, spec.window.window_start(ends), ends, self._times)
        for place, call in enumerate(spec.calls):
            arrays.append(to_column([results[place] for _, _, _, results in changes], call.type))
        kinds = np.array([kind for kind, _, _, _ in changes], np.int8)
        data = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self.emit(ColumnBatch(data, kinds if kinds.any() else None, spec.rowtime))
