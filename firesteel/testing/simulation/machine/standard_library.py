"""Replaces clocks, threads, sockets and random bytes of the standard library for simulated processes.

Code in a simulated thread that calls `time.monotonic`, `threading.Thread`, `queue.Queue`, `socket.create_server` or
`os.urandom` gets what the simulation has. Code outside, in the same process or in another thread, gets what it always
gets. So everything that runs in a simulated process is in virtual time, also a user's function that sleeps.
"""

from __future__ import annotations

import gc
import os
import queue
import random
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from firesteel.testing.simulation.machine import scheduler
from firesteel.testing.simulation.machine.captured import LOCK_TYPES, find_captured
from firesteel.testing.simulation.machine.network import Network, socket_class
from firesteel.testing.simulation.machine.scheduler import ProcessKilled, Scheduler, Thread, microseconds
from firesteel.testing.simulation.machine.threads import Lock, RLock, SimulatedThread, thread_class

__all__ = ["replaced", "simulated_standard_library"]

_get_ident = threading.get_ident


@contextmanager
def replaced(owner: Any, **attributes: Any) -> Iterator[None]:
    """Sets attributes of a module or class, and sets them back."""
    before = {name: getattr(owner, name) for name in attributes}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


@contextmanager
def simulated_standard_library(simulation: Scheduler, network: Network) -> Iterator[None]:
    """While it lasts, simulated threads of this simulation live in virtual time."""
    state = random.getstate()
    random.seed(simulation.random.getrandbits(64))
    collects = gc.isenabled()
    gc.disable()  # when it runs is not drawn from the seed, and it may run finalizers
    simulation.network = network
    scheduler.current = simulation
    try:
        with ExitStack() as stack:
            real: dict[int, Any] = {}
            for owner, attributes in _replacements():
                real.update({id(getattr(owner, name)): new for name, new in attributes.items()})
                stack.enter_context(replaced(owner, **attributes))
            _replace_captured(simulation, real, stack)
            yield
    finally:
        scheduler.current = None
        random.setstate(state)
        if collects:
            gc.enable()


def _replace_captured(simulation: Scheduler, real: dict[int, Any], stack: ExitStack) -> None:
    """Replaces what modules have kept of the standard library, too."""

    def simulated(value: Any) -> Any:
        return Lock(simulation) if isinstance(value, LOCK_TYPES) else real.get(id(value), value)

    for captured in find_captured(lambda value: id(value) in real):
        stack.callback(captured.replace(simulated))


def _replacements() -> list[tuple[Any, dict[str, Any]]]:
    monotonic = _monotonic(time.monotonic)
    lock = _either(lambda thread: Lock(thread.process.scheduler), threading.Lock)
    sockets = ("create_server", "create_connection", "getaddrinfo", "gethostname", "socketpair")
    return [
        (time, _clocks() | {"monotonic": monotonic}),
        (
            threading,
            {
                "Lock": lock,
                "_allocate_lock": lock,
                "RLock": _either(lambda thread: RLock(thread.process.scheduler), threading.RLock),
                "Thread": thread_class(threading.Thread),
                "current_thread": _either(SimulatedThread.of, threading.current_thread),
                "main_thread": _either(_main_thread, threading.main_thread),
                "get_ident": _either(lambda thread: thread.ident, threading.get_ident),
                "_time": monotonic,
            },
        ),
        (
            queue,
            {
                "SimpleQueue": _either(lambda _thread: queue._PySimpleQueue(), queue.SimpleQueue),  # type: ignore[attr-defined]
                "time": monotonic,
            },
        ),
        (
            os,
            {
                "urandom": _either(lambda thread, size: thread.process.scheduler.random.randbytes(size), os.urandom),
                "getpid": _either(lambda thread: thread.process.pid, os.getpid),
                "_exit": _either(_exit, os._exit),
                "write": _either(_printing(os.write), os.write),
            },
        ),
        (
            signal,
            {
                "signal": _either(_install, signal.signal),
                "pthread_kill": _either(_send_signal, signal.pthread_kill),
            },
        ),
        (socket, {name: _either(_of_network(name), getattr(socket, name)) for name in sockets}),
        (socket, {"socket": socket_class(socket.socket)}),
        (select, {"epoll": _either(_of_network("epoll"), select.epoll)}),
    ]


def _either(simulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Calls the one, with the simulated thread that calls, or the other if there is none.

    Modules that are loaded while a simulation runs may keep it: it uses the current simulation.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        simulation = scheduler.current
        if simulation is not None:
            thread = simulation.running
            if thread is not None and _get_ident() == simulation.real_thread:
                return simulated(thread, *args, **kwargs)
        return real(*args, **kwargs)

    return call


def _of_network(name: str) -> Callable[..., Any]:
    return lambda thread, *args, **kwargs: getattr(thread.process.scheduler.network, name)(*args, **kwargs)


def _seconds(thread: Thread, _clock: object = None) -> float:
    return thread.process.scheduler.read_clock() / 1e6


def _monotonic(real: Callable[[], float]) -> Callable[[], float]:
    """The clock that is read most, by many thousand turns of loops: `_either` without what it does not need."""

    def monotonic() -> float:
        simulation = scheduler.current
        if simulation is None or simulation.running is None or _get_ident() != simulation.real_thread:
            return real()
        return simulation.read_clock() / 1e6

    return monotonic


def _nanoseconds(thread: Thread) -> int:
    return thread.process.scheduler.read_clock() * 1000


def _sleep(thread: Thread, seconds: float) -> None:
    simulation = thread.process.scheduler
    simulation.sleep(microseconds(seconds) or simulation.jitter())


def _clocks() -> dict[str, Any]:
    simulated: dict[str, Callable[..., Any]] = {
        "time": lambda thread: thread.process.scheduler.wall_us() / 1e6,
        "time_ns": lambda thread: thread.process.scheduler.wall_us() * 1000,
        "monotonic_ns": _nanoseconds,
        "perf_counter": _seconds,
        "perf_counter_ns": _nanoseconds,
        "process_time": _seconds,
        "process_time_ns": _nanoseconds,
        "clock_gettime": _seconds,
        "sleep": _sleep,
    }
    return {name: _either(function, getattr(time, name)) for name, function in simulated.items() if hasattr(time, name)}


def _main_thread(thread: Thread) -> Any:
    main = thread.process.main
    assert main is not None
    return SimulatedThread.of(main)


def _exit(thread: Thread, code: int) -> None:
    thread.process.kill(f"exit code {code}", code)
    raise ProcessKilled


def _printing(real: Callable[[int, Any], int]) -> Callable[[Thread, int, Any], int]:
    """What a process writes to its terminal goes into the story."""

    def write(thread: Thread, descriptor: int, data: Any) -> int:
        if descriptor not in (1, 2):
            return real(descriptor, data)
        text = bytes(data).decode(errors="replace").strip()
        thread.process.scheduler.tell(thread.process.name, f"prints: {text}")
        return len(data)

    return write


def _install(thread: Thread, number: int, handler: Any) -> Any:
    before = thread.process.handlers.get(number, signal.SIG_DFL)
    thread.process.handlers[number] = handler
    return before


def _send_signal(thread: Thread, ident: int, number: int) -> None:
    target = thread.process.threads.get(ident)
    if target is not None:
        thread.process.scheduler.signal(target, number)
