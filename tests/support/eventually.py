"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["eventually"]

T = TypeVar("T")


def eventually(condition: Callable[[], T], what: str, deadline_s: float = 60.0) -> T:
    """Asks until the answer is true and returns it; fails when the deadline has passed."""
    end = time.monotonic() + deadline_s
    pause = 0.001
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= end:
            raise AssertionError(f"not within {deadline_s:g} s: {what}; last answer: {answer!r}")
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
