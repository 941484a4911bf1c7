"""Clocks that a test sets."""

from __future__ import annotations

from firesteel.process.concurrency import SystemConcurrency

__all__ = ["NoWallClock", "SettableClock"]


class SettableClock(SystemConcurrency):
    """Threads and clocks of this process, whose wall clock can be set."""

    def __init__(self) -> None:
        self.offset_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.offset_ms


class NoWallClock(SystemConcurrency):
    """Fails whoever reads the wall clock."""

    def wall_ms(self) -> int:
        raise AssertionError("The wall clock was read.")
