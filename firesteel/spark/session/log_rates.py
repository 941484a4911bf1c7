"""Rate limits of log records."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["LogRate"]

BURST_S = 5
"""A burst may be as much as this many seconds of the rate."""


class LogRate:
    """Admits so many records per second, and counts those that it does not. 0 admits all."""

    def __init__(self, per_second: int, monotonic: Callable[[], float]):
        self._per_second = per_second
        self._monotonic = monotonic
        self._tokens = float(per_second * BURST_S)
        self._filled_at = monotonic()
        self._refused = 0

    def admit(self) -> bool:
        if not self._per_second:
            return True
        # once records are refused, a whole second's worth has to be there: otherwise every other one would be
        needed = self._per_second if self._refused else 1
        if self._tokens < needed:
            now = self._monotonic()
            gained = (now - self._filled_at) * self._per_second
            self._tokens = min(self._per_second * BURST_S, self._tokens + gained)
            self._filled_at = now
            if self._tokens < needed:
                self._refused += 1
                return False
        self._tokens -= 1
        return True

    def take_refused(self) -> int:
        """How many records were refused since the last call."""
        refused, self._refused = self._refused, 0
        return refused
