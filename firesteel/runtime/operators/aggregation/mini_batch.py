"""Mini-batch aggregation: reads and writes the state of a key once per bundle instead of once per record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firesteel.runtime.operators.aggregation.bundles import BundleOperator, BundleSpec, Pair
from firesteel.runtime.operators.aggregation.function import neutral_function
from firesteel.runtime.operators.aggregation.global_aggregate import GroupedAggregateOperator
from firesteel.runtime.operators.aggregation.keyed_results import KeyedResults
from firesteel.types.copying import copy_all

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import OperatorRuntime
    from firesteel.runtime.operators.base import OperatorContext, StreamOperator

__all__ = ["MiniBatchAggregateOperator", "MiniBatchAggregateSpec"]


@dataclass(frozen=True)
class MiniBatchAggregateSpec(BundleSpec):
    """Emits the result so far of each key of a bundle."""

    def create(self, runtime: OperatorRuntime) -> BundleOperator | StreamOperator:
        """Returns a new operator for one subtask."""
        if runtime.execution.one_key_at_a_time:
            return GroupedAggregateOperator(self.function, reads_partials=False)
        return MiniBatchAggregateOperator(self)

    def without_user_functions(self) -> MiniBatchAggregateSpec:
        """Returns an aggregation with the same state."""
        return replace(self, function=neutral_function(self.function))


class MiniBatchAggregateOperator(BundleOperator):
    """Aggregates the records of a bundle by key, and then merges each partial result into the state of its key."""

    def open(self, context: OperatorContext) -> None:
        """Opens the function and its state."""
        super().open(context)
        assert context.backend is not None
        self._results = KeyedResults(self.aggregation, context.backend)

    def write(self, writer: LoopWriter, value: str) -> None:
        """Adds the record to the bundle; its key is set when the bundle is flushed."""
        key = writer.new_variable("k")
        writer.line(f"{key} = {writer.call(self.context.key_selectors[0], value)}", element=value, what="key_by")
        self.write_bundle(writer, key, value)

    def emit_partials(self, pairs: list[Pair], timestamps: list[int] | None) -> None:
        """Merges partial results into the state, and emits the results."""
        results = self._results.merge_all(pairs)
        get_result = self.aggregation.get_result
        if get_result is not None:
            results = [get_result(merged) for merged in results]
        self.context.emit(list(copy_all(results)) if self.context.copies_results else results, timestamps)
