"""Records of a stream as columns, with their timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.operators.columns.borders import RowsToColumnsOperator, RowsToColumnsSpec, row_kinds
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["TimedRowsToColumnsSpec"]


@dataclass(frozen=True)
class TimedRowsToColumnsSpec(RowsToColumnsSpec):
    """Makes columns of records, and of their timestamps the last one."""

    produced_type: RowType | None = None

    def create(self, runtime: OperatorRuntime) -> TimedRowsToColumnsOperator:
        """Returns a new operator for one subtask."""
        return TimedRowsToColumnsOperator(self)


class TimedRowsToColumnsOperator(RowsToColumnsOperator):
    """Makes columns of records and their timestamps."""

    def __init__(self, spec: TimedRowsToColumnsSpec):
        super().__init__(spec)
        self._produced_type = spec.produced_type

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Emits the records of a batch as one."""
        if timestamps is None:
            raise InvalidProgramError(
                "The records have no timestamps, which the metadata column 'rowtime' needs.",
                hint="Call assign_timestamps_and_watermarks on the stream.",
            )
        pa = require_pyarrow("SQL")
        data = self._encoder.to_batch(values)
        schema = columns_schema(self._produced_type)
        times = pa.array(timestamps, pa.int64()).cast(pa.timestamp("ms")).cast(schema.field(-1).type)
        data = pa.RecordBatch.from_arrays([*data.columns, times], schema=schema)
        self.context.emit(ColumnBatch(data, row_kinds(values)), None)  # type: ignore[arg-type]
