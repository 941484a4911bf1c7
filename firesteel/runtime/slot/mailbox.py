"""Mailbox of a slot: its clock, its processing-time timers, and the wait for work of its thread."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from firesteel.process.concurrency import SYSTEM, Concurrency

if TYPE_CHECKING:
    from firesteel.runtime.task.task import Task

__all__ = ["Clock", "IdlePoller", "Poller", "ProcessClock", "ProcessingTimers", "SystemClock"]

_MAX_CLOCK_CHECK_INTERVAL_MS = 1000
"""How often the wall clock is looked at, at least, while timers wait for it: it may have been set forward."""


class Clock(Protocol):
    """Processing time, and the time that delays go by; tests give a fake one."""

    def now_ms(self) -> int:
        """Processing time: the wall clock in milliseconds since the epoch, which may be set back or forward."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        ...


class SystemClock:
    """The system's clocks."""

    def now_ms(self) -> int:
        """The wall clock in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class ProcessClock:
    """The clocks of a Concurrency."""

    def __init__(self, concurrency: Concurrency):
        self._concurrency = concurrency

    def now_ms(self) -> int:
        """The wall clock in milliseconds since the epoch."""
        return self._concurrency.wall_ms()

    def monotonic_ms(self) -> int:
        return int(self._concurrency.monotonic() * 1000)


class Poller(Protocol):
    """Moves data and waits: the network environment, or in one process just a wait."""

    def poll(self, timeout_s: float) -> Any:
        """Moves what can be moved; waits up to the timeout if there is nothing."""
        ...

    def wakeup(self) -> None:
        """Ends a wait; may be called from any thread."""
        ...

    def close(self) -> None:
        """Releases sockets."""
        ...


class IdlePoller:
    """The poller of a process that hosts all slots of a job: there is no network."""

    def __init__(self, concurrency: Concurrency = SYSTEM) -> None:
        self._wake = concurrency.event()

    def poll(self, timeout_s: float) -> bool:
        """Waits for a wakeup."""
        if timeout_s > 0 and self._wake.wait(timeout_s):
            self._wake.clear()
        return True

    def wakeup(self) -> None:
        self._wake.set()

    def close(self) -> None:
        """Nothing to release."""


_Entry: TypeAlias = "tuple[int, int, Task, Callable[[int], None]]"
"""When it is due, a number in the order of scheduling, its task and what to call with the time."""


class ProcessingTimers:
    """Callbacks by time, each owned by a task that must not be running when it is called.

    *Timers* are due at a time of the wall clock, which may be set back or forward. *Delays* go by the monotonic clock.
    All times but those of timers are monotonic milliseconds.
    """

    def __init__(self, clock: Clock) -> None:
        self.due_at = 0
        """Nothing is due before."""
        self._clock = clock
        self._timers: list[_Entry] = []
        self._delays: list[_Entry] = []
        self._look_at = 0
        """When the timers are to be compared with the wall clock."""
        self._sequence = 0

    def schedule(self, task: Task, timestamp: int, callback: Callable[[int], None]) -> None:
        """Adds a timer; it is called with the wall clock's time."""
        self._sequence += 1
        heapq.heappush(self._timers, (timestamp, self._sequence, task, callback))
        self.look_again()

    def schedule_after(self, task: Task, delay: int, callback: Callable[[], None]) -> None:
        """Adds a delay, in milliseconds."""
        self._sequence += 1
        due = self._clock.monotonic_ms() + delay
        heapq.heappush(self._delays, (due, self._sequence, task, lambda _now: callback()))
        self.due_at = min(self.due_at, due)

    def look_again(self) -> None:
        """Makes the next call compare the timers with the wall clock, without using its cached time."""
        self.due_at = self._look_at = 0

    def due_in(self, now: int) -> int | None:
        """How long to sleep at most until the next callback whose task is not on the stack: others wait for it."""
        delay = _first(self._delays)
        timer = _first(self._timers)
        waits = [] if delay is None else [delay - now]
        if timer is not None:
            waits.append(min(timer - self._clock.now_ms(), _MAX_CLOCK_CHECK_INTERVAL_MS))
        return min(waits, default=None)

    def next_at(self) -> int | None:
        """When the next callback is due whose task is not on the stack, by the wall clock as it is now."""
        delay = _first(self._delays)
        timer = _first(self._timers)
        if delay is not None:
            due = self._clock.now_ms() + delay - self._clock.monotonic_ms()
            return due if timer is None else min(due, timer)
        return timer

    def pop_due(self, now: int) -> tuple[Task, Callable[[int], None], int] | None:
        """Takes the callback that is overdue most and whose task is not on the stack, with the time to pass to it."""
        if now < self.due_at:
            return None
        delays = self._delays
        timers = self._timers if self._look_at <= now else []
        wall = self._clock.now_ms() if timers else 0
        postponed: list[tuple[list[_Entry], _Entry]] = []
        found = None
        while found is None:
            overdue = now - delays[0][0] if delays else -1
            timer_overdue = wall - timers[0][0] if timers else -1
            if overdue < 0 and timer_overdue < 0:
                break
            is_timer = timer_overdue > overdue or (timer_overdue == overdue and timers[0][1] < delays[0][1])
            heap = timers if is_timer else delays
            entry = heapq.heappop(heap)
            if entry[2].running:
                postponed.append((heap, entry))
            elif not entry[2].finished:
                found = entry[2], entry[3], wall if is_timer else now
        for heap, entry in postponed:
            heapq.heappush(heap, entry)
        if found is None:
            if timers:
                self._look_at = now + min(max(timers[0][0] - wall, 0), _MAX_CLOCK_CHECK_INTERVAL_MS)
            times = [self._delays[0][0]] if self._delays else []
            if self._timers:
                times.append(self._look_at)
            self.due_at = min(times, default=_NEVER)
        return found


_NEVER = 1 << 62


def _first(entries: list[_Entry]) -> int | None:
    return min((at for at, _sequence, task, _callback in entries if not task.running), default=None)
