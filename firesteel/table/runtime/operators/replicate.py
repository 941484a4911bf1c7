"""Rows that are repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["ReplicateRowsSpec"]


@dataclass(frozen=True)
class ReplicateRowsSpec(OperatorSpec):
    """Emits each row as often as its first column says, without that column."""

    def create(self, runtime: OperatorRuntime) -> ReplicateRowsOperator:
        """Returns a new operator for one subtask."""
        return ReplicateRowsOperator()


class ReplicateRowsOperator(ColumnOperator):
    """Repeats rows."""

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the rows of a batch, the copies of one after each other."""
        import numpy as np

        counts = batch.data.column(0).to_numpy(zero_copy_only=False)
        rest = batch.data.select(range(1, batch.data.num_columns))
        repeated = np.repeat(np.arange(len(batch)), np.maximum(counts, 0))
        self.emit(ColumnBatch(rest, batch.kinds).take(repeated))
