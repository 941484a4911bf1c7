"""Batches of columns as records, so that a client collects them whole.

The records are bytes: a record that is a batch would be taken for columns behind an exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.wire import decode_columns, encode_columns
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.columns.operator import as_columns

if TYPE_CHECKING:
    from firesteel.runtime.columns.batch import ColumnBatch
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["CollectColumnsSpec", "CollectedColumns"]


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
        self.context.emit([encode_columns(as_columns(values))], None)


class CollectedColumns:
    """The batches of a job, at the client; ``records`` are what it collects."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def __iter__(self) -> Iterator[ColumnBatch]:
        return map(decode_columns, self._records)

    def close(self) -> None:
        """Cancels the job, unless it has ended."""
        self._records.close()
