"""Waits until a condition is true, without a fixed delay."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["eventually"]

T = TypeVar("T")


def eventually(assertion: Callable[[], T], timeout: float = 60.0, interval: float = 0.01) -> T:
    """Calls an assertion again and again until it holds, and returns what it returned.

    It holds if it neither raises an AssertionError nor returns something false, like False or an empty list; None
    is what a function made of assertions returns. After ``timeout`` seconds the last AssertionError is raised; any
    other exception is raised at once.

    >>> answers = iter([False, True])
    >>> eventually(lambda: next(answers))
    True
    """
    deadline = time.monotonic() + timeout
    while True:
        failure: AssertionError | None = None
        try:
            result = assertion()
        except AssertionError as error:
            failure = error
        else:
            if result is None or result:
                return result
        if time.monotonic() >= deadline:
            break
        time.sleep(interval)
    waited = f"not so within {timeout:g} s"
    if failure is None:
        raise AssertionError(f"{waited}: {getattr(assertion, '__name__', assertion)} returned {result!r}")
    raise AssertionError(f"{waited}: {failure}") from failure
