"""The clock and the timers of a slot, and where its thread sleeps when there is nothing to do."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.common.concurrency import SYSTEM, Concurrency

if TYPE_CHECKING:
    from firesteel.runtime.task import Task

__all__ = ["Clock", "IdlePoller", "Poller", "ProcessingTimers", "SystemClock"]


class Clock(Protocol):
    """Processing time, and the time that delays go by; tests give a fake one."""

    def now_ms(self) -> int:
        """Processing time: the wall clock in milliseconds since the epoch, which may be set back or forward."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        ...


class SystemClock:
    """The clocks of a process."""

    def __init__(self, concurrency: Concurrency = SYSTEM):
        self._wall_ms = concurrency.wall_ms
        self._monotonic = concurrency.monotonic

    def now_ms(self) -> int:
        """The wall clock in milliseconds since the epoch."""
        return self._wall_ms()

    def monotonic_ms(self) -> int:
        """Milliseconds of the monotonic clock."""
        return int(self._monotonic() * 1000)


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
        """Ends a wait."""
        self._wake.set()

    def close(self) -> None:
        """Nothing to release."""


class ProcessingTimers:
    """Callbacks by wall-clock time, each owned by a task that must not be running when it is called."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Task, Callable[[int], None]]] = []
        self._sequence = 0

    def schedule(self, task: Task, timestamp: int, callback: Callable[[int], None]) -> None:
        """Adds a callback."""
        self._sequence += 1
        heapq.heappush(self._heap, (timestamp, self._sequence, task, callback))

    def next_at(self) -> int | None:
        """When the first callback is due whose task is not on the stack: the others must wait for it anyway."""
        return min((at for at, _sequence, task, _callback in self._heap if not task.running), default=None)

    def pop_due(self, now: int) -> tuple[Task, Callable[[int], None]] | None:
        """Takes the first callback that is due and whose task is not on the stack."""
        heap = self._heap
        if not heap or heap[0][0] > now:
            return None
        postponed = []
        found = None
        while heap and heap[0][0] <= now:
            entry = heapq.heappop(heap)
            if entry[2].finished:
                continue
            if entry[2].running:
                postponed.append(entry)
                continue
            found = entry[2], entry[3]
            break
        for entry in postponed:
            heapq.heappush(heap, entry)
        return found
