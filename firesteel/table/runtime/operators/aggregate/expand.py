"""Expand: each row once per grouping set, with nulls for the columns that are not in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.plan.replicate import EXPAND_ID, set_id

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["ExpandOperator", "ExpandSpec"]


@dataclass(frozen=True)
class ExpandSpec(OperatorSpec):
    """Repeats rows for grouping sets; the output has the columns of the input, then ``$e``, the id of the set."""

    grouping: tuple[int, ...]
    grouping_sets: tuple[tuple[int, ...], ...]
    copies: tuple[int, ...] = ()
    """Columns that aggregate functions read although they are grouped by: a copy is added, which stays as it is."""

    def create(self, runtime: OperatorRuntime) -> ExpandOperator:
        """Returns a new operator for one subtask."""
        return ExpandOperator(self)


class ExpandOperator(ColumnOperator):
    """Emits a batch with as many rows per row as there are grouping sets, next to each other."""

    def __init__(self, spec: ExpandSpec):
        self._spec = spec

    def process_columns(self, batch: ColumnBatch) -> None:
        spec = self._spec
        count, sets = len(batch), len(spec.grouping_sets)
        rows = pa.array(np.repeat(np.arange(count), sets))
        arrays: list[Any] = []
        fields = []
        for index, column in enumerate(batch.data.columns):
            schema_field = batch.data.schema.field(index)
            is_in = [index in group for group in spec.grouping_sets]
            if index in spec.grouping and not all(is_in):
                in_set = np.tile(is_in, count)
                arrays.append(column.take(pa.array(np.asarray(rows), mask=~in_set)))
                schema_field = schema_field.with_nullable(True)
            else:
                arrays.append(column.take(rows))
            fields.append(schema_field)
        for index in spec.copies:
            arrays.append(batch.data.column(index).take(rows))
            fields.append(batch.data.schema.field(index).with_name(f"${index}"))
        ids = np.tile([set_id(spec.grouping, group) for group in spec.grouping_sets], count)
        arrays.append(pa.array(ids, pa.int64()))
        fields.append(pa.field(EXPAND_ID, pa.int64(), nullable=False))
        kinds = None if batch.kinds is None else np.repeat(batch.kinds, sets)
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)), kinds, batch.rowtime))
