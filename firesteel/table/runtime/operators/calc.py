"""The functions of a Calc: expressions compiled to kernels when the first batch comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.table.bound.nodes import Call, Expression, walk
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.vector_codegen import VectorFunction, compile_vector
from firesteel.table.user_functions.scope import FunctionScope
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

__all__ = ["CompiledExpressions", "ConditionFunction", "ProjectionFunction"]


@dataclass
class CompiledExpressions:
    """Expressions over the columns of a batch."""

    expressions: tuple[Expression, ...]
    session: Session
    _function: VectorFunction | None = field(default=None, repr=False, compare=False)
    _scope: FunctionScope | None = field(default=None, repr=False, compare=False)
    watermark: int | None = field(default=None, repr=False, compare=False)
    """What CURRENT_WATERMARK returns; the operator sets it."""

    @property
    def reads_watermark(self) -> bool:
        """Whether an expression calls CURRENT_WATERMARK."""
        parts = (part for expression in self.expressions for part in walk(expression))
        return any(isinstance(part, Call) and part.function == "CURRENT_WATERMARK" for part in parts)

    def open(self, runtime_context: Any) -> None:
        """Has functions of the user opened with a context when they are compiled."""
        self._scope = FunctionScope()
        self._scope.attach(runtime_context)

    def close(self) -> None:
        """Closes the functions of the user."""
        if self._scope is not None:
            self._scope.close()

    def columns_of(self, data: Any) -> list[Any]:
        """A column for each expression."""
        if self._function is None:
            session = replace(self.session, watermark=lambda: self.watermark, scope=self._scope)
            self._function = compile_vector(self.expressions, session)
        return self._function(data.columns, data.num_rows)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_function": None, "_scope": None}


class ProjectionFunction(CompiledExpressions):
    """Makes a RecordBatch with the columns of a row type of a RecordBatch."""

    def __init__(self, expressions: Sequence[Expression], row_type: RowType, session: Session) -> None:
        super().__init__(tuple(expressions), session)
        self.row_type = row_type

    def __call__(self, data: Any) -> Any:
        """The projected columns."""
        pa = require_pyarrow("SQL")
        columns = self.columns_of(data)
        if not columns:
            # an Arrow batch without columns has no length of its own
            return pa.RecordBatch.from_struct_array(pa.array([{}] * data.num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, schema=columns_schema(self.row_type))


class ConditionFunction(CompiledExpressions):
    """Makes a BooleanArray of a RecordBatch."""

    def __init__(self, condition: Expression, session: Session) -> None:
        super().__init__((condition,), session)

    def __call__(self, data: Any) -> Any:
        """For each row whether the condition is true."""
        return self.columns_of(data)[0]
