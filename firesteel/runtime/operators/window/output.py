"""Output buffer of window operators, which emits whole batches downstream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import FiresteelError
from firesteel.runtime.codegen.at_work import WINDOW_FUNCTION, handles_results_of
from firesteel.runtime.operators.base import OperatorContext
from firesteel.types.copying import copy_value

__all__ = ["WindowOutput"]

_FLUSH_SIZE = 4096


class WindowOutput:
    """Buffers main and side output of one operator until ``flush``, or until there is much of it."""

    __slots__ = ("_context", "_copies", "_sides", "_timestamps", "_values")

    def __init__(self, context: OperatorContext):
        self._context = context
        self._copies = context.copies_results
        self._values: list[Any] = []
        self._timestamps: list[int] = []
        self._sides: dict[OutputTag, tuple[list[Any], list[int]]] = {}

    @handles_results_of(WINDOW_FUNCTION)
    def collect(self, results: Iterable[Any] | None, timestamp: int) -> None:
        """Takes what a window function returned or yields; ``(tag, value)`` goes to the tag's side output."""
        if results is None:
            return
        if isinstance(results, (str, bytes)) or not hasattr(results, "__iter__"):
            raise FiresteelError(
                f"A window function must return an iterable or None, but it returned {_preview(results)}.",
                hint="Write 'yield result', or return a list with the result in it.",
            )
        values, timestamps = self._values, self._timestamps
        for result in results:
            if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
                self.collect_side(result[0], result[1], timestamp)
            else:
                values.append(copy_value(result) if self._copies else result)
                timestamps.append(timestamp)
                if len(values) >= _FLUSH_SIZE:
                    self.flush()
                    values, timestamps = self._values, self._timestamps

    def collect_side(self, tag: OutputTag, value: Any, timestamp: int) -> None:
        """Takes one record for a side output."""
        side = self._sides.get(tag)
        if side is None:
            side = self._sides[tag] = ([], [])
        side[0].append(value if self._context.reuses_objects else copy_value(value))
        side[1].append(timestamp)

    def flush(self) -> None:
        """Hands everything collected to the operators downstream."""
        if self._values:
            values, timestamps = self._values, self._timestamps
            self._values, self._timestamps = [], []
            self._context.emit(values, timestamps)
        if self._sides:
            sides, self._sides = self._sides, {}
            for tag, (values, timestamps) in sides.items():
                self._context.emit_side(tag, values, timestamps)


def _preview(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"
