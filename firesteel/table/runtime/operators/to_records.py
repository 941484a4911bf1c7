"""The border before sinks: column batches become the records that a sink of the DataStream API takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.columns.operator import as_columns

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["RecordConverter", "ToRecordsOperator", "ToRecordsSpec"]


class RecordConverter(ABC):
    """Makes records of columns; immutable and picklable, what it opens belongs to a subtask."""

    @abstractmethod
    def open(self) -> Any:
        """A function from a ColumnBatch to a list of records."""


@dataclass(frozen=True)
class ToRecordsSpec(OperatorSpec):
    """Makes records of columns."""

    converter: RecordConverter

    def create(self, runtime: OperatorRuntime) -> ToRecordsOperator:
        """Returns a new operator for one subtask."""
        return ToRecordsOperator(self.converter)

    def declares_states(self, *, is_keyed: bool) -> bool:
        return False


class ToRecordsOperator(StreamOperator):
    """Makes records of columns."""

    emits_own_records = True

    def __init__(self, converter: RecordConverter) -> None:
        self._converter = converter

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._convert = self._converter.open()

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Emits the records of a batch."""
        batch: ColumnBatch = as_columns(values)
        records = self._convert(batch)
        if records:
            self.context.emit(records, None)
