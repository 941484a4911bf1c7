"""Batches of columns as records, so that a client collects them whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.columns.operator import as_columns

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["CollectColumnsSpec"]


@dataclass(frozen=True)
class CollectColumnsSpec(OperatorSpec):
    """Makes one record of each batch."""

    def create(self, runtime: OperatorRuntime) -> CollectColumnsOperator:
        """Returns a new operator for one subtask."""
        return CollectColumnsOperator()


class CollectColumnsOperator(StreamOperator):
    """Makes one record of each batch."""

    emits_own_records = True

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Emits the batch as a record."""
        self.context.emit([as_columns(values)], None)
