"""Clock for idleness detection: the time during which a task could read its input."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["InputClock"]


class InputClock:
    """Milliseconds in which a task was free to read its input.

    It stands still while the task is backpressured: a lack of records then does not indicate an idle input.
    (In Flink that is a PausableRelativeClock.)
    """

    __slots__ = ("_clock", "_lost", "_stopped_at", "stalls")

    def __init__(self, clock: Callable[[], int]):
        self._clock = clock
        self._lost = 0
        self._stopped_at: int | None = None
        self.stalls = 0
        """How often something kept the thread, which all tasks of the slot share, for a long time."""

    def __call__(self) -> int:
        return (self._clock() if self._stopped_at is None else self._stopped_at) - self._lost

    def stop(self) -> None:
        """There is input that the task cannot read now."""
        if self._stopped_at is None:
            self._stopped_at = self._clock()

    def go_on(self) -> None:
        """The task reads its input."""
        if self._stopped_at is not None:
            self._lost += self._clock() - self._stopped_at
            self._stopped_at = None
