"""Local phase of a group aggregate: partial results per batch, before the exchange by key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.runtime.state.columnar.state import empty_columns, is_number
from firesteel.table.expressions.errors import ValidationError
from firesteel.table.expressions.session import Session
from firesteel.table.plan.nodes import AggregateCall
from firesteel.table.runtime.operators.aggregate.feeds import Rows
from firesteel.table.runtime.operators.aggregate.group_aggregate import row_signs
from firesteel.table.runtime.operators.aggregate.handler import AggregateHandler
from firesteel.types.internal import arrow_type
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["LocalGroupAggregateOperator", "LocalGroupAggregateSpec"]

_MIN_ROWS = 500
_MAX_SHARE = 0.8
"""Distinct keys per row of a batch above which the next batches are not grouped."""
_UNGROUPED_BATCHES = 31


@dataclass(frozen=True)
class LocalGroupAggregateSpec(OperatorSpec):
    """Aggregates the rows of each batch by key, without state; GlobalGroupAggregateSpec merges what it emits.

    The output has the grouping columns, then accumulators, whose number and types are the handler's own.
    """

    input_type: RowType
    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    consumes_retractions: bool = False
    session: Session = field(default_factory=Session)

    def create(self, runtime: OperatorRuntime) -> LocalGroupAggregateOperator:
        """Returns a new operator for one subtask."""
        return LocalGroupAggregateOperator(self)


class LocalGroupAggregateOperator(ColumnOperator):
    """Emits one row of accumulators per key of a batch.

    Where a batch has hardly any key twice, grouping is not worth its cost. The rows of the next batches then become
    accumulators one by one, if these are numbers.
    """

    def __init__(self, spec: LocalGroupAggregateSpec):
        self._grouping = spec.grouping
        self._handler = AggregateHandler(spec.input_type, spec.calls, spec.consumes_retractions, spec.session)
        if not self._handler.is_splittable:
            raise ValidationError(
                "An aggregate function whose result depends on the order of rows has no local phase.",
                hint="Use GroupAggregateSpec.",
            )
        keys = [spec.input_type.fields[index] for index in spec.grouping]
        fields = [pa.field(key.name, arrow_type(key.type)) for key in keys]
        fields += [pa.field(f"$acc{index}", type_) for index, type_ in enumerate(self._handler.partial_types())]
        self._schema = pa.schema(fields)
        self._has_numbers = all(is_number(dtype) for dtype in self._handler.dtypes)
        self._ungrouped = 0
        """Batches that are not grouped from now on."""

    def process_columns(self, batch: ColumnBatch) -> None:
        if self._ungrouped:
            self._ungrouped -= 1
            codes = first_rows = slots = np.arange(len(batch))
        else:
            keys = BatchKeys(batch, self._grouping)
            codes, first_rows, slots = keys.codes, keys.first_rows, np.arange(keys.count)
            if self._has_numbers and len(batch) >= _MIN_ROWS and keys.count > _MAX_SHARE * len(batch):
                self._ungrouped = _UNGROUPED_BATCHES
        columns = empty_columns(self._handler.dtypes, len(slots))
        arrays = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in batch.data.columns
        ]
        self._handler.accumulate(columns, Rows(codes, row_signs(batch), arrays, slots))
        first = pa.array(first_rows)
        results = [arrays[index].take(first) for index in self._grouping]
        results = [result.cast(self._schema.field(index).type) for index, result in enumerate(results)]
        results += self._handler.partial(columns, slots)
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(results, schema=self._schema)))
