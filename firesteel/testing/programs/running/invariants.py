"""Invariants of a running job, independent of its results."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from firesteel.runtime.slot.scheduling import TaskScheduler
from firesteel.runtime.time.timers import TimerQueue

if TYPE_CHECKING:
    from typing_extensions import Self

    from firesteel.runtime.task.task import Task

__all__ = ["MAX_DELETED_TIMERS", "SchedulerWatch", "TimerWatch"]

MAX_DELETED_TIMERS = 2048
"""How many timers that were deleted a queue may hold, besides as many as are live."""

FAIR_WAIT_S = 0.01
"""How long a task that can run may be passed over, besides a stint of each other task of its slot."""
SLACK_S = 0.05


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


@dataclass
class _Wait:
    """A task that can run and does not."""

    since: float
    longest: dict[Task, float] = field(default_factory=dict)
    """The longest turn that each other task had meanwhile."""

    @property
    def allowed(self) -> float:
        """For how long it may wait."""
        return FAIR_WAIT_S + sum(max(turn, FAIR_WAIT_S) for turn in self.longest.values())


@dataclass
class _Slot:
    """What was seen of a scheduler."""

    waits: dict[Task, _Wait] = field(default_factory=dict)
    turn: tuple[Task, float] | None = None
    """The task that was chosen last, and when."""


class SchedulerWatch:
    """Sees to it that no task that can run is passed over for long in the jobs that run in this process meanwhile.

    How long is too long follows from how long the turns of the other tasks take, so a busy machine makes no difference.
    """

    def __init__(self) -> None:
        self.problem = ""
        """What is wrong; empty if nothing is."""
        self._slots: WeakKeyDictionary[TaskScheduler, _Slot] = WeakKeyDictionary()

    def __enter__(self) -> Self:
        self._next_task = next_task = TaskScheduler.next_task

        def watched_next_task(scheduler: TaskScheduler, now: float, above: int = -1) -> Task | None:
            if above >= 0:  # within a turn
                return next_task(scheduler, now, above)
            slot = self._slots.setdefault(scheduler, _Slot())
            self._look(slot, scheduler._order, now)
            chosen = next_task(scheduler, now)
            slot.turn = None if chosen is None else (chosen, now)
            if chosen is not None:
                slot.waits.pop(chosen, None)
            return chosen

        TaskScheduler.next_task = watched_next_task  # type: ignore[method-assign, assignment]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        TaskScheduler.next_task = self._next_task  # type: ignore[method-assign]

    def _look(self, slot: _Slot, tasks: list[Task], now: float) -> None:
        for task in tasks:
            if task.finished or task.running or not task.has_work(now) or not task.has_room():
                slot.waits.pop(task, None)
                continue
            wait = slot.waits.setdefault(task, _Wait(now))
            if slot.turn is not None and now > wait.since:
                other, began = slot.turn
                wait.longest[other] = max(wait.longest.get(other, 0.0), now - began)
            if now - wait.since > 2 * wait.allowed + SLACK_S and not self.problem:
                self.problem = (
                    f"starves: {task.descriptor.name} could run but was passed over for {now - wait.since:.3f} s, "
                    f"while one stint of each other task of its slot takes {wait.allowed:.3f} s"
                )
