"""The functions of async I/O, and when they are called again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.api.generics import Generic, IN_contra, OUT_co
from firesteel.datastream.function_base import Function

if TYPE_CHECKING:
    from firesteel.common.time import Time

__all__ = ["AsyncFunction", "AsyncFunctionDescriptor", "AsyncRetryPredicate", "AsyncRetryStrategy"]

OUT = TypeVar("OUT")


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Decides by the outcome of a call whether to call again."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """The condition on a result under which the function is called again, if any."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """The condition on an exception under which the function is called again, if any."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Decides how often, and after which delay, a function is called again for a record."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether to call again after so many calls."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The delay before the next call, in milliseconds."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """The conditions under which the function is called again."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """No retries."""
        from firesteel.datastream.async_io.async_retry_strategies import NO_RETRY_STRATEGY

        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[OUT]:
        """Up to ``max_attempts`` retries, with the same delay before each."""
        from firesteel.datastream.async_io.async_retry_strategies import FixedDelayRetryStrategy

        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[OUT]:
        """Up to ``max_attempts`` retries, with a delay that grows with each."""
        from firesteel.datastream.async_io.async_retry_strategies import ExponentialBackoffDelayRetryStrategy

        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class AsyncFunction(Function, Generic[IN_contra, OUT_co]):
    """A function that waits for something outside, such as the answer of a service, without blocking its task.

    ``async_invoke`` and ``timeout`` run on an event loop that all async functions of a slot share. ``open`` and
    ``close`` run in the thread of the task, as in PyFlink. Declared as ``async def``, which PyFlink does not have, they
    run on the loop.
    """

    @abstractmethod
    async def async_invoke(self, value: IN_contra) -> Iterable[OUT_co]:
        """Returns the results for one record. An exception fails the job unless the call is retried."""

    def timeout(self, value: IN_contra) -> Iterable[OUT_co]:
        """Returns the results for a record whose call, with all retries, has taken too long; by default it raises."""
        raise TimeoutError(f"Async function call has timed out for input: {value}")


class AsyncFunctionDescriptor:
    """An async function with its settings."""

    class OutputMode(Enum):
        """The order of the results."""

        ORDERED = 0
        UNORDERED = 1

    def __init__(
        self,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        capacity: int,
        async_retry_strategy: AsyncRetryStrategy[Any],
        output_mode: OutputMode,
    ):
        self.async_function = async_function
        self.timeout = timeout
        self.capacity = capacity
        self.async_retry_strategy = async_retry_strategy
        self.output_mode = output_mode
