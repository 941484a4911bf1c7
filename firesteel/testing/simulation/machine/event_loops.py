"""Event loops of simulated processes: they run in simulated threads, by virtual time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from firesteel.process import event_loop
from firesteel.testing.simulation.machine import scheduler
from firesteel.testing.simulation.machine.scheduler import Scheduler, Thread, microseconds
from firesteel.testing.simulation.machine.standard_library import replaced
from firesteel.testing.virtual_event_loop import VirtualEventLoop

__all__ = ["SimulatedEventLoop", "simulated_event_loops"]


class SimulatedEventLoop(VirtualEventLoop):
    """The event loop of a simulated process."""

    def __init__(self, simulation: Scheduler):
        super().__init__(lambda: simulation.read_clock() / 1e6, self._await_callbacks, self._end_wait)
        thread = simulation.this_thread()
        assert thread is not None
        self._simulation = simulation
        self._process = thread.process
        self._waiting: tuple[Thread, int] | None = None

    def _await_callbacks(self, timeout: float | None) -> None:
        simulation = self._simulation
        if timeout == 0:
            # what ran before took some time, and others have their turn
            simulation.sleep(simulation.jitter())
            return
        thread = simulation.this_thread()
        assert thread is not None
        self._waiting = thread, thread.token
        simulation.wait(None if timeout is None else microseconds(timeout))
        self._waiting = None

    def _end_wait(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._simulation.wake(*waiting)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Reports an error; not that the tasks of a process that was killed have not ended."""
        if self._process.alive:
            super().call_exception_handler(context)


class _NoWatch:
    """In the place of EventLoopWatch: virtual time stands still while a function runs."""

    def __init__(self, *_arguments: Any):
        pass

    def close(self) -> None:
        """There is nothing to end."""


def _create_event_loop() -> SimulatedEventLoop:
    assert scheduler.current is not None
    return SimulatedEventLoop(scheduler.current)


@contextmanager
def simulated_event_loops() -> Iterator[None]:
    """While it lasts, processes have simulated event loops."""
    hooks = sys.get_asyncgen_hooks()
    try:
        with replaced(event_loop, create_event_loop=_create_event_loop, EventLoopWatch=_NoWatch):
            yield
    finally:
        sys.set_asyncgen_hooks(*hooks)  # loops that end in another order than they began leave those of others
