"""Rate limiter of a source, divided over its readers."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from firesteel.common.errors import InvalidProgramError

__all__ = ["Clock", "NoOpRateLimiter", "PerSecondRateLimiter", "RateLimiter", "RateLimiterStrategy"]

Clock = Callable[[], float]

MIN_PAUSE_S = 0.001
"""Time between two batches: short enough for low latency, long enough that a high rate comes in batches."""

MAX_BURST_S = 0.1
"""How much of what was missed in a stall is made up for."""

ROUNDING = 1e-3
"""The part of a record that floating point may lack before the record is due."""


class RateLimiter(ABC):
    """Determines how many records one reader may emit now."""

    @abstractmethod
    def acquire(self, wanted: int) -> int:
        """Takes up to ``wanted`` permits that are there now; 0 when none is."""

    @abstractmethod
    def available_at(self) -> float:
        """The clock's time at which the next permit is there; past or present if it is there now."""


class NoOpRateLimiter(RateLimiter):
    """Always permits everything."""

    def acquire(self, wanted: int) -> int:
        """Grants all permits."""
        return wanted

    def available_at(self) -> float:
        """Always in the past."""
        return -math.inf


class PerSecondRateLimiter(RateLimiter):
    """Permits record k at k / rate seconds after the first, in batches at least a millisecond apart.

    What was missed in a stall is not made up for, unless ``catches_up``: where pauses are part of the plan.
    """

    def __init__(self, records_per_second: float, clock: Clock = time.monotonic, *, catches_up: bool = False) -> None:
        self._rate = records_per_second
        self._clock = clock
        self._max_due = math.inf if catches_up else max(1, math.floor(records_per_second * MAX_BURST_S))
        self._begin: float | None = None
        self._granted = 0
        self._available_at = -math.inf

    def acquire(self, wanted: int) -> int:
        """Takes permits for records that are due."""
        now = self._clock()
        if now < self._available_at:
            return 0
        if self._begin is None:
            self._begin = now
        due = math.floor((now - self._begin) * self._rate + ROUNDING) + 1 - self._granted
        if due > self._max_due:
            # After a stall the schedule moves on instead of catching up on all that was missed.
            self._begin += (due - self._max_due) / self._rate
            due = int(self._max_due)
        granted = min(wanted, max(due, 0))
        self._granted += granted
        if granted < due:
            self._available_at = now
        else:
            self._available_at = max(self._begin + self._granted / self._rate, now + MIN_PAUSE_S)
        return granted

    def available_at(self) -> float:
        """When the next record is due."""
        return self._available_at


@dataclass(frozen=True)
class RateLimiterStrategy:
    """Makes the rate limiter of each reader out of a rate for all together, None for no limit."""

    records_per_second: float | None = None

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        """Limits all readers together to this many records a second."""
        if not 0 < records_per_second < math.inf:
            raise InvalidProgramError(
                f"RateLimiterStrategy.per_second needs a positive number, not {records_per_second!r}.",
                hint="Use RateLimiterStrategy.no_op() for no limit.",
            )
        return RateLimiterStrategy(float(records_per_second))

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        """Does not limit."""
        return RateLimiterStrategy()

    def create_rate_limiter(
        self, parallelism: int, clock: Clock = time.monotonic, *, catches_up: bool = False
    ) -> RateLimiter:
        """The limiter of one of ``parallelism`` readers."""
        if self.records_per_second is None:
            return NoOpRateLimiter()
        return PerSecondRateLimiter(self.records_per_second / parallelism, clock, catches_up=catches_up)

    def __repr__(self) -> str:
        return "no limit" if self.records_per_second is None else f"{self.records_per_second:g}/s"
