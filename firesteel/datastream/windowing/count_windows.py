"""Windows of ``count_window``: what functions see of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.common.windows import CountWindow
from firesteel.datastream.function_base import RuntimeContext
from firesteel.datastream.functions import ProcessWindowFunction, WindowFunction

__all__ = ["CountWindowFunction"]

_NUMBER = ValueStateDescriptor("_count_windows", None)


class CountWindowFunction(ProcessWindowFunction[Any, Any, Any, Any]):
    """Calls a window function with the ``CountWindow`` of the key, which the global window stands for.

    The number of windows of each key is in its state. Where no function looks at windows there is no such state.
    """

    def __init__(self, function: WindowFunction[Any, Any, Any, Any] | ProcessWindowFunction[Any, Any, Any, Any]):
        self._function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the function."""
        self._function.open(runtime_context)

    def close(self) -> None:
        """Closes the function."""
        self._function.close()

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any] | None:
        """Returns the results of the function for the next window of the key."""
        state = context.global_state().get_state(_NUMBER)
        number = state.value() or 0
        state.update(number + 1)
        if isinstance(self._function, WindowFunction):
            return self._function.apply(key, CountWindow(number), elements)
        return self._function.process(key, _CountWindowContext(context, CountWindow(number)), elements)

    def clear(self, context: Any) -> None:
        """Clears the state of the window."""
        if isinstance(self._function, ProcessWindowFunction):
            number = context.global_state().get_state(_NUMBER).value() or 0
            self._function.clear(_CountWindowContext(context, CountWindow(max(0, number - 1))))


class _CountWindowContext(ProcessWindowFunction.Context[CountWindow]):
    def __init__(self, context: Any, window: CountWindow):
        self._context = context
        self._window = window

    def window(self) -> CountWindow:
        return self._window

    def current_processing_time(self) -> int:
        return self._context.current_processing_time()  # type: ignore[no-any-return]

    def current_watermark(self) -> int:
        return self._context.current_watermark()  # type: ignore[no-any-return]

    def window_state(self) -> Any:
        return self._context.window_state()

    def global_state(self) -> Any:
        return self._context.global_state()
