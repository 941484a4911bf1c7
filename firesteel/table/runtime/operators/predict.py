"""ML_PREDICT: rows beside what a model returns for them, called row by row or for several rows at a time."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import FiresteelError
from firesteel.datastream.async_io.async_retry_strategies import NO_RETRY_STRATEGY
from firesteel.runtime.columns.batch import ColumnBatch, concat_batches
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.async_wait.operator import AsyncWaitOperator, AsyncWaitSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator, as_columns
from firesteel.table.connector.model import AsyncPredictFunction, PredictFunction
from firesteel.table.runtime.operators.rows import RowCodec, record_batch
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["PredictSpec", "PredictedRows", "async_predict_spec"]


@dataclass(frozen=True)
class PredictedRows:
    """Takes the columns of the model from rows, and puts what it returns beside them."""

    columns: tuple[int, ...]
    input_type: RowType
    """Of the columns that the model takes."""
    output_type: RowType
    row_type: RowType
    rowtime: int | None
    name: str
    """The model, for errors."""

    def arguments(self, batch: ColumnBatch) -> list[tuple[Any, ...]]:
        """The arguments of each row."""
        return RowCodec(self.input_type).decode(batch.data.select(list(self.columns)))

    def beside(self, batch: ColumnBatch, results: Sequence[Iterable[Any]]) -> ColumnBatch:
        """Each row with each of its results."""
        rows: list[tuple[Any, ...]] = []
        parents: list[int] = []
        for index, found in enumerate(results):
            for row in found:
                rows.append(self._checked(row))
                parents.append(index)
        taken = batch.take(require_pyarrow("SQL").array(parents, "int64"))
        added = RowCodec(self.output_type).arrays(rows)
        data = record_batch([*taken.data.columns, *added], columns_schema(self.row_type), len(rows))
        return ColumnBatch(data, taken.kinds, self.rowtime)

    def _checked(self, row: Any) -> tuple[Any, ...]:
        values = tuple(row)
        if len(values) != len(self.output_type.fields):
            raise FiresteelError(
                f"The model {self.name} returned a row of {len(values)} values, but its output has "
                f"{len(self.output_type.fields)} columns."
            )
        return values


@dataclass(frozen=True)
class PredictSpec(OperatorSpec):
    """Calls a model for one row after the other."""

    function: PredictFunction
    rows: PredictedRows

    def create(self, runtime: OperatorRuntime) -> _PredictOperator:
        """Returns a new operator for one subtask."""
        return _PredictOperator(self)


class _PredictOperator(ColumnOperator):
    """Calls a model for one row after the other."""

    def __init__(self, spec: PredictSpec):
        self._rows = spec.rows
        self._function = copy.deepcopy(spec.function)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._function.open()

    def close(self) -> None:
        self._function.close()

    def process_columns(self, batch: ColumnBatch) -> None:
        results = [self._function.predict(arguments) for arguments in self._rows.arguments(batch)]
        self.emit(self._rows.beside(batch, results))


class _RowFunction:
    """Calls a model for a batch of one row; it has the methods of an AsyncFunction."""

    def __init__(self, function: AsyncPredictFunction, rows: PredictedRows) -> None:
        self._function = function
        self._rows = rows

    def open(self, runtime_context: Any) -> None:
        """Opens the model's function."""
        del runtime_context
        self._function.open()

    def close(self) -> Any:
        """Closes the model's function; a coroutine is for the event loop."""
        return self._function.close()

    async def async_invoke(self, value: ColumnBatch) -> list[ColumnBatch]:
        """The row with each of its results, in one batch."""
        (arguments,) = self._rows.arguments(value)
        found = self._rows.beside(value, [await self._function.async_predict(arguments)])
        return [found] if len(found) else []

    def timeout(self, value: ColumnBatch) -> list[ColumnBatch]:
        """Fails: a call has taken too long."""
        del value
        raise FiresteelError(
            f"A call of the model {self._rows.name} has not ended in time.",
            hint="Set 'timeout' of the argument CONFIG, or 'table.exec.async-ml-predict.timeout'.",
        )


@dataclass(frozen=True)
class _AsyncPredictSpec(AsyncWaitSpec):
    """Calls a model for several rows at a time."""

    def create(self, runtime: OperatorRuntime) -> _AsyncPredictOperator:
        """Returns a new operator for one subtask."""
        return _AsyncPredictOperator(self)


def async_predict_spec(
    function: AsyncPredictFunction, rows: PredictedRows, timeout_ms: int, capacity: int, is_ordered: bool
) -> AsyncWaitSpec:
    """The operator that calls a model for several rows at a time."""
    return _AsyncPredictSpec(_RowFunction(function, rows), timeout_ms, capacity, NO_RETRY_STRATEGY, is_ordered)


class _AsyncPredictOperator(AsyncWaitOperator):
    """Makes a call for each row; what is in the queue, and in checkpoints, are batches of one row."""

    emits_columns = True

    def __init__(self, spec: AsyncWaitSpec):
        super().__init__(spec)
        self.function = self.user_function = copy.deepcopy(spec.function)

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        batch = as_columns(values)
        super().process_batch([batch.slice(index, 1) for index in range(len(batch))], None)

    def _emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        if values:
            self.context.emit(concat_batches(values), None)  # type: ignore[arg-type]
