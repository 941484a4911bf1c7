"""OVER by processing time: rows are processed as they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.operators.base import OperatorContext
from firesteel.table.runtime.operators.over.spec import OverSpec
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.user_functions.scope import scoped
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema, from_column, to_column

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["ProctimeOverOperator", "ProctimeOverSpec", "ProctimeRangeOverOperator"]


@dataclass(frozen=True)
class ProctimeOverSpec(OverSpec):
    """OVER by processing time."""

    def create(self, runtime: OperatorRuntime) -> ProctimeOverOperator:
        """Returns a new operator for one subtask."""
        if self.preceding is None or self.group.frame.rows:
            return ProctimeOverOperator(self)
        return ProctimeRangeOverOperator(self)


class ProctimeOverOperator(KeyedColumnOperator):
    """State of a key: accumulators, and of a bounded window the rows in it; only columns that calls read are kept."""

    def __init__(self, spec: OverSpec) -> None:
        super().__init__(spec.group.partition, "over", spec.ttl_ms)
        self._spec = spec
        self._calls = spec.calls(scoped(self, spec.session))
        self._preceding = spec.preceding
        self._schema = columns_schema(spec.output_type)
        self._types = [call.type for call in spec.group.calls]
        self._read_types = [(column, spec.row_type.fields[column].type) for column in self._calls.columns]

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits each row with its results."""
        codes, keys = self._keys_of(batch)
        states = self._objects.load(keys)
        columns = [from_column(batch.data.column(index), type_) for index, type_ in self._read_types]
        results = []
        for row, code in zip(zip(*columns, strict=True), codes.tolist(), strict=True):
            state = states[code]
            if state is None:
                state = states[code] = [self._calls.create(), []]
            results.append(self._next(state, row))
        for key, state in zip(keys, states, strict=True):
            self._objects.store(key, state)
        self._emit_with(batch, results)

    def _next(self, state: list[Any], row: tuple[Any, ...]) -> tuple[Any, ...]:
        accumulators, window = state
        if self._preceding is not None:
            window.append(row)
            if len(window) > self._preceding + 1:
                self._calls.remove(accumulators, window.pop(0))
        self._calls.add(accumulators, row)
        return self._calls.results(accumulators)

    def _emit_with(self, batch: ColumnBatch, results: list[tuple[Any, ...]]) -> None:
        pa = require_pyarrow("SQL")
        made = [to_column(values, type_) for values, type_ in zip(zip(*results, strict=True), self._types, strict=True)]
        data = pa.RecordBatch.from_arrays([*batch.data.columns, *made], schema=self._schema)
        self.emit(ColumnBatch(data, None, self._spec.output_rowtime))


class ProctimeRangeOverOperator(ProctimeOverOperator):
    """A window of a length in time. All rows of a batch have the time at which it is processed."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._timers = context.timer_service("over", self)

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits each row with the results over the rows of its key up to now."""
        assert self._preceding is not None
        now = self.context.processing_time()
        codes, keys = self._keys_of(batch)
        states = self._objects.load(keys)
        columns = [from_column(batch.data.column(index), type_) for index, type_ in self._read_types]
        for row, code in zip(zip(*columns, strict=True), codes.tolist(), strict=True):
            state = states[code]
            if state is None:
                state = states[code] = [self._calls.create(), []]
            accumulators, window = state
            while window and window[0][0] < now - self._preceding:
                self._calls.remove(accumulators, window.pop(0)[1])
            window.append((now, row))
            self._calls.add(accumulators, row)
        made = [self._calls.results(state[0]) for state in states]
        for key, state in zip(keys, states, strict=True):
            self._objects.store(key, state)
            self._backend.key = key
            self._timers.register_processing_time_timer(None, now + self._preceding + 1)
        self._emit_with(batch, [made[code] for code in codes.tolist()])

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Removes the state of a key of which no row came meanwhile."""
        assert self._preceding is not None
        (state,) = self._objects.load([key])
        if state is not None and state[1] and state[1][-1][0] < timestamp - self._preceding:
            self._objects.store(key, None)

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Never called: there are no such timers."""
