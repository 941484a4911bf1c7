"""Window functions: one call interface for every combination of aggregation and window function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.api.pickled_key import plain_key
from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.operators.window.contexts import ProcessWindowContext
from firesteel.runtime.operators.window.spec import WindowSpec

__all__ = ["InternalWindowFunction", "aggregate_methods", "check_spec", "reduce_callable"]

Results = Iterable[Any] | None


class InternalWindowFunction:
    """Evaluates the contents of a window with any kind of window function.

    ``process(key, window, contents)`` gives the results. Contents are a list of elements, or one aggregate.
    """

    __slots__ = ("_context", "_function", "process")

    def __init__(self, spec: WindowSpec, context: ProcessWindowContext):
        self._function = spec.window_function
        self._context = context
        self.process: Callable[[Any, Any, Any], Results] = self._make_process(spec)

    def open(self, runtime_context: Any) -> None:
        if hasattr(self._function, "open"):
            self._function.open(runtime_context)

    def close(self) -> None:
        if hasattr(self._function, "close"):
            self._function.close()

    @property
    def clears(self) -> bool:
        """Whether the user's function is called when a window is cleared."""
        return hasattr(self._function, "process") and hasattr(self._function, "clear")

    def clear(self, window: Any) -> None:
        """Lets a process window function delete its per-window state."""
        if self.clears:
            self._context.current_window = window
            self._function.clear(self._context)

    def _make_process(self, spec: WindowSpec) -> Callable[[Any, Any, Any], Results]:
        if self._function is None:
            return lambda _key, _window, contents: (contents,)
        single = spec.aggregation is not None
        context = self._context
        if hasattr(self._function, "process"):
            process = self._function.process

            def process_keyed(key: Any, window: Any, contents: Any) -> Results:
                context.current_window = window
                results: Results = process(plain_key(key), context, [contents] if single else contents)
                return results

            def process_all(_key: Any, window: Any, contents: Any) -> Results:
                context.current_window = window
                results: Results = process(context, [contents] if single else contents)
                return results

            return process_all if spec.all_windows else process_keyed
        apply = self._function.apply
        if spec.all_windows:
            return lambda _key, window, contents: apply(window, [contents] if single else contents)
        return lambda key, window, contents: apply(plain_key(key), window, [contents] if single else contents)


def check_spec(spec: WindowSpec) -> None:
    """Refuses what no window operator can run."""
    if spec.aggregation not in (None, "reduce", "aggregate"):
        raise InvalidProgramError(f"Unknown window aggregation {spec.aggregation!r}.")
    if spec.aggregation is None and spec.window_function is None:
        raise InvalidProgramError(
            "A window needs something to compute.", hint="Call reduce, aggregate, apply or process on it."
        )
    if spec.allowed_lateness < 0:
        raise InvalidProgramError(f"The allowed lateness must not be negative, but is {spec.allowed_lateness} ms.")
    function = spec.window_function
    if function is not None and not hasattr(function, "process") and not hasattr(function, "apply"):
        raise InvalidProgramError(
            f"{type(function).__name__} is not a window function.",
            hint="Pass a (All)WindowFunction or a Process(All)WindowFunction.",
        )
    if hasattr(spec.assigner, "merge_windows") and not spec.trigger.can_merge():
        raise InvalidProgramError(
            f"{type(spec.trigger).__name__} cannot merge, but {type(spec.assigner).__name__} merges windows.",
            hint="Implement can_merge and on_merge in the trigger.",
        )


def reduce_callable(function: Any) -> Callable[[Any, Any], Any]:
    """The reduce method of a ReduceFunction, or the callable itself."""
    method: Callable[[Any, Any], Any] = getattr(function, "reduce", function)
    return method


def aggregate_methods(
    function: Any,
) -> tuple[Callable[[], Any], Callable[[Any, Any], Any], Callable[[Any], Any]]:
    """``create_accumulator``, ``add`` and ``get_result`` of an AggregateFunction."""
    return function.create_accumulator, function.add, function.get_result
