"""Retry strategies of async functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from firesteel.datastream.async_io.async_functions import AsyncRetryPredicate, AsyncRetryStrategy

__all__ = [
    "ExponentialBackoffDelayRetryStrategy",
    "FixedDelayRetryStrategy",
    "NoRetryStrategy",
    "RetryPredicate",
]

OUT = TypeVar("OUT")


class RetryPredicate(AsyncRetryPredicate[OUT], Generic[OUT]):
    """Conditions given as functions."""

    def __init__(
        self,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ):
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """The condition on a result."""
        return self._result_predicate

    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """The condition on an exception."""
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """No retries."""

    def can_retry(self, current_attempts: int) -> bool:
        """Never."""
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """No delay: -1."""
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """No conditions."""
        return RetryPredicate(None, None)

    def __eq__(self, other: object) -> bool:
        # it may have been pickled
        return isinstance(other, NoRetryStrategy)

    def __hash__(self) -> int:
        return hash(NoRetryStrategy)


class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Up to ``max_attempts`` retries, with the same delay before each."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ):
        _check_positive(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        self._max_attempts = max_attempts
        self._backoff_time_millis = backoff_time_millis
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def can_retry(self, current_attempts: int) -> bool:
        """Whether there are retries left after so many calls."""
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The delay, always the same."""
        return self._backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """The conditions of the constructor."""
        return RetryPredicate(self._result_predicate, self._exception_predicate)


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Up to ``max_attempts`` retries, with a delay that is multiplied after each.

    In PyFlink the calls of all records share the last delay, so that they change each other's. Here each record has
    the delays that PyFlink has for a single one.
    """

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ):
        _check_positive(
            max_attempts=max_attempts,
            initial_delay=initial_delay,
            max_retry_delay=max_retry_delay,
            multiplier=multiplier,
        )
        self._max_attempts = max_attempts
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate
        self._delays = [initial_delay]

    def can_retry(self, current_attempts: int) -> bool:
        """Whether there are retries left after so many calls."""
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The delay after so many calls."""
        delays = self._delays
        while len(delays) < current_attempts:
            delays.append(int(min(delays[-1] * self._multiplier, self._max_retry_delay)))
        return delays[max(current_attempts, 1) - 1]

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """The conditions of the constructor."""
        return RetryPredicate(self._result_predicate, self._exception_predicate)


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        assert value > 0, f"{name} should be greater than zero."


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()
