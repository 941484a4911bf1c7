"""Event loops in virtual time: without sockets, and with a clock that somebody else moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from firesteel.testing.clock import FakeClock

__all__ = ["ManualEventLoop", "VirtualEventLoop"]

T = TypeVar("T")


class _Selector:
    """What the loop waits with."""

    def __init__(self, wait: Callable[[float | None], None]):
        self._wait = wait

    def select(self, timeout: float | None = None) -> list[Any]:
        """Waits until the loop is woken or the next callback is due; no sockets are ever ready."""
        self._wait(timeout)
        return []


class VirtualEventLoop(asyncio.BaseEventLoop):
    """A loop whose time and waits are given by functions. It can run coroutines, but no input or output."""

    def __init__(self, now: Callable[[], float], wait: Callable[[float | None], None], wake: Callable[[], None]):
        super().__init__()
        self._now = now
        self._wake = wake
        self._selector = _Selector(wait)

    def time(self) -> float:
        """Virtual time in seconds."""
        return self._now()

    def next_at(self) -> float | None:
        """When the next callback is due, None if there is none."""
        timers = [handle.when() for handle in self._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
        return min(timers, default=None)

    def run_ready(self) -> None:
        """Runs everything that can run now."""
        while True:
            self.call_soon(self.stop)
            self.run_forever()
            due = self.next_at()
            if not self._ready and (due is None or due > self.time()):  # type: ignore[attr-defined]
                return

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        self._wake()


class ManualEventLoop:
    """The event loop of an operator in a harness: it runs in the test's thread, and its time is a FakeClock's."""

    def __init__(self, clock: FakeClock, on_time: Callable[[], None]):
        """``on_time`` is called when the clock comes to a time that something on the loop waits for."""
        self._clock = clock
        self._on_time = on_time
        self._loop: VirtualEventLoop | None = None
        self._users = 0
        self._waits_until: float | None = None

    def acquire(self) -> asyncio.AbstractEventLoop:
        """Returns the loop."""
        if self._loop is None:
            self._loop = VirtualEventLoop(lambda: self._clock.monotonic_ms() / 1000, _do_nothing, _do_nothing)
        self._users += 1
        return self._loop

    def release(self) -> None:
        """Closes the loop after its last user."""
        self._users -= 1
        if self._loop is not None and not self._users:
            self._loop.run_ready()
            self._loop.close()
            self._loop = None

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Runs a coroutine, which must not wait for time to pass."""
        assert self._loop is not None
        task = self._loop.create_task(coroutine)
        self._loop.run_ready()
        if not task.done():
            task.cancel()
            self._loop.run_ready()
            raise TimeoutError("the coroutine waits for something that does not happen while the clock stands still")
        return task.result()

    def run_ready(self) -> None:
        """Runs everything that can run now, and again when the clock is moved."""
        if self._loop is None or self._loop.is_running():
            return
        self._loop.run_ready()
        due = self._loop.next_at()
        if due is not None and (self._waits_until is None or due < self._waits_until):
            self._waits_until = due
            delay = max(round((due - self._loop.time()) * 1000), 1)
            self._clock.schedule_after(delay, self._time_has_come)

    def _time_has_come(self) -> None:
        self._waits_until = None
        self._on_time()


def _do_nothing(_timeout: float | None = None) -> None:
    pass
