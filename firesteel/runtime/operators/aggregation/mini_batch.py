"""Mini-batch aggregation: reads and writes the state of a key once per bundle instead of once per record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.runtime.operators.aggregation.bundles import BundleOperator, BundleSpec, Entry
from firesteel.runtime.operators.aggregation.function import neutral_function
from firesteel.runtime.operators.aggregation.global_aggregate import GroupedAggregateOperator
from firesteel.types.copying import copy_value

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
        self._backend = context.backend
        self._state = context.backend.get_state(ValueStateDescriptor(self.aggregation.state_name, None), internal=True)

    def write(self, writer: LoopWriter, value: str) -> None:
        """Adds the record to the bundle; its key is set when the bundle is flushed."""
        key = writer.new_variable("k")
        writer.line(f"{key} = {writer.call(self.context.key_selectors[0], value)}", element=value, what="key_by")
        self.write_bundle(writer, key, value)

    def emit_entries(self, entries: list[Entry], *, with_timestamps: bool) -> None:
        """Merges partial results into the state, and emits the results."""
        aggregation, backend, state = self.aggregation, self._backend, self._state
        get_result, copies = aggregation.get_result, self.context.copies_results
        results: list[Any] = []
        for key, partial, _ in entries:
            backend.key = key
            merged = state.value()
            merged = partial if merged is None else aggregation.merge_with(merged, partial)
            state.update(merged)
            result = merged if get_result is None else get_result(merged)
            results.append(copy_value(result) if copies else result)
        self.context.emit(results, [timestamp for _, _, timestamp in entries] if with_timestamps else None)
