"""Window operator with an evictor, which removes elements of a window before or after its function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import is_
from typing import Any

from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.runtime.codegen.at_work import AGGREGATE, TRIGGER, handles_results_of
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.window.contexts import EvictorContext
from firesteel.runtime.operators.window.functions import aggregate_methods, reduce_callable
from firesteel.runtime.operators.window.operator import WindowOperator
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.runtime.operators.window.timestamped_value import TimestampedValue
from firesteel.types.copying import copy_all

__all__ = ["EvictingWindowOperator"]


class EvictingWindowOperator(WindowOperator):
    """Keeps all elements of a window with their timestamps; a reduce or aggregate runs over them at each firing."""

    def __init__(self, spec: WindowSpec):
        super().__init__(spec)
        self._evictor = spec.evictor
        self._holds_elements = True

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._evictor_context = EvictorContext(self._timers, context.runtime_context)

    def _add(self, value: Any, timestamp: int) -> None:
        self._contents.add(TimestampedValue(value, None if timestamp == MIN_TIMESTAMP else timestamp))

    @handles_results_of(TRIGGER)
    def _evaluate(self, result: Any, key: Any, window: Any) -> None:
        if result.is_fire():
            stored = [_timestamped(element) for element in self._contents.get() or ()]
            if stored:
                self._fire(stored, key, window, keeps=not result.is_purge())
        if result.is_purge():
            self._contents.clear()

    def _fire(self, stored: list[TimestampedValue], key: Any, window: Any, *, keeps: bool) -> None:
        elements = self._evict(self._evictor.evict_before, stored.copy(), window)
        values = [element.value for element in elements]
        if not self.context.reuses_objects:
            # the elements stay, and the function may change what it is given
            values = list(copy_all(values))
        results = self._function.process(key, window, self._aggregated(values))
        # all of them, before anything is evicted
        self._output.collect(results, window.max_timestamp())
        elements = self._evict(self._evictor.evict_after, elements, window)
        if keeps and not (len(elements) == len(stored) and all(map(is_, elements, stored))):
            self._contents.update(elements)

    def _evict(self, call: Callable[..., Any], elements: list[Any], window: Any) -> list[Any]:
        """What is left of the elements: those that the evictor returns or, if it returns None, has not removed."""
        kept = call(elements, len(elements), window, self._evictor_context)
        if kept is None:
            return elements
        if isinstance(kept, (str, bytes)) or not hasattr(kept, "__iter__"):
            raise FiresteelError(
                f"An evictor must return the elements to keep, or None, but it returned {kept!r}.",
                hint="Remove elements from the list, or return a list of those that stay.",
            )
        return list(kept)

    @handles_results_of(AGGREGATE)
    def _aggregated(self, values: Iterable[Any]) -> Any:
        """What the window function gets. As in Flink, a reduce of no elements is None."""
        spec = self.spec
        if spec.aggregation == "aggregate":
            create, add, get_result = aggregate_methods(spec.aggregate_function)
            accumulator = create()
            for value in values:
                accumulator = add(value, accumulator)
            return get_result(accumulator)
        if spec.aggregation is None:
            return values
        reduce, current, count = reduce_callable(spec.aggregate_function), None, 0
        for count, value in enumerate(values, 1):  # noqa: B007 - whether there were any
            current = value if current is None else reduce(current, value)
        if current is None and count > 1:
            raise InvalidProgramError(
                "The reduce function returned None.", hint="Return the new value; perhaps a 'return' is missing."
            )
        return current


def _timestamped(element: Any) -> TimestampedValue:
    """An element of the state; one from before the window got its evictor has no timestamp."""
    return element if element.__class__ is TimestampedValue else TimestampedValue(element)
