"""Puts virtual clocks, threads, sockets and random bytes in the place of the system's, for simulated processes.

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
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from firesteel.testing.simulation import scheduler
from firesteel.testing.simulation.network import Network, socket_class
from firesteel.testing.simulation.scheduler import ProcessKilled, Scheduler, microseconds
from firesteel.testing.simulation.threads import Lock, RLock, SimulatedThread, thread_class

__all__ = ["replaced", "simulated_standard_library"]

_LOCK_TYPES = (type(threading.Lock()), type(threading.RLock()))


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
    gc.collect(0)
    gc.disable()  # when it runs is not drawn from the seed, and it may run finalizers
    scheduler.current = simulation
    try:
        with ExitStack() as stack:
            for owner, attributes in _replacements(simulation, network):
                stack.enter_context(replaced(owner, **attributes))
            for module, name in _module_locks():
                stack.enter_context(replaced(module, **{name: Lock(simulation)}))
            yield
    finally:
        scheduler.current = None
        random.setstate(state)
        if collects:
            gc.enable()


def _replacements(simulation: Scheduler, network: Network) -> Iterator[tuple[Any, dict[str, Any]]]:
    yield time, _clocks(simulation)
    monotonic = time.monotonic
    yield threading, _threading(simulation)
    yield (
        queue,
        {
            "SimpleQueue": _either(simulation, queue._PySimpleQueue, queue.SimpleQueue),  # type: ignore[attr-defined]
            "time": _either(simulation, lambda: simulation.read_clock() / 1e6, monotonic),
        },
    )
    yield os, _operating_system(simulation)
    yield signal, _signals(simulation)
    yield (
        socket,
        {
            name: _either(simulation, getattr(network, name), getattr(socket, name))
            for name in ("create_server", "create_connection", "getaddrinfo", "gethostname", "socketpair")
        },
    )
    yield socket, {"socket": socket_class(network, socket.socket)}
    yield select, {"epoll": _either(simulation, network.epoll, select.epoll)}


def _either(simulation: Scheduler, simulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Calls the one or the other, depending on who calls."""
    this_thread = simulation.this_thread

    def call(*args: Any, **kwargs: Any) -> Any:
        return (real if this_thread() is None else simulated)(*args, **kwargs)

    return call


def _clocks(simulation: Scheduler) -> dict[str, Any]:
    def sleep(seconds: float) -> None:
        simulation.sleep(microseconds(seconds) or simulation.jitter())

    seconds = lambda: simulation.read_clock() / 1e6
    nanoseconds = lambda: simulation.read_clock() * 1000
    simulated: dict[str, Callable[..., Any]] = {
        "time": lambda: simulation.wall_us() / 1e6,
        "time_ns": lambda: simulation.wall_us() * 1000,
        "monotonic": seconds,
        "monotonic_ns": nanoseconds,
        "perf_counter": seconds,
        "perf_counter_ns": nanoseconds,
        "process_time": seconds,
        "process_time_ns": nanoseconds,
        "sleep": sleep,
    }
    found = {name: _either(simulation, function, getattr(time, name)) for name, function in simulated.items()}
    if hasattr(time, "clock_gettime"):
        found["clock_gettime"] = _either(simulation, lambda _clock: simulation.read_clock() / 1e6, time.clock_gettime)
    return found


def _threading(simulation: Scheduler) -> dict[str, Any]:
    def current_thread() -> Any:
        thread = simulation.this_thread()
        assert thread is not None
        return thread.public or SimulatedThread.of(thread)

    def main_thread() -> Any:
        thread = simulation.this_thread()
        assert thread is not None
        main = thread.process.main
        assert main is not None
        return main.public or SimulatedThread.of(main)

    def get_ident() -> int:
        thread = simulation.this_thread()
        assert thread is not None
        return thread.ident

    lock = _either(simulation, lambda: Lock(simulation), threading.Lock)
    seconds = _either(simulation, lambda: simulation.read_clock() / 1e6, threading._time)  # type: ignore[attr-defined]
    return {
        "Lock": lock,
        "_allocate_lock": lock,
        "RLock": _either(simulation, lambda: RLock(simulation), threading.RLock),
        "Thread": thread_class(threading.Thread),
        "current_thread": _either(simulation, current_thread, threading.current_thread),
        "main_thread": _either(simulation, main_thread, threading.main_thread),
        "get_ident": _either(simulation, get_ident, threading.get_ident),
        "_time": seconds,
    }


def _operating_system(simulation: Scheduler) -> dict[str, Any]:
    def exit_process(code: int) -> None:
        thread = simulation.this_thread()
        assert thread is not None
        thread.process.kill(f"exit code {code}", code)
        raise ProcessKilled

    def pid() -> int:
        thread = simulation.this_thread()
        assert thread is not None
        return thread.process.pid

    return {
        "urandom": _either(simulation, simulation.random.randbytes, os.urandom),
        "getpid": _either(simulation, pid, os.getpid),
        "_exit": _either(simulation, exit_process, os._exit),
    }


def _signals(simulation: Scheduler) -> dict[str, Any]:
    def install(number: int, handler: Any) -> Any:
        thread = simulation.this_thread()
        assert thread is not None
        before = thread.process.handlers.get(number, signal.SIG_DFL)
        thread.process.handlers[number] = handler
        return before

    def send(ident: int, number: int) -> None:
        thread = simulation.this_thread()
        assert thread is not None
        target = thread.process.threads.get(ident)
        if target is not None:
            simulation.signal(target, number)

    return {
        "signal": _either(simulation, install, signal.signal),
        "pthread_kill": _either(simulation, send, signal.pthread_kill),
    }


def _module_locks() -> list[tuple[Any, str]]:
    """Locks that modules made when they were loaded: a simulated thread that waited for one would wait for ever."""
    return [
        (module, name)
        for module_name, module in sorted(sys.modules.items())
        if module_name.startswith(("firesteel.", "concurrent.futures.")) and module is not None
        for name, value in sorted(vars(module).items())
        if isinstance(value, _LOCK_TYPES)
    ]
