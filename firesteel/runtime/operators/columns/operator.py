"""Base class of operators that read and emit column batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.types.arrow import require_pyarrow

__all__ = ["ColumnOperator", "TwoInputColumnOperator", "as_columns"]


class ColumnOperator(StreamOperator):
    """An operator on column batches. What it emits to its context, and to side outputs, are batches too.

    A batch is never changed: it may have other readers, and its memory may be that of a buffer of the network.
    """

    emits_columns = True
    emits_own_records = True
    keeps_records = True
    functions: Any = None
    """What opens functions of users with the runtime context, and closes them."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        if self.functions is not None:
            self.functions.attach(context.runtime_context)
        # Arrow's own threads would compete with the other slots for the processors
        require_pyarrow("Columns").set_cpu_count(1)

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self.process_columns(as_columns(values))

    @abstractmethod
    def process_columns(self, batch: ColumnBatch) -> None:
        """Processes the rows of a batch, in order."""

    def close(self) -> None:
        if self.functions is not None:
            self.functions.close()

    def emit(self, batch: ColumnBatch) -> None:
        """Hands rows to the operators downstream."""
        if len(batch):
            self.context.emit(batch, None)  # type: ignore[arg-type]


class TwoInputColumnOperator(ColumnOperator):
    """An operator on the column batches of two inputs, which may have different columns."""

    def process_second_batch(self, values: Sequence[Any], _timestamps: Sequence[int] | None) -> None:
        """Processes a batch of the second input."""
        self.process_second_columns(as_columns(values))

    @abstractmethod
    def process_second_columns(self, batch: ColumnBatch) -> None:
        """Processes the rows of a batch of the second input, in order."""


def as_columns(values: Sequence[Any]) -> ColumnBatch:
    """The batch that an operator on columns has got."""
    if isinstance(values, ColumnBatch):
        return values
    raise InvalidProgramError(
        "An operator that reads columns got records.",
        hint="Put the operator that converts rows to columns before it: RowsToColumnsSpec.",
    )
