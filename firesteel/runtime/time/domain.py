"""Time domains of timers: event time and processing time."""

from __future__ import annotations

from enum import Enum

__all__ = ["TimeDomain"]


class TimeDomain(Enum):
    """Whether a timer goes by watermarks or by the wall clock."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1
