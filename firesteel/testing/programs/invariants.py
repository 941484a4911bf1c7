"""What must hold while a job runs, whatever its results are."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from firesteel.runtime.time.timers import TimerQueue

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["MAX_DELETED_TIMERS", "TimerWatch"]

MAX_DELETED_TIMERS = 2048
"""How many timers that were deleted a queue may hold, besides as many as are live."""


class TimerWatch:
    """Sees to it that deleted timers do not fill the memory of the jobs that run in this process meanwhile."""

    def __init__(self) -> None:
        self.worst = 0
        """The most entries beyond twice the live timers that a queue has held."""

    @property
    def problem(self) -> str:
        """What is wrong; empty if nothing is."""
        if self.worst <= MAX_DELETED_TIMERS:
            return ""
        return f"keeps: a timer queue held {self.worst} entries more than twice its live timers"

    def __enter__(self) -> Self:
        self._add = add = TimerQueue.add

        def watched_add(queue: Any, timestamp: int, key: Any, namespace: Any) -> bool:
            is_new = add(queue, timestamp, key, namespace)
            surplus = len(queue._heap) - 2 * len(queue.live)
            if surplus > self.worst:
                self.worst = surplus
            return is_new

        TimerQueue.add = watched_add  # type: ignore[method-assign, assignment]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        TimerQueue.add = self._add  # type: ignore[method-assign]
