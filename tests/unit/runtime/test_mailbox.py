"""Timers of a slot: what is due, and for whom."""

from __future__ import annotations

from typing import Any

from firesteel.runtime.slot.mailbox import ProcessingTimers
from firesteel.testing import FakeClock

HOUR = 3_600_000


class FakeTask:
    def __init__(self) -> None:
        self.running = False
        self.finished = False


def test_a_running_task_is_not_waited_for() -> None:
    """Else a slot that waits for room, with such a timer overdue, would never sleep."""
    clock = FakeClock()
    timers = ProcessingTimers(clock)
    busy: Any = FakeTask()
    idle: Any = FakeTask()
    timers.schedule(busy, 10, lambda now: None)
    assert timers.next_at() == 10
    busy.running = True
    assert timers.next_at() is None
    assert timers.due_in(0) is None
    clock.advance(100)
    assert timers.pop_due(100) is None
    timers.schedule(idle, 50, lambda now: None)
    assert timers.next_at() == 50
    due = timers.pop_due(100)
    assert due is not None
    assert due[0] is idle
    busy.running = False
    assert timers.next_at() == 10


def test_timers_of_a_finished_task_are_dropped() -> None:
    clock = FakeClock()
    timers = ProcessingTimers(clock)
    task: Any = FakeTask()
    timers.schedule(task, 10, lambda now: None)
    timers.schedule_after(task, 10, lambda: None)
    task.finished = True
    clock.advance(100)
    assert timers.pop_due(100) is None
    assert timers.next_at() is None


class Slot:
    """The timers of a slot, whose steps are milliseconds of the monotonic clock."""

    def __init__(self) -> None:
        self.clock = FakeClock(1_700_000_000_000)
        self.timers = ProcessingTimers(self.clock)
        self.task: Any = FakeTask()
        self.fired: list[tuple[str, int]] = []

    def schedule(self, name: str, after: int) -> None:
        self.timers.schedule(self.task, self.clock.now_ms() + after, lambda now: self.fired.append((name, now)))

    def delay(self, name: str, after: int) -> None:
        self.timers.schedule_after(
            self.task, after, lambda: self.fired.append((name, self.clock.monotonic_ms() - 1_700_000_000_000))
        )

    def run(self, milliseconds: int) -> list[tuple[str, int]]:
        """What fires while time passes; as a slot does, it sleeps until something may be due."""
        end = self.clock.monotonic_ms() + milliseconds
        while True:
            now = self.clock.monotonic_ms()
            while (due := self.timers.pop_due(now)) is not None:
                due[1](due[2])
            left = end - now
            if left == 0:
                break
            wait = self.timers.due_in(now)
            self.clock.advance(left if wait is None else max(1, min(left, wait)))
        fired, self.fired = self.fired, []
        return fired


def test_delays_go_by_the_monotonic_clock() -> None:
    slot = Slot()
    for step in (-HOUR, HOUR):
        slot.delay("a", 200)
        slot.clock.step(step)
        before = slot.clock.monotonic_ms() - 1_700_000_000_000
        assert slot.run(199) == []
        assert slot.run(1) == [("a", before + 200)]


def test_timers_follow_a_clock_that_is_set_forward_within_a_second() -> None:
    slot = Slot()
    slot.schedule("a", HOUR)
    assert slot.run(10) == []
    slot.clock.step(HOUR)
    ((name, told),) = slot.run(1000)
    assert name == "a"
    assert told >= 1_700_000_000_000 + HOUR


def test_timers_wait_for_a_clock_that_is_set_back() -> None:
    slot = Slot()
    slot.schedule("a", 5000)
    assert slot.run(4000) == []
    slot.clock.step(-HOUR)
    assert slot.run(HOUR) == []
    assert slot.run(1000) == [("a", 1_700_000_000_000 + 5000)]


def test_a_timer_is_on_time_to_the_millisecond_while_the_clock_is_not_set() -> None:
    slot = Slot()
    slot.schedule("late", 12_345)
    slot.delay("delay", 777)
    slot.schedule("early", 776)
    assert slot.run(776) == [("early", 1_700_000_000_000 + 776)]
    assert slot.run(1) == [("delay", 777)]
    assert slot.run(12_345 - 778) == []
    assert slot.run(1) == [("late", 1_700_000_000_000 + 12_345)]


def test_what_is_overdue_most_comes_first() -> None:
    slot = Slot()
    slot.delay("third", 300)
    slot.schedule("second", 200)
    slot.delay("first", 100)
    slot.clock.advance(1000)
    assert [name for name, _ in slot.run(0)] == ["first", "second", "third"]
