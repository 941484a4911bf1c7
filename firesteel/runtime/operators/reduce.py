"""Reduce operator of a keyed stream: running results, or one result per key in a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.model.operator_spec import FunctionSpec
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.grouped import ResultPerKeyOperator
from firesteel.runtime.operators.inline import InlineOperator

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["GroupedReduceOperator", "ReduceOperator", "ReduceSpec"]


@dataclass(frozen=True)
class ReduceSpec(FunctionSpec):
    """A running reduce on a keyed stream: a callable of two values, or a ReduceFunction."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator | StreamOperator:
        """Returns a new operator for one subtask."""
        if runtime.execution.one_key_at_a_time:
            return GroupedReduceOperator(self.function)
        return ReduceOperator(self.function)

    def associative_reduction(self) -> tuple[str, int | str] | None:
        """Returns the reduction of sum, min and max; a user's function may depend on the order."""
        reduction: tuple[str, int | str] | None = getattr(self.function, "associative_reduction", None)
        return reduction

    def without_user_functions(self) -> ReduceSpec:
        """Returns a reduce with the same state."""
        return ReduceSpec(_first)


def _first(value: Any, _: Any) -> Any:
    return value


class ReduceOperator(InlineOperator):
    """A running reduce: one result for every record, as Flink's KeyedStream.reduce."""

    method = "reduce"
    is_one_to_one = True

    def open(self, context: OperatorContext) -> None:
        """Opens the function and its state."""
        super().open(context)
        assert context.backend is not None
        self.state = context.backend.get_state(ValueStateDescriptor("_reduce_state", None), internal=True)
        # updating with None clears: the next record would silently start over
        self.state.clear = self._refuse_none

    @staticmethod
    def _refuse_none() -> None:
        raise InvalidProgramError(
            "The reduce function returned None.", hint="Return the new value; perhaps a 'return' is missing."
        )

    def write(self, writer: LoopWriter, value: str) -> None:
        """Reads, reduces, stores and emits."""
        self.is_rich = True
        self.write_key(writer, value)
        result = writer.new_variable("v")
        read = writer.bind("read", self.state.value)
        store = writer.bind("store", self.state.update)
        reduce = writer.bind("reduce", self.call)
        writer.line(f"{result} = {read}()")
        call = f"{reduce}({result}, {value})"
        writer.line(f"{result} = {value} if {result} is None else {call}", element=value, function=self.call)
        writer.line(f"{store}({result})", element=value, function=self.call)
        writer.write_consumers(result)


class GroupedReduceOperator(ResultPerKeyOperator):
    """A reduce in a batch: one result per key, at the end of event time, as in Flink."""

    def __init__(self, function: Any):
        self._reduce = method_of(function, "reduce")
        self._reduce_all: Callable[[Any, Sequence[Any]], Any] | None = getattr(function, "reduce_all", None)
        super().__init__(function, is_rich=self._reduce is not function)

    def process_group(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Reduces records into what there is of their key."""
        if self._current is None and len(values) == 1:
            self._current = values[0]
            return
        if self._reduce_all is not None:
            self._current = self._reduce_all(self._current, values)
            return
        reduce, current = self._reduce, self._current
        for value in values:
            if current is None:
                current = value
            else:
                current = reduce(current, value)
                if current is None:
                    raise InvalidProgramError(
                        "The reduce function returned None.",
                        hint="Return the new value; perhaps a 'return' is missing.",
                    )
        self._current = current
