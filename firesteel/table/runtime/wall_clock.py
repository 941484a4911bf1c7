"""The clock of streaming queries."""

from __future__ import annotations

import time

__all__ = ["wall_clock"]


def wall_clock() -> int:
    """The nanoseconds since 1970. It can be sent to slots, and has the clock of where it is called."""
    return time.time_ns()
