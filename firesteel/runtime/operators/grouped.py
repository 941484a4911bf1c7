"""Operators of a batch that are given all records of a key one after the other, key by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from firesteel.common.copying import copy_value
from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.elements import MAX_WATERMARK
from firesteel.runtime.operators import specs
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.factory import create_operator
from firesteel.runtime.operators.inline import InlineOperator, method_of
from firesteel.runtime.operators.window.aligned import alignment_of
from firesteel.runtime.operators.window.operator import WindowOperator
from firesteel.runtime.operators.window.sorted import SortedWindowOperator

__all__ = ["GroupedOperator", "GroupedReduceOperator", "create_batch_operator"]

_EMIT_AT = 4096


@runtime_checkable
class GroupedOperator(Protocol):
    """An operator that works on groups: records of the backend's current key, in the order of their timestamps."""

    def process_group(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Processes records of the current key: all that have timestamps at once; of the others perhaps only a part."""
        ...

    def end_groups(self) -> None:
        """For now there are no more: hands on what was collected."""
        ...


class GroupedReduceOperator(StreamOperator):
    """A reduce in a batch: one result per key, at the end of event time, as in Flink."""

    emits_own_records = True

    def __init__(self, function: Any):
        self.user_function = self._function = function
        self._reduce = method_of(function, "reduce")
        self._is_rich = self._reduce is not function
        self._reduce_all: Callable[[Any, Sequence[Any]], Any] | None = getattr(function, "reduce_all", None)

    def open(self, context: OperatorContext) -> None:
        """Opens the user function."""
        super().open(context)
        self._results: list[Any] = []
        self._current: Any = None
        if self._is_rich and hasattr(self._function, "open"):
            self._function.open(context.runtime_context)

    def close(self) -> None:
        """Closes the user function."""
        if self._is_rich and hasattr(self._function, "close"):
            self._function.close()

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Never called: records come in groups."""
        raise AssertionError("a reduce in a batch reads groups")

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

    def end_key(self) -> None:
        """Keeps the result of the current key."""
        if self._current is not None:
            self._results.append(copy_value(self._current) if self.context.copies_results else self._current)
            self._current = None
            if len(self._results) >= _EMIT_AT:
                self.end_groups()

    def end_groups(self) -> None:
        """Hands on the results there are."""
        if self._results:
            results, self._results = self._results, []
            self.context.emit(results, [MAX_WATERMARK] * len(results))


def create_batch_operator(spec: specs.OperatorSpec) -> InlineOperator | StreamOperator:
    """A new operator for one subtask of a batch."""
    if isinstance(spec, specs.ReduceSpec):
        return GroupedReduceOperator(spec.function)
    if isinstance(spec, specs.WindowSpec):
        if alignment_of(spec) is not None:
            return SortedWindowOperator(spec)
        operator = WindowOperator(spec)
        operator.user_function = spec.window_function
        return operator
    return create_operator(spec, 0)
