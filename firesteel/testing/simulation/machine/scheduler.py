"""Deterministic scheduler: virtual time, and threads of which one runs at a time, in an order given by a seed.

A simulated thread is a greenlet. It runs until it waits for something; then the scheduler advances the clock to the
next moment at which anything happens and continues the thread that it happens to. Nothing else lets time pass: what
code computes costs nothing, unless it waits explicitly.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import signal
import threading
from asyncio import _get_running_loop, _set_running_loop
from collections.abc import Callable
from typing import Any, TypeAlias

from greenlet import GreenletExit, getcurrent, greenlet

from firesteel.testing.simulation.machine.story import Story

__all__ = [
    "EPOCH_US",
    "Machine",
    "Process",
    "ProcessKilled",
    "Scheduler",
    "SimulationError",
    "Thread",
    "current",
    "microseconds",
]

EPOCH_US = 1_767_225_600_000_000
"""What wall clocks show when a simulation begins: 2026-01-01T00:00:00Z."""
_SHORT_US, _LONG_US = 120, 20_000
_LONG_SHARE = 0.01
_PAUSE_SHARE = 0.02
_READS = 20_000
"""How often a thread may read a clock without waiting before time passes after all: it may wait in a loop."""
_SWITCHES = 500_000
"""How often threads may be continued in one simulation: some thousand times a minute is usual."""

_Entry: TypeAlias = "tuple[int, int, Thread | None, int, Any]"
_get_ident = threading.get_ident

current: Scheduler | None = None
"""The simulation that this process runs now."""


def microseconds(seconds: float) -> int:
    """As a whole number, rounded up: a wait that ended too early would be repeated for ever, as no time passes."""
    return max(math.ceil(seconds * 1e6 - 1e-3), 1) if seconds > 0 else 0


class ProcessKilled(GreenletExit):  # type: ignore[misc]
    """Unwinds the threads of a simulated process that was killed. Their further actions have no effect outside."""


class SimulationError(Exception):
    """The simulation itself cannot go on."""


class Machine:
    """A computer: its processes share a clock and an address."""

    def __init__(self, name: str):
        self.name = name
        self.clock_offset_us = 0
        """How far its wall clock is off."""
        self.down = False
        """Whether nothing can be started on it."""
        self.boots = 1

    def __repr__(self) -> str:
        return self.name


class Thread:
    """A thread of a simulated process."""

    __slots__ = (
        "__weakref__",
        "ended",
        "greenlet",
        "ident",
        "joining",
        "loop",
        "name",
        "process",
        "public",
        "signals",
        "token",
    )

    def __init__(self, process: Process, name: str, ident: int, body: Callable[[Any], None], hub: greenlet):
        self.process = process
        self.name = name
        self.ident = ident
        self.token = 0
        """Goes up whenever the thread continues or waits: what is to wake it names the wait that it is about."""
        self.ended = False
        self.joining: list[tuple[Thread, int]] = []
        self.signals: list[int] = []
        self.loop: Any = None
        """The event loop that it runs, while others run: asyncio keeps one for each real thread."""
        self.public: Any = None
        """What `threading.current_thread()` returns in it."""
        self.greenlet = greenlet(body, hub)


class Process:
    """A simulated process: its threads die together, and all that it holds outside goes with them."""

    def __init__(self, scheduler: Scheduler, name: str, machine: Machine, pid: int):
        self.scheduler = scheduler
        self.name = name
        self.machine = machine
        self.pid = pid
        self.alive = True
        self.frozen = False
        self.threads: dict[int, Thread] = {}
        self.main: Thread | None = None
        self.handlers: dict[int, Any] = {}
        """Signal handlers."""
        self.exit_code: int | None = None
        self.attached: dict[type, Any] = {}
        """What belongs to it, by its type."""
        self.thawed_at = 0
        """When it was last continued after it had been frozen."""
        self._at_end: list[Callable[[], None]] = []
        self._parked: list[tuple[Thread, int, Any]] = []

    def __repr__(self) -> str:
        return self.name

    def start(self, body: Callable[[], None], name: str) -> Thread:
        """Runs a function in a new thread."""
        return self.scheduler.spawn(self, body, name)

    def at_end(self, callback: Callable[[], None]) -> None:
        """Calls back when the process has ended, however it did; in no thread."""
        if self.alive:
            self._at_end.append(callback)
        else:
            callback()

    def park(self, thread: Thread, token: int, value: Any) -> None:
        """Keeps what would have continued a thread of a frozen process."""
        self._parked.append((thread, token, value))

    def freeze(self) -> None:
        """Stops it, as SIGSTOP does: its clocks and the buffers of its sockets go on."""
        self.frozen = True

    def thaw(self) -> None:
        """Lets it continue."""
        self.frozen = False
        self.thawed_at = self.scheduler.now
        parked, self._parked = self._parked, []
        for thread, token, value in parked:
            self.scheduler.at(self.scheduler.now + self.scheduler.jitter(), thread, token, value)

    def kill(self, why: str, code: int = -signal.SIGKILL) -> None:
        """Ends it at once: no thread of it does anything any more that could be seen from outside."""
        if not self.alive:
            return
        self.alive = False
        self.exit_code = code
        scheduler = self.scheduler
        scheduler.tell(self.name, f"ends: {why}")
        for callback in self._at_end:
            callback()
        self._at_end.clear()
        self._parked.clear()
        running = scheduler.running
        for thread in list(self.threads.values()):
            if thread is not running:
                scheduler.unwind(thread)
        if running is not None and running.process is self:
            raise ProcessKilled


class Scheduler:
    """Runs simulated threads until there is nothing left to do, or it is stopped."""

    def __init__(self, seed: int, story: Story):
        self.random = random.Random(seed)
        self.story = story
        self.now = 0
        """Microseconds since the simulation began."""
        self.running: Thread | None = None
        self.processes: dict[int, Process] = {}
        self.uncaught: list[str] = []
        """Exceptions that ended threads."""
        self.switches = 0
        self.at_points: dict[str, int] = {}
        """The fault points at which a process dies, each with how often it has to be reached for that."""
        self.network: Any = None
        """Where sockets come from; see `network`."""
        self.outside: Any = None
        """The systems that jobs write to; see `outside`."""
        self._heap: list[_Entry] = []
        self._numbers = itertools.count()
        self._idents = itertools.count(1_000_001)
        self._pids = itertools.count(101)
        self._hub = getcurrent()
        self.real_thread = _get_ident()
        """The one that runs all simulated threads."""
        self._reads = 0
        self._stopped = False

    # -- processes and threads ----------------------------------------------------------------------

    def start_process(self, name: str, machine: Machine, body: Callable[[], None]) -> Process:
        """Starts a process whose main thread runs a function; it ends with it."""
        process = Process(self, name, machine, next(self._pids))
        self.processes[process.pid] = process

        def main() -> None:
            code = 0
            try:
                body()
            except ProcessKilled:
                return
            except BaseException:
                code = 1
                raise
            finally:
                if process.alive:
                    process.exit_code = code
                    self.after(0, lambda: process.kill(f"exit code {code}", code))

        process.main = self.spawn(process, main, "MainThread")
        return process

    def spawn(self, process: Process, body: Callable[[], None], name: str) -> Thread:
        """Starts a thread."""
        if not process.alive:
            raise ProcessKilled

        def run(_value: object) -> None:
            try:
                body()
            except GreenletExit:
                pass
            except BaseException as error:  # noqa: BLE001 - as a thread does: it ends, and the others go on
                if process.alive and thread is process.main:
                    self.tell(process.name, f"exits: {type(error).__name__}: {error}")
                elif process.alive:
                    self.uncaught.append(f"{process.name}/{name}: {type(error).__name__}: {error}")
                    self.tell(process.name, f"thread {name} died of {type(error).__name__}: {error}")
            finally:
                self._end(thread)

        thread = Thread(process, name, next(self._idents), run, self._hub)
        process.threads[thread.ident] = thread
        self.at(self.now + self.jitter(), thread, 0, None)
        return thread

    def _end(self, thread: Thread) -> None:
        thread.ended = True
        thread.token += 1
        thread.process.threads.pop(thread.ident, None)
        for waiting, token in thread.joining:
            self.wake(waiting, token)
        thread.joining.clear()

    def unwind(self, thread: Thread) -> None:
        """Ends a thread of a process that was killed."""
        before, self.running = self.running, thread
        loop = _get_running_loop()
        _set_running_loop(thread.loop)
        try:
            thread.greenlet.parent = getcurrent()
            thread.greenlet.throw(ProcessKilled)
        finally:
            _set_running_loop(loop)
            self.running = before
            thread.ended = True
            thread.token += 1

    def next_number(self) -> int:
        """A number that was not given before."""
        return next(self._numbers)

    def this_thread(self) -> Thread | None:
        """The simulated thread that calls; None if it is a real one."""
        return self.running if _get_ident() == self.real_thread else None

    # -- waiting ------------------------------------------------------------------------------------

    def at(self, time: int, thread: Thread | None, token: int, value: Any) -> None:
        """Continues a thread at a time, if it still waits as it does now; or calls ``value`` if there is none."""
        heapq.heappush(self._heap, (time, next(self._numbers), thread, token, value))

    def after(self, delay_us: int, callback: Callable[[], None]) -> None:
        """Calls back, in no thread."""
        self.at(self.now + delay_us, None, 0, callback)

    def wake(self, thread: Thread, token: int) -> None:
        """Ends a wait."""
        if thread.token == token:
            self.at(self.now + self.jitter(), thread, token, True)

    def wait(self, timeout_us: int | None = None) -> bool:
        """Has the running thread wait; whether it was woken before the timeout. Its token names the wait."""
        thread = self.running
        assert thread is not None
        process = thread.process
        if not process.alive:
            raise ProcessKilled
        woken = False
        if timeout_us is None:
            woken = bool(self._hub.switch())
        else:
            until, heap = self.now + max(timeout_us, 0), self._heap
            is_next = not heap or heap[0][0] > until
            if is_next and not process.frozen and not self._stopped and self.switches < _SWITCHES:
                # nothing else happens until then: the thread would be continued next
                self.now = until
                thread.token += 1
                self.switches += 1
                self._reads = 0
            else:
                heapq.heappush(heap, (until, next(self._numbers), thread, thread.token, False))
                woken = bool(self._hub.switch())
        if thread.signals:
            self._handle_signals(thread)
        return woken

    def sleep(self, delay_us: int) -> None:
        """Has the running thread wait for some time."""
        self.wait(delay_us)

    def step(self) -> None:
        """A place where the running thread may be overtaken by others, or killed."""
        if self.running is not None:
            if not self.running.process.alive:
                raise ProcessKilled
            if self.random.random() < _PAUSE_SHARE:
                self.wait(self.jitter())

    def reach(self, point: str) -> None:
        """A place in the product at which a process may be killed: see `fault_points`."""
        if self.running is not None:
            if self.at_points:
                self._kill_at(point, self.running.process)
            self.step()

    def _kill_at(self, point: str, process: Process) -> None:
        left = self.at_points.get(point)
        if left is not None:
            self.at_points[point] = left - 1
            if left <= 1:
                del self.at_points[point]
                process.kill(f"killed at {point}")

    def check_alive(self) -> None:
        """Raises ProcessKilled in a thread of a process that was killed: it has no effect on anything any more."""
        if self.running is not None and not self.running.process.alive:
            raise ProcessKilled

    def signal(self, thread: Thread, number: int) -> None:
        """Interrupts a thread: its process's handler runs in it, and may raise."""
        thread.signals.append(number)
        self.wake(thread, thread.token)

    def _handle_signals(self, thread: Thread) -> None:
        while thread.signals:
            handler = thread.process.handlers.get(thread.signals.pop(0))
            if callable(handler):
                handler(0, None)

    def jitter(self) -> int:
        """How long it takes until something that could happen at once does."""
        draw = self.random.random()
        if draw < _LONG_SHARE:
            return int(draw / _LONG_SHARE * _LONG_US)
        return int(draw * _SHORT_US)

    # -- clocks -------------------------------------------------------------------------------------

    def read_clock(self) -> int:
        """The time, for the running thread."""
        self._reads += 1
        if self._reads > _READS:
            self._reads = 0
            self.sleep(1000)
        return self.now

    def wall_us(self) -> int:
        """The wall clock of the running thread's machine."""
        assert self.running is not None
        return EPOCH_US + self.read_clock() + self.running.process.machine.clock_offset_us

    # -- running ------------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs until `stop` is called, or nothing is left that could happen."""
        self._hub = getcurrent()
        heap = self._heap
        self._stopped = False
        while heap and not self._stopped:
            time, _, thread, token, value = heapq.heappop(heap)
            if thread is None:
                self.now = max(self.now, time)
                value()
                continue
            if thread.token != token:
                continue
            process = thread.process
            if not process.alive:
                continue
            if process.frozen:
                process.park(thread, token, value)
                continue
            if self.switches >= _SWITCHES:
                self.uncaught.append(f"{process.name}/{thread.name} and others go round in circles")
                break
            self.now = max(self.now, time)
            thread.token += 1
            self.switches += 1
            self._reads = 0
            self.running = thread
            _set_running_loop(thread.loop)
            thread.greenlet.switch(value)
            thread.loop = _get_running_loop()
            _set_running_loop(None)
            self.running = None

    def stop(self) -> None:
        """Has `run` return."""
        self._stopped = True

    def close(self) -> None:
        """Ends all processes."""
        for process in list(self.processes.values()):
            if process.alive:
                process.kill("the simulation is over")

    def tell(self, who: str, what: str) -> None:
        """Adds an event to the story."""
        self.story.add(self.now, who, what)
