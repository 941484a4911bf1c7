"""A future that anyone holding it can complete."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

__all__ = ["CompletableFuture"]


class CompletableFuture:
    """A future that can be completed explicitly; only the first completion counts.

    ``future`` is a ``concurrent.futures.Future`` to follow (a new one if left out), ``py_class`` a function
    that turns its result into the one handed out.
    """

    def __init__(self, future: Future[Any] | None = None, py_class: Callable[[Any], Any] | None = None):
        self._future: Future[Any] = Future() if future is None else future
        self._py_class = py_class

    @staticmethod
    def completed(value: Any) -> CompletableFuture:
        """A future that has this result already."""
        future = CompletableFuture()
        future.set_result(value)
        return future

    @staticmethod
    def failed(error: BaseException) -> CompletableFuture:
        """A future that has failed already."""
        future = CompletableFuture()
        future.set_exception(error)
        return future

    def set_result(self, value: Any) -> bool:
        """Completes the future; False if it was complete before."""
        try:
            self._future.set_result(value)
        except InvalidStateError:
            return False
        return True

    def set_exception(self, error: BaseException) -> bool:
        """Completes the future with an error; False if it was complete before."""
        try:
            self._future.set_exception(error)
        except InvalidStateError:
            return False
        return True

    def cancel(self) -> bool:
        """Cancels the future unless it is complete; True if it is now cancelled."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Whether the future was cancelled before it had a result."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether there is a result, an error or a cancellation."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the result and returns it, or raises the error; TimeoutError after that many seconds."""
        try:
            value = self._future.result(timeout)
        except FutureTimeoutError:
            if self._future.done():
                raise
            # before Python 3.11 this was another class than the builtin one
            raise TimeoutError(f"No result within {timeout:g} s") from None
        return value if self._py_class is None else self._py_class(value)

    def exception(self) -> BaseException | None:
        """The error the future ended with; None if it has none, or is not complete yet. Never waits."""
        if not self._future.done():
            return None
        if self._future.cancelled():
            return CancelledError()
        return self._future.exception()

    def add_done_callback(self, callback: Callable[[CompletableFuture], object]) -> None:
        """Calls back with this future once it is complete, at once if it is already."""
        self._future.add_done_callback(lambda _: callback(self))

    def then_apply(self, function: Callable[[Any], Any]) -> CompletableFuture:
        """A future of the function's result on this one's; an error or cancellation passes through."""
        following = CompletableFuture()

        def complete(_: CompletableFuture) -> None:
            try:
                following.set_result(function(self.result()))
            except CancelledError:
                following.cancel()
            except BaseException as error:  # noqa: BLE001 - any error belongs to the waiting caller
                following.set_exception(error)

        self.add_done_callback(complete)
        return following

    def __str__(self) -> str:
        if not self.done():
            state = "not completed"
        elif self.cancelled():
            state = "cancelled"
        else:
            error = self.exception()
            state = "completed normally" if error is None else f"completed exceptionally: {error!r}"
        return f"CompletableFuture[{state}]"

    __repr__ = __str__
