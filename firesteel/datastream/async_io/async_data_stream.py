"""AsyncDataStream: applies async functions to streams."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Time
from firesteel.datastream.async_io.async_functions import AsyncFunction, AsyncRetryStrategy
from firesteel.datastream.async_io.async_retry_strategies import NO_RETRY_STRATEGY
from firesteel.datastream.data_stream import DataStream
from firesteel.runtime.operators.async_wait.operator import AsyncWaitSpec

__all__ = ["AsyncDataStream"]

T = TypeVar("T")
R = TypeVar("R")

_NAME = "async wait operator"


class AsyncDataStream:
    """Applies an :class:`AsyncFunction` to a stream, with many calls under way at a time.

    ``timeout`` is the time that a call may take with all its retries; zero or less is no limit. ``capacity`` is the
    number of records that can be in flight in a subtask, those included whose results wait for others to be emitted.
    If it is reached, the subtask reads no further input.
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R],
        timeout: Time,
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream[R]:
        """Emits results as they come. Watermarks keep their place: no result overtakes one."""
        return AsyncDataStream.unordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R],
        timeout: Time,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream[R]:
        """As :meth:`unordered_wait`; calls are repeated as the strategy says."""
        return _add(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, is_ordered=False)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R],
        timeout: Time,
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream[R]:
        """Emits results in the order of the records."""
        return AsyncDataStream.ordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R],
        timeout: Time,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: Any = None,
    ) -> DataStream[R]:
        """As :meth:`ordered_wait`; calls are repeated as the strategy says."""
        return _add(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, is_ordered=True)


def _add(
    data_stream: DataStream[T],
    function: AsyncFunction[T, R],
    timeout: Time,
    strategy: AsyncRetryStrategy[Any],
    capacity: int,
    output_type: Any,
    *,
    is_ordered: bool,
) -> DataStream[R]:
    _check(data_stream, function, timeout, strategy, capacity)
    spec = AsyncWaitSpec(function, max(timeout.to_milliseconds(), 0), capacity, strategy, is_ordered)
    return data_stream._transform(_NAME, spec, output_type)


def _check(stream: Any, function: Any, timeout: Any, strategy: Any, capacity: Any) -> None:
    if not isinstance(stream, DataStream):
        raise TypeError(f"AsyncDataStream needs a DataStream, got a {type(stream).__name__}.")
    if isinstance(function, type):
        raise TypeError(
            f"AsyncDataStream needs an object, got the class {function.__name__}: write {function.__name__}()."
        )
    if not isinstance(function, AsyncFunction):
        raise TypeError(f"AsyncDataStream needs an AsyncFunction, got a {type(function).__name__}.")
    if not inspect.iscoroutinefunction(function.async_invoke):
        raise InvalidProgramError(
            f"Method 'async_invoke' of class '{type(function).__name__}' should be declared as 'async def'."
        )
    if not isinstance(timeout, Time):
        raise TypeError(f"The timeout of an async function is a Time, got a {type(timeout).__name__}: Time.seconds(5).")
    if strategy is None:
        raise InvalidProgramError("Async retry strategy should not be None.")
    if strategy != NO_RETRY_STRATEGY and timeout.to_milliseconds() <= 0:
        raise InvalidProgramError("Timeout should be configured when do async with retry.")
    if strategy.get_retry_predicate() is None:
        raise InvalidProgramError(f"Retry predicate of the async retry strategy '{type(strategy).__name__}' is None.")
    if not isinstance(capacity, int) or capacity <= 0:
        raise InvalidProgramError(f"The capacity of an async function must be a positive int, got {capacity!r}.")
