"""What is looked at while a generated program runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.runtime.slot import scheduling
from firesteel.runtime.slot.scheduling import TaskScheduler
from firesteel.runtime.time.timers import TimerQueue
from firesteel.testing.programs.running.invariants import MAX_DELETED_TIMERS, SchedulerWatch, TimerWatch


@dataclass(eq=False)
class AlwaysReady:
    """A task that can always run."""

    name: str
    rank: int
    source: Any = None
    asked_at: float = 0.0
    finished: bool = False
    running: bool = False
    times: Any = None
    turns: int = 0
    descriptor: Any = field(init=False)

    def __post_init__(self) -> None:
        self.descriptor = SimpleNamespace(name=self.name)

    def has_work(self, _now: float) -> bool:
        return True

    def has_room(self) -> bool:
        return True


def _problem_after(turns: int, turn_s: float) -> str:
    tasks: Any = [AlwaysReady("source", 0, source=object()), AlwaysReady("sink", 1)]
    scheduler, now = TaskScheduler(tasks), 1.0
    with SchedulerWatch() as watch:
        for _ in range(turns):
            task: Any = scheduler.next_task(now)
            task.turns += 1
            now += turn_s
    assert sum(task.turns for task in tasks) == turns
    return watch.problem


@pytest.mark.parametrize("turn_s", [0.0001, 0.005, 0.05, 1.0])
def test_a_fair_scheduler_has_no_problem(turn_s: float) -> None:
    assert _problem_after(2000, turn_s) == ""


@pytest.mark.parametrize("turn_s", [0.0001, 0.005, 0.05, 1.0])
def test_a_task_that_is_always_passed_over_is_seen(turn_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "MAX_WAIT_S", math.inf)
    assert _problem_after(2000, turn_s).startswith("starves: source could run but was passed over")


def test_a_wait_within_a_turn_does_not_count() -> None:
    tasks: Any = [AlwaysReady("source", 0, source=object()), AlwaysReady("sink", 1)]
    scheduler = TaskScheduler(tasks)
    with SchedulerWatch() as watch:
        for step in range(2000):
            scheduler.next_task(1.0 + step, above=0)
    assert watch.problem == ""


@pytest.mark.parametrize("compacts", [True, False])
def test_deleted_timers_that_stay_are_seen(compacts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compacts:
        monkeypatch.setattr(TimerQueue, "compact", lambda _queue: None)
    queue = TimerQueue()
    with TimerWatch() as watch:
        for number in range(2 * MAX_DELETED_TIMERS):
            queue.add(number, "key", None)
            queue.remove(number, "key", None)
    assert (watch.problem == "") == compacts
