"""Global aggregation: merges the partial results of a key into its state, after the exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.model.operator_spec import FunctionSpec
from firesteel.runtime.operators.aggregation.function import Aggregation, neutral_function
from firesteel.runtime.operators.aggregation.keyed_results import KeyedResults
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.grouped import ResultPerKeyOperator
from firesteel.runtime.operators.inline import InlineOperator

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["GlobalAggregateOperator", "GlobalAggregateSpec", "GroupedAggregateOperator"]


@dataclass(frozen=True)
class GlobalAggregateSpec(FunctionSpec):
    """Merges pairs of a key and a partial result, on a stream keyed by their keys."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator | StreamOperator:
        """Returns a new operator for one subtask."""
        if runtime.execution.one_key_at_a_time:
            return GroupedAggregateOperator(self.function, reads_partials=True)
        return GlobalAggregateOperator(self.function)

    def without_user_functions(self) -> GlobalAggregateSpec:
        """Returns an aggregation with the same state."""
        return GlobalAggregateSpec(neutral_function(self.function))


class GlobalAggregateOperator(InlineOperator):
    """Emits the result so far with each partial result."""

    is_one_to_one = True

    def __init__(self, function: Any):
        self.aggregation = Aggregation(function)
        self.method = "reduce" if self.aggregation.is_reduce else "merge"
        super().__init__(function)

    def open(self, context: OperatorContext) -> None:
        """Opens the function and its state."""
        super().open(context)
        assert context.backend is not None
        self._results = KeyedResults(self.aggregation, context.backend)

    def write(self, writer: LoopWriter, value: str) -> None:
        """Reads, merges, stores and emits."""
        key, result = writer.new_variable("k"), writer.new_variable("v")
        selected = writer.call(self.context.key_selectors[0], value)
        backend = writer.bind("backend", self.context.backend)
        writer.line(f"{backend}.key = {key} = {selected}", element=value, what="key_by")
        merged = self._results.write_merge(writer, key, value)
        get_result = self.aggregation.get_result
        if get_result is None:
            writer.line(f"{result} = {merged}")
        else:
            writer.line(f"{result} = {writer.bind('result', get_result)}({merged})", element=value, function=get_result)
        writer.write_consumers(result)


class GroupedAggregateOperator(ResultPerKeyOperator):
    """The aggregation of a batch: one result per key, at the end of event time.

    Its input has partial results, or the records themselves.
    """

    def __init__(self, function: Any, *, reads_partials: bool):
        self._aggregation = Aggregation(function)
        self._reads_partials = reads_partials
        self.get_result = self._aggregation.get_result
        super().__init__(function, is_rich=self._aggregation.add is not function)

    def process_group(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Aggregates records of the current key."""
        aggregation, current = self._aggregation, self._current
        if self._reads_partials:
            for _, value in values:
                current = value if current is None else aggregation.merge_with(current, value)
        else:
            for value in values:
                current = aggregation.first_of(value) if current is None else aggregation.add_to(current, value)
        self._current = current
