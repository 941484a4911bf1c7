"""Helpers for futures: copies for clients, and completion without InvalidStateError."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from typing import TypeVar

__all__ = ["complete", "dependent", "fail"]

T = TypeVar("T")


def dependent(future: Future[T]) -> Future[T]:
    """A future with the same outcome, to be handed to a client.

    Cancelling or completing it has no effect on the given one:

    >>> own: Future[int] = Future()
    >>> given = dependent(own)
    >>> given.cancel(), own.cancelled()
    (True, False)
    """
    following: Future[T] = Future()

    def copy(done: Future[T]) -> None:
        if done.cancelled():
            following.cancel()
            return
        error = done.exception()
        if error is not None:
            fail(following, error)
        else:
            complete(following, done.result())

    future.add_done_callback(copy)
    return following


def complete(future: Future[T], result: T) -> bool:
    """Completes a future; False if it was complete or cancelled before."""
    try:
        future.set_result(result)
    except InvalidStateError:
        return False
    return True


def fail(future: Future[T], error: BaseException) -> bool:
    """Completes a future with an error; False if it was complete or cancelled before."""
    try:
        future.set_exception(error)
    except InvalidStateError:
        return False
    return True
