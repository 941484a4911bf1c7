"""Wall clock time for a JobMaster that uses a monotonic clock."""

from __future__ import annotations

__all__ = ["WallClock"]


class WallClock:
    """Turns times of a JobMaster into those that people read.

    A JobMaster is given both clocks with each event. Its deadlines and delays go by the monotonic clock, which is never
    set; only what is shown and stored for people is wall-clock time. Without a wall clock both are the same.
    """

    def __init__(self) -> None:
        self._offset = 0

    def set(self, now: int, wall: int) -> None:
        """Both clocks in the same moment, in milliseconds."""
        self._offset = wall - now

    def at(self, now: int) -> int:
        """What the wall clock shows at a time of the monotonic one, unless it is set in between."""
        return now + self._offset
