"""OVER by event time: rows are processed in the order of time, when the watermark has reached them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.operators.base import OperatorContext
from firesteel.table.runtime.operators.over.spec import OverSpec
from firesteel.table.runtime.operators.ranks.deduplicate import times_of
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.table.user_functions.scope import scoped
from firesteel.types.internal import to_column

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["RowtimeOverOperator", "RowtimeOverSpec"]

_PENDING, _WINDOW, _ACCUMULATORS, _LAST, _CLEANUP = range(5)
"""State of a key: rows that wait by time, rows in the window with their time, accumulators, the last time that was
processed, and when the state of a bounded RANGE is removed."""


@dataclass(frozen=True)
class RowtimeOverSpec(OverSpec):
    """OVER by event time."""

    def create(self, runtime: OperatorRuntime) -> RowtimeOverOperator:
        """Returns a new operator for one subtask."""
        return RowtimeOverOperator(self)


class RowtimeOverOperator(KeyedColumnOperator):
    """Late rows are dropped: of unbounded windows those behind the watermark, else those behind the last row."""

    def __init__(self, spec: OverSpec) -> None:
        super().__init__(spec.group.partition, "over", spec.ttl_ms)
        self._spec = spec
        self._codec = RowCodec(spec.row_type)
        self._calls = spec.calls(scoped(self, spec.session))
        self._preceding = spec.preceding
        self._rows_frame = spec.group.frame.rows
        self._types = [call.type for call in spec.group.calls]
        self._output_codec = RowCodec(spec.output_type)
        self._due: list[tuple[Any, ...]] = []
        self._results: list[tuple[Any, ...]] = []

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._timers = context.timer_service("over", self)
        self._dropped = context.counter("numLateRecordsDropped")

    def process_columns(self, batch: ColumnBatch) -> None:
        """Keeps rows until their time has come."""
        import numpy as np

        times = times_of(batch, self._spec.time)
        if self._preceding is None:
            on_time = np.flatnonzero(times > self._timers.current_watermark)
            if len(on_time) < len(batch):
                self._dropped.inc(len(batch) - len(on_time))
                if not len(on_time):
                    return
                batch, times = batch.take(on_time), times[on_time]
        codes, keys = self._keys_of(batch)
        states = self._objects.load(keys)
        touched = set()
        for row, code, time in zip(self._codec.decode(batch.data), codes.tolist(), times.tolist(), strict=True):
            state = states[code]
            if state is None:
                state = states[code] = [{}, [], self._calls.create(), MIN_TIMESTAMP, None]
            if self._preceding is not None and time <= state[_LAST]:
                self._dropped.inc()
                continue
            touched.add(code)
            waiting = state[_PENDING].get(time)
            if waiting is None:
                self._backend.key = keys[code]
                state[_PENDING][time] = [row]
                self._timers.register_event_time_timer(None, time)
            else:
                waiting.append(row)
            if self._preceding is not None and not self._rows_frame:
                self._register_cleanup(keys[code], state, time)
        for code in touched:
            self._objects.store(keys[code], states[code])

    def _register_cleanup(self, key: Any, state: list[Any], time: int) -> None:
        assert self._preceding is not None
        if state[_CLEANUP] is None or state[_CLEANUP] < time + self._preceding + 1:
            state[_CLEANUP] = time + int(self._preceding * 1.5) + 1
            self._backend.key = key
            self._timers.register_event_time_timer(None, state[_CLEANUP])

    def fire_timers(self, timestamp: int) -> bool:
        """Emits the rows that are due."""
        done = self._timers.advance_watermark(timestamp)
        if self._due:
            rows, results, self._due, self._results = self._due, self._results, [], []
            arrays = self._codec.arrays(rows)
            columns = zip(*results, strict=True)
            arrays += [to_column(values, type_) for values, type_ in zip(columns, self._types, strict=True)]
            import pyarrow as pa

            data = pa.RecordBatch.from_arrays(arrays, schema=self._output_codec.schema)
            self.emit(ColumnBatch(data, None, self._spec.output_rowtime))
        return done

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """The rows of a time are complete."""
        (state,) = self._objects.load([key])
        if state is None:
            return
        if state[_CLEANUP] is not None and state[_CLEANUP] <= timestamp:
            self._objects.store(key, None)
            return
        rows = state[_PENDING].pop(timestamp, None)
        if rows is not None:
            if self._preceding is None:
                self._unbounded(state, rows)
            elif self._rows_frame:
                self._bounded_rows(state, rows, self._preceding + 1)
            else:
                self._bounded_range(state, rows, timestamp, self._preceding)
        state[_LAST] = timestamp
        self._objects.store(key, state)

    def _read(self, row: tuple[Any, ...]) -> list[Any]:
        return [row[column] for column in self._calls.columns]

    def _unbounded(self, state: list[Any], rows: list[tuple[Any, ...]]) -> None:
        calls, accumulators = self._calls, state[_ACCUMULATORS]
        for row in rows:
            calls.add(accumulators, self._read(row))
            if self._rows_frame:
                self._due.append(row)
                self._results.append(calls.results(accumulators))
        if not self._rows_frame:
            self._emit_all(rows, accumulators)

    def _emit_all(self, rows: list[tuple[Any, ...]], accumulators: list[Any]) -> None:
        self._due += rows
        self._results += [self._calls.results(accumulators)] * len(rows)

    def _bounded_rows(self, state: list[Any], rows: list[tuple[Any, ...]], size: int) -> None:
        calls, accumulators, window = self._calls, state[_ACCUMULATORS], state[_WINDOW]
        for row in rows:
            read = self._read(row)
            window.append(read)
            if len(window) > size:
                calls.remove(accumulators, window.pop(0))
            calls.add(accumulators, read)
            self._due.append(row)
            self._results.append(calls.results(accumulators))

    def _bounded_range(self, state: list[Any], rows: list[tuple[Any, ...]], time: int, preceding: int) -> None:
        calls, accumulators, window = self._calls, state[_ACCUMULATORS], state[_WINDOW]
        while window and time - window[0][0] > preceding:
            calls.remove(accumulators, window.pop(0)[1])
        for row in rows:
            read = self._read(row)
            window.append((time, read))
            calls.add(accumulators, read)
        self._emit_all(rows, accumulators)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Never called: there are no such timers."""
