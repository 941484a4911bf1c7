"""Rows with a null where their table has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.bound.errors import EvaluationError

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["ConstraintEnforcerSpec"]


@dataclass(frozen=True)
class ConstraintEnforcerSpec(OperatorSpec):
    """Drops rows with nulls in some columns, or fails."""

    columns: tuple[tuple[int, str], ...]
    drops: bool

    def create(self, runtime: OperatorRuntime) -> ConstraintEnforcerOperator:
        """Returns a new operator for one subtask."""
        return ConstraintEnforcerOperator(self)


class ConstraintEnforcerOperator(ColumnOperator):
    """Drops rows with nulls, or fails."""

    def __init__(self, spec: ConstraintEnforcerSpec):
        self._columns = spec.columns
        self._drops = spec.drops

    def process_columns(self, batch: ColumnBatch) -> None:
        """Passes the rows on."""
        for index, name in self._columns:
            column = batch.data.column(index)
            if not column.null_count:
                continue
            if not self._drops:
                raise EvaluationError(
                    f"Column '{name}' is NOT NULL, however, a null value is being written into it.",
                    hint="You can set job configuration 'table.exec.sink.not-null-enforcer'='DROP' to suppress this "
                    "exception and drop such records silently.",
                )
            batch = batch.filter(column.is_valid())
        self.emit(batch)
