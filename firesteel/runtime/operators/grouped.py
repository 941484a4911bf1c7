"""Operators of batch execution that read all records of one key after those of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.types.copying import copy_value

__all__ = ["GroupedOperator", "ResultPerKeyOperator"]

_EMIT_THRESHOLD = 4096


@runtime_checkable
class GroupedOperator(Protocol):
    """An operator that works on groups: records of the backend's current key, in the order of their timestamps."""

    def process_group(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Processes records of the current key: all that have timestamps at once; of the others perhaps only a part."""
        ...

    def end_groups(self) -> None:
        """There are no more for now: emits what was collected."""
        ...


class ResultPerKeyOperator(StreamOperator):
    """Emits one result per key, at the end of event time. ``process_group`` keeps what there is of a key so far."""

    emits_own_records = True
    get_result: Callable[[Any], Any] | None = None
    """Makes the result of what is kept of a key, unless that is the result."""

    def __init__(self, function: Any, *, is_rich: bool):
        self.user_function = self._function = function
        self._is_rich = is_rich

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._results: list[Any] = []
        self._current: Any = None
        if self._is_rich and hasattr(self._function, "open"):
            self._function.open(context.runtime_context)

    def close(self) -> None:
        if self._is_rich and hasattr(self._function, "close"):
            self._function.close()

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Never called: records come in groups."""
        raise AssertionError("an aggregation in a batch reads groups")

    def end_key(self) -> None:
        """Keeps the result of the current key."""
        current, self._current = self._current, None
        if current is None:
            return
        result = current if self.get_result is None else self.get_result(current)
        self._results.append(copy_value(result) if self.context.copies_results else result)
        if len(self._results) >= _EMIT_THRESHOLD:
            self.end_groups()

    def end_groups(self) -> None:
        """Emits the collected results."""
        if self._results:
            results, self._results = self._results, []
            self.context.emit(results, [MAX_WATERMARK] * len(results))
