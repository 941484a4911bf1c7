"""Timers of a slot: what is due, and for whom."""

from __future__ import annotations

from typing import Any

from firesteel.runtime.mailbox import ProcessingTimers


class FakeTask:
    def __init__(self) -> None:
        self.running = False
        self.finished = False


def test_a_running_task_is_not_waited_for() -> None:
    """Else a slot that waits for room, with such a timer overdue, would never sleep."""
    timers = ProcessingTimers()
    busy: Any = FakeTask()
    idle: Any = FakeTask()
    timers.schedule(busy, 10, lambda now: None)
    assert timers.next_at() == 10
    busy.running = True
    assert timers.next_at() is None
    assert timers.pop_due(100) is None
    timers.schedule(idle, 50, lambda now: None)
    assert timers.next_at() == 50
    due = timers.pop_due(100)
    assert due is not None
    assert due[0] is idle
    busy.running = False
    assert timers.next_at() == 10


def test_timers_of_a_finished_task_are_dropped() -> None:
    timers = ProcessingTimers()
    task: Any = FakeTask()
    timers.schedule(task, 10, lambda now: None)
    task.finished = True
    assert timers.pop_due(100) is None
    assert timers.next_at() is None
