"""Harnesses for functions on a stream that is connected with a broadcast stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.api.state import MapStateDescriptor
from firesteel.datastream.broadcast_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from firesteel.datastream.functions import KeySelector
from firesteel.runtime.operators.broadcast import BroadcastOperator, BroadcastProcessSpec, KeyedBroadcastProcessSpec
from firesteel.testing.clock import FakeClock
from firesteel.testing.harness import TwoInputHarness

__all__ = ["BroadcastHarness", "BroadcastProcessFunctionHarness", "KeyedBroadcastProcessFunctionHarness"]


class BroadcastHarness(TwoInputHarness):
    """A harness for an operator whose second input is a broadcast stream."""

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """Processes a record of the stream itself; ``At(value, timestamp)`` will do as well."""
        self.process_element1(value, timestamp)

    def process_broadcast_element(self, value: Any, timestamp: int | None = None) -> None:
        """Processes a record of the broadcast stream."""
        self.process_element2(value, timestamp)

    def broadcast_state(self, state_descriptor: MapStateDescriptor) -> dict[Any, Any]:
        """What a broadcast state holds."""
        self.open()
        operator = self._chained.operator
        assert isinstance(operator, BroadcastOperator)
        return dict(operator.broadcast_context.get_broadcast_state(state_descriptor).items())


class BroadcastProcessFunctionHarness(BroadcastHarness):
    """Runs a BroadcastProcessFunction alone, with the broadcast states of the descriptors.

    >>> LIMIT = MapStateDescriptor("limit")
    >>> class Below(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value < (ctx.get_broadcast_state(LIMIT).get("limit") or 0):
    ...             yield value
    ...
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(LIMIT).put("limit", value)
    >>> harness = BroadcastProcessFunctionHarness(Below(), LIMIT)
    >>> harness.process_element(1)
    >>> harness.process_broadcast_element(10)
    >>> harness.process_element(2)
    >>> harness.output, harness.broadcast_state(LIMIT)
    ([2], {'limit': 10})
    """

    def __init__(
        self,
        function: BroadcastProcessFunction[Any, Any, Any],
        *state_descriptors: MapStateDescriptor,
        clock: FakeClock | None = None,
        **options: Any,
    ):
        if not isinstance(function, BroadcastProcessFunction):
            raise TypeError(f"A BroadcastProcessFunction is needed, got {function!r}.")
        spec = BroadcastProcessSpec(function, state_descriptors)
        super().__init__(spec, clock=clock, name=type(function).__name__, **options)


class KeyedBroadcastProcessFunctionHarness(BroadcastHarness):
    """Runs a KeyedBroadcastProcessFunction alone, with keyed state and timers as well."""

    def __init__(
        self,
        function: KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        key_selector: Callable[[Any], Any] | KeySelector,
        *state_descriptors: MapStateDescriptor,
        clock: FakeClock | None = None,
        **options: Any,
    ):
        if not isinstance(function, KeyedBroadcastProcessFunction):
            raise TypeError(f"A KeyedBroadcastProcessFunction is needed, got {function!r}.")
        spec = KeyedBroadcastProcessSpec(function, state_descriptors)
        super().__init__(spec, (key_selector, None), clock=clock, name=type(function).__name__, **options)
