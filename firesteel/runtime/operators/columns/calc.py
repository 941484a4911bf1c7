"""Calc: projection and filter of column batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["CalcOperator", "CalcSpec"]


@dataclass(frozen=True)
class CalcSpec(OperatorSpec):
    """Filters rows by a condition, then computes their columns."""

    projection: Callable[[Any], Any]
    """Makes a RecordBatch of a RecordBatch, with one row per row.

    A projection or condition whose attribute ``reads_watermark`` is true finds the watermark in ``watermark``; its
    methods ``open``, with the runtime context, and ``close`` are called if it has them.
    """
    condition: Callable[[Any], Any] | None = None
    """Makes a BooleanArray of a RecordBatch: rows for which it is true are kept."""
    rowtime: int | None = None
    """The rowtime column of the results."""
    columns: tuple[int, ...] | None = None
    """The columns that the projection reads, which it then gets alone; None if it gets all."""

    def create(self, runtime: OperatorRuntime) -> CalcOperator:
        """Returns a new operator for one subtask."""
        return CalcOperator(self)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Returns projection and condition."""
        functions = {"projection": self.projection}
        return functions if self.condition is None else {**functions, "condition": self.condition}


class CalcOperator(ColumnOperator):
    """Filters rows, then computes their columns."""

    def __init__(self, spec: CalcSpec):
        self._project = spec.projection
        self._condition = spec.condition
        self._rowtime = spec.rowtime
        self._columns = None if spec.columns is None else list(spec.columns)
        self.is_one_to_one = spec.condition is None
        self._functions = [function for function in (spec.projection, spec.condition) if function is not None]
        self._timed = [function for function in self._functions if getattr(function, "reads_watermark", False)]

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        for function in self._functions:
            if hasattr(function, "open"):
                function.open(context.runtime_context)

    def close(self) -> None:
        super().close()
        for function in self._functions:
            if hasattr(function, "close"):
                function.close()

    def process_watermark(self, timestamp: int) -> None:
        for function in self._timed:
            function.watermark = timestamp  # type: ignore[attr-defined]
        super().process_watermark(timestamp)

    def process_columns(self, batch: ColumnBatch) -> None:
        if self._condition is not None:
            mask = self._condition(batch.data)
            if self._columns is not None:
                # only what is read is copied
                batch = batch.with_data(batch.data.select(self._columns))
            batch = batch.filter(mask)
            if not len(batch):
                return
        data = self._project(batch.data)
        if data.num_rows != len(batch):
            raise InvalidProgramError(
                f"A projection made {data.num_rows} rows of {len(batch)}.",
                hint="Give rows that are to be dropped to the condition of CalcSpec.",
            )
        self.emit(batch.with_data(data, self._rowtime))
