"""Specification of a window operator, which selects one of the three implementations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.api.output_tag import OutputTag
from firesteel.runtime.codegen.at_work import AGGREGATE, TRIGGER, WINDOW_FUNCTION
from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.model.operator_spec import OperatorSpec, is_opened
from firesteel.runtime.operators.base import StreamOperator

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["WindowSpec"]


@dataclass(frozen=True)
class WindowSpec(OperatorSpec):
    """A window operator.

    ``aggregation`` is None (the window keeps its elements), ``"reduce"`` or ``"aggregate"`` with ``aggregate_function``
    a ReduceFunction/callable or an AggregateFunction. ``window_function`` is None (emit the aggregate itself) or a
    (All)WindowFunction / Process(All)WindowFunction. ``all_windows`` selects one of the two families. A window function
    that calls one of the user's has that as ``wrapped_function``, and the method that it calls as ``wrapped_call``.
    ``reads_partials`` is set if ``aggregate_function`` is a PartialAggregate.
    """

    assigner: Any
    trigger: Any
    aggregation: str | None = None
    aggregate_function: Any = None
    window_function: Any = None
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None
    all_windows: bool = False
    evictor: Any = None
    reads_partials: bool = False

    def create(self, runtime: OperatorRuntime) -> StreamOperator:
        """Returns the fastest operator that can run these windows."""
        # these modules use the spec
        from firesteel.runtime.operators.window.aligned import AlignedWindowOperator, alignment_of
        from firesteel.runtime.operators.window.evicting import EvictingWindowOperator
        from firesteel.runtime.operators.window.operator import WindowOperator
        from firesteel.runtime.operators.window.sorted import SortedWindowOperator

        operator: StreamOperator = WindowOperator(self) if self.evictor is None else EvictingWindowOperator(self)
        if alignment_of(self) is not None:
            if runtime.execution.one_key_at_a_time:
                return SortedWindowOperator(self)
            if runtime.keeps_objects:
                operator = AlignedWindowOperator(self)
        operator.user_function = self.user_function()
        return operator

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Returns the trigger, the aggregation and the window function."""
        functions = {TRIGGER: method_of(self.trigger, "on_element")}
        if self.window_function is not None:
            is_process = hasattr(self.window_function, "process")
            call = method_of(self.window_function, "process" if is_process else "apply")
            functions[WINDOW_FUNCTION] = getattr(self.window_function, "wrapped_call", call)
        if self.aggregate_function is not None:
            method = "reduce" if self.aggregation == "reduce" else "get_result"
            call = method_of(self.aggregate_function, method)
            functions[AGGREGATE] = self.aggregate_function.wrapped_call if self.reads_partials else call
        return functions

    def user_function(self) -> Any:
        return getattr(self.window_function, "wrapped_function", self.window_function)

    def without_user_functions(self) -> WindowSpec | None:
        """Returns the windows themselves if opening them calls no function of the user's."""
        return None if is_opened(self.window_function) else self
