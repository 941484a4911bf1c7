"""Local phase of a group aggregate: partial results per batch, before the exchange by key."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.session import Session
from firesteel.table.plan.nodes import AggregateCall
from firesteel.table.runtime.operators.aggregate.handler import AggregateHandler
from firesteel.table.runtime.operators.aggregate.local_phase import LocalPhaseOperator
from firesteel.table.user_functions.scope import scoped
from firesteel.types.internal import arrow_type
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["LocalGroupAggregateOperator", "LocalGroupAggregateSpec"]


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


class LocalGroupAggregateOperator(LocalPhaseOperator):
    """Emits one row of accumulators per key of a batch."""

    def __init__(self, spec: LocalGroupAggregateSpec):
        handler = AggregateHandler(spec.input_type, spec.calls, spec.consumes_retractions, scoped(self, spec.session))
        if not handler.is_splittable:
            raise ValidationError(
                "An aggregate function whose result depends on the order of rows has no local phase.",
                hint="Use GroupAggregateSpec.",
            )
        keys = [spec.input_type.fields[index] for index in spec.grouping]
        fields = [pa.field(key.name, arrow_type(key.type)) for key in keys]
        fields += [pa.field(f"$acc{index}", type_) for index, type_ in enumerate(handler.partial_types())]
        super().__init__(handler, spec.grouping, pa.schema(fields))

    def process_columns(self, batch: ColumnBatch) -> None:
        results = self.aggregated(batch, partial(self._groups, batch))
        self.emit_columns(results.keys + results.accumulators)

    def _groups(self, batch: ColumnBatch) -> tuple[Any, Any]:
        keys = BatchKeys(batch, self._keys)
        return keys.codes, keys.first_rows
