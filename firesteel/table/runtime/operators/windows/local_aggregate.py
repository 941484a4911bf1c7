"""Two phases of an aggregation of windows: partial results of each batch by slice and key, and their merger."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.table.runtime.operators.aggregate.handler import AggregateHandler
from firesteel.table.runtime.operators.aggregate.local_phase import LocalPhaseOperator
from firesteel.table.runtime.operators.windows.aggregate import WindowAggregateOperator, WindowAggregateSpec
from firesteel.table.runtime.operators.windows.slices import encoded
from firesteel.table.runtime.operators.windows.times import WindowTimes
from firesteel.table.user_functions.scope import scoped
from firesteel.types.internal import arrow_type

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["GlobalWindowAggregateSpec", "LocalWindowAggregateSpec"]


@dataclass(frozen=True)
class LocalWindowAggregateSpec(OperatorSpec):
    """Aggregates the rows of each batch by slice and key, without state; GlobalWindowAggregateSpec merges the results.

    The output has the columns of the key, the end of the slice, the number of rows, then accumulators.
    """

    aggregate: WindowAggregateSpec

    def create(self, runtime: OperatorRuntime) -> LocalWindowAggregateOperator:
        """Returns a new operator for one subtask."""
        return LocalWindowAggregateOperator(self.aggregate)


class LocalWindowAggregateOperator(LocalPhaseOperator):
    """Emits one row of accumulators for each slice and key of a batch. Which rows are late is decided at the merger."""

    def __init__(self, spec: WindowAggregateSpec) -> None:
        assert spec.time is not None
        handler = spec.create_handler(scoped(self, spec.session))
        super().__init__(handler, spec.keys, _partial_schema(spec, handler))
        self._window = spec.window
        self._time = spec.time
        self._times = WindowTimes(spec.time_type, spec.session.local_time_zone)

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the partial results of a batch."""
        ends = self._window.slice_ends(self._times.of_rows(batch, self._time))
        codes, first_rows, keys, accumulators = self.aggregated(batch, partial(self._groups, batch, ends))
        counts = np.bincount(codes, minlength=len(first_rows))
        self.emit_columns([*keys, pa.array(ends[first_rows]), pa.array(counts), *accumulators])

    def _groups(self, batch: ColumnBatch, ends: Any) -> tuple[Any, Any]:
        """Which slice and key each row has, and the first row of each of them."""
        keys = BatchKeys(batch, self._keys)
        slice_codes, slices = encoded(ends)
        if len(slices) == 1:
            return keys.codes, keys.first_rows
        codes, distinct = encoded(slice_codes * np.intp(keys.count) + keys.codes)
        first_rows = np.empty(len(distinct), np.intp)
        first_rows[codes[::-1]] = np.arange(len(codes))[::-1]
        return codes, first_rows


@dataclass(frozen=True)
class GlobalWindowAggregateSpec(WindowAggregateSpec):
    """Merges what LocalWindowAggregateSpec emits; its state is that of WindowAggregateSpec."""

    def create(self, runtime: OperatorRuntime) -> WindowAggregateOperator:
        """Returns a new operator for one subtask."""
        return GlobalWindowAggregateOperator(self)


class GlobalWindowAggregateOperator(WindowAggregateOperator):
    """Merges accumulators instead of taking up rows."""

    def input_schema(self) -> Any:
        return _partial_schema(self._spec, self._handler)

    def key_columns(self) -> tuple[int, ...]:
        return tuple(range(len(self._spec.keys)))

    def slice_ends(self, batch: ColumnBatch) -> Any:
        return batch.data.column(len(self._spec.keys)).to_numpy()

    def late_rows(self, batch: ColumnBatch, is_late: Any) -> int:
        counts = batch.data.column(len(self._spec.keys) + 1).to_numpy()
        return int(counts[is_late].sum())

    def take_up(self, batch: ColumnBatch, codes: Any, ends: Any) -> None:
        self._table.merge(batch, batch.data.columns[len(self._spec.keys) + 2 :], codes, ends)


def _partial_schema(spec: WindowAggregateSpec, handler: AggregateHandler) -> Any:
    keys = [spec.input_type.fields[index] for index in spec.keys]
    fields = [pa.field(key.name, arrow_type(key.type)) for key in keys]
    fields += [pa.field("$slice_end", pa.int64()), pa.field("$rows", pa.int64())]
    fields += [pa.field(f"$acc{index}", type_) for index, type_ in enumerate(handler.partial_types())]
    return pa.schema(fields)
