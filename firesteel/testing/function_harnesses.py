"""Harnesses for user functions, and for any operator of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.time import Time
from firesteel.datastream.async_io.async_retry_strategies import NO_RETRY_STRATEGY
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.functions import (
    AsyncFunction,
    AsyncRetryStrategy,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    ProcessFunction,
)
from firesteel.graph.transformation import (
    OneInputTransformation,
    SideOutputTransformation,
    TwoInputTransformation,
)
from firesteel.runtime.operators.async_wait.operator import AsyncWaitSpec
from firesteel.runtime.operators.co import CoProcessSpec
from firesteel.runtime.operators.inline import ProcessSpec
from firesteel.testing.broadcast_harness import BroadcastHarness
from firesteel.testing.clock import FakeClock
from firesteel.testing.harness import OneInputHarness, OperatorHarness, TwoInputHarness

__all__ = [
    "AsyncFunctionHarness",
    "CoProcessFunctionHarness",
    "KeyedCoProcessFunctionHarness",
    "KeyedProcessFunctionHarness",
    "ProcessFunctionHarness",
    "harness_for",
]

Selector = Callable[[Any], Any] | KeySelector


class ProcessFunctionHarness(OneInputHarness):
    """Runs a ProcessFunction alone.

    >>> class Double(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield value * 2
    >>> harness = ProcessFunctionHarness(Double())
    >>> harness.process_element(21)
    >>> harness.output
    [42]
    """

    def __init__(self, function: ProcessFunction, *, clock: FakeClock | None = None, **options: Any):
        _check(function, ProcessFunction)
        super().__init__(ProcessSpec(function), clock=clock, name=type(function).__name__, **options)


class KeyedProcessFunctionHarness(OneInputHarness):
    """Runs a KeyedProcessFunction alone, with keyed state and timers."""

    def __init__(
        self,
        function: KeyedProcessFunction,
        key_selector: Selector,
        *,
        clock: FakeClock | None = None,
        **options: Any,
    ):
        _check(function, KeyedProcessFunction)
        name = type(function).__name__
        super().__init__(ProcessSpec(function), (key_selector,), clock=clock, name=name, **options)


class AsyncFunctionHarness(OneInputHarness):
    """Runs an AsyncFunction alone, on an event loop whose time is that of the clock.

    Timeouts, retries and ``asyncio.sleep`` take no real time: ``advance`` moves the clock. A function that reads from
    a socket cannot run here.

    >>> import asyncio
    >>> class Slow(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         await asyncio.sleep(value)
    ...         return [value]
    >>> with AsyncFunctionHarness(Slow(), is_ordered=False) as harness:
    ...     harness.process_elements([3, 1, 2])
    ...     harness.advance(2500)
    ...     harness.output
    [1, 2]
    """

    def __init__(
        self,
        function: AsyncFunction[Any, Any],
        *,
        timeout: Time | None = None,
        capacity: int = 100,
        retry_strategy: AsyncRetryStrategy[Any] = NO_RETRY_STRATEGY,
        is_ordered: bool = True,
        clock: FakeClock | None = None,
        **options: Any,
    ):
        _check(function, AsyncFunction)
        timeout_ms = 0 if timeout is None else timeout.to_milliseconds()
        spec = AsyncWaitSpec(function, timeout_ms, capacity, retry_strategy, is_ordered)
        super().__init__(spec, clock=clock, name=type(function).__name__, **options)


class CoProcessFunctionHarness(TwoInputHarness):
    """Runs a CoProcessFunction alone."""

    def __init__(self, function: CoProcessFunction, *, clock: FakeClock | None = None, **options: Any):
        _check(function, CoProcessFunction)
        super().__init__(CoProcessSpec(function), clock=clock, name=type(function).__name__, **options)


class KeyedCoProcessFunctionHarness(TwoInputHarness):
    """Runs a KeyedCoProcessFunction alone, with keyed state and timers that both inputs share."""

    def __init__(
        self,
        function: KeyedCoProcessFunction,
        key_selector1: Selector,
        key_selector2: Selector,
        *,
        clock: FakeClock | None = None,
        **options: Any,
    ):
        _check(function, KeyedCoProcessFunction)
        selectors = (key_selector1, key_selector2)
        super().__init__(CoProcessSpec(function), selectors, clock=clock, name=type(function).__name__, **options)


def harness_for(stream: DataStream, *, clock: FakeClock | None = None, **options: Any) -> Any:
    """A harness for the operator that makes a stream, taken from a program as it is written.

    Any operator will do: a window, a reduce, a map. The result is a :class:`OneInputHarness`, or for connected
    streams a :class:`TwoInputHarness`, if one is a broadcast stream a :class:`BroadcastHarness`. What is before the
    operator in the program does not run.

    >>> from firesteel.testing.environment import test_environment
    >>> words = test_environment().from_collection([])
    >>> harness = harness_for(words.key_by(lambda word: word).reduce(lambda a, b: a + b))
    >>> harness.process_elements(["a", "b", "a"])
    >>> harness.output
    ['a', 'b', 'aa']
    """
    transformation = stream._transformation
    if isinstance(transformation, SideOutputTransformation):
        raise TypeError(
            "A side output is not an operator: make a harness for the stream it comes from, and ask that for "
            "side_output(tag)."
        )
    if not isinstance(transformation, (OneInputTransformation, TwoInputTransformation)):
        raise TypeError(f"'{transformation.name}' is not an operator with an input: there is nothing to feed.")
    selectors = transformation.state_key_selectors
    harness: type[OperatorHarness] = OneInputHarness
    if isinstance(transformation, TwoInputTransformation):
        harness = BroadcastHarness if transformation.spec.has_broadcast_side else TwoInputHarness
    return harness(
        transformation.spec,
        selectors,
        clock=clock,
        name=transformation.name,
        output_type=transformation.output_type,
        **options,
    )


def _check(function: Any, expected: type[Any]) -> None:
    if not isinstance(function, expected):
        raise TypeError(f"A {expected.__name__} is needed, got {function!r}.")
