"""Borders between records and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.types import Row, RowKind
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.columns.operator import as_columns
from firesteel.types.arrow import to_arrow_schema
from firesteel.types.arrow_decoding import ArrowRecords
from firesteel.types.arrow_encoding import ArrowBatchEncoder
from firesteel.types.logical import LogicalType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["ColumnsToRowsOperator", "ColumnsToRowsSpec", "RowsToColumnsOperator", "RowsToColumnsSpec", "row_kinds"]

_KINDS = {kind.value: kind for kind in RowKind}


@dataclass(frozen=True)
class RowsToColumnsSpec(OperatorSpec):
    """Makes columns of a row type of records: Rows with their kinds, tuples, dicts or dataclasses."""

    row_type: LogicalType
    rowtime: int | None = None
    """The column that is the event time of the rows."""

    def create(self, runtime: OperatorRuntime) -> RowsToColumnsOperator:
        """Returns a new operator for one subtask."""
        return RowsToColumnsOperator(self)


class RowsToColumnsOperator(StreamOperator):
    """Makes columns of records."""

    emits_columns = True
    emits_own_records = True
    is_one_to_one = True

    def __init__(self, spec: RowsToColumnsSpec):
        self._row_type = spec.row_type
        self._rowtime = spec.rowtime

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._encoder = ArrowBatchEncoder(to_arrow_schema(self._row_type, keeps_not_null=True), str(self._row_type))

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Emits the records of a batch as one."""
        batch = ColumnBatch(self._encoder.to_batch(values), row_kinds(values), self._rowtime)
        self.context.emit(batch, None)  # type: ignore[arg-type]


def row_kinds(values: Sequence[Any]) -> Any:
    """The kinds of records as columns have them; None if all are insertions."""
    if values[0].__class__ is not Row and not any(isinstance(value, Row) for value in values):
        return None
    kinds = [value._row_kind.value if isinstance(value, Row) else 0 for value in values]
    if not any(kinds):
        return None
    import numpy as np

    return np.array(kinds, np.int8)


@dataclass(frozen=True)
class ColumnsToRowsSpec(OperatorSpec):
    """Makes records of columns: Rows with names and kinds, or tuples. Their timestamps are those of the rowtime."""

    as_tuples: bool = False
    has_timestamps: bool = True
    """Whether records get the rowtime as their timestamp, which no row may lack then."""

    def create(self, runtime: OperatorRuntime) -> ColumnsToRowsOperator:
        """Returns a new operator for one subtask."""
        return ColumnsToRowsOperator(self)


class ColumnsToRowsOperator(StreamOperator):
    """Makes records of columns."""

    emits_own_records = True
    is_one_to_one = True

    def __init__(self, spec: ColumnsToRowsSpec):
        self._as_tuples = spec.as_tuples
        self._has_timestamps = spec.has_timestamps
        self._schema: Any = None

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Emits one record per row."""
        batch = as_columns(values)
        if self._schema is None or not self._schema.equals(batch.data.schema):
            self._schema = batch.data.schema
            self._records = ArrowRecords(self._schema, self._as_tuples)
        records = list(self._records.decode(batch.data))
        if batch.kinds is not None and not self._as_tuples:
            for record, kind in zip(records, batch.kinds.tolist(), strict=True):
                if kind:
                    record._row_kind = _KINDS[kind]
        has_timestamps = self._has_timestamps and batch.rowtime is not None
        self.context.emit(records, rowtime_millis(batch).tolist() if has_timestamps else None)
