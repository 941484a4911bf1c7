"""Local aggregation: one partial result per key and bundle, before the exchange."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.operators.aggregation.bundles import BundleOperator, BundleSpec, Pair
from firesteel.runtime.operators.aggregation.function import neutral_function
from firesteel.types.copying import copy_value

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import OperatorRuntime
    from firesteel.runtime.operators.base import OperatorContext

__all__ = ["LocalAggregateOperator", "LocalAggregateSpec"]


@dataclass(frozen=True)
class LocalAggregateSpec(BundleSpec):
    """Emits pairs of a key and a partial result for a GlobalAggregateSpec with the same function.

    The input has records or, without a key selector, the triples of a SaltSpec.
    """

    key_selector: Any

    def create(self, runtime: OperatorRuntime) -> LocalAggregateOperator:
        """Returns a new operator for one subtask."""
        return LocalAggregateOperator(self)

    def without_user_functions(self) -> LocalAggregateSpec:
        """Returns an aggregation that can be opened anywhere."""
        return replace(self, function=neutral_function(self.function), key_selector=None)


class LocalAggregateOperator(BundleOperator):
    """Aggregates the records of this subtask by key. It has no keyed state: the stream is not partitioned yet."""

    def __init__(self, spec: LocalAggregateSpec):
        super().__init__(spec)
        self._key_selector = spec.key_selector
        self._select = None if spec.key_selector is None else method_of(spec.key_selector, "get_key")

    def open(self, context: OperatorContext) -> None:
        """Opens the function and the key selector."""
        super().open(context)
        if self._select is not self._key_selector and hasattr(self._key_selector, "open"):
            self._key_selector.open(context.runtime_context)

    def close(self) -> None:
        """Closes the function and the key selector."""
        try:
            super().close()
        finally:
            if self._select is not self._key_selector and hasattr(self._key_selector, "close"):
                self._key_selector.close()

    def write(self, writer: LoopWriter, value: str) -> None:
        """Adds the record to the bundle."""
        key = writer.new_variable("k")
        if self._select is not None:
            writer.line(f"{key} = {writer.call(self._select, value)}", element=value, what="key_by")
            self.write_bundle(writer, key, value)
            return
        record = writer.new_variable("v")
        writer.line(f"{key}, _, {record} = {value}")
        self.write_bundle(writer, key, record)

    def emit_partials(self, pairs: list[Pair], timestamps: list[int] | None) -> None:
        """Emits pairs of key and partial result."""
        if self.context.copies_results:
            pairs = [(key, copy_value(partial)) for key, partial in pairs]
        self.context.emit(pairs, timestamps)
