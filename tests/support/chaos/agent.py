"""What goes wrong inside a slot of the chaos job: a thread in each of its processes that looks for orders.

An order is a file in the directory of orders, named after the process: ``<pid>.raise`` and ``<pid>.die`` (with the
place as their content), ``<pid>.cut``, ``<pid>.full`` (with a number of seconds). When it has been carried out there is
a file ``<pid>.<order>.done`` that says how. The processes of an attempt tell in the directory of slots that they are
there, which places of user code they have, and when Spark has last run a task in them not for the first time.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from tests.support.chaos.sockets import established_sockets

__all__ = ["Agent", "InjectedError", "Places", "agent"]

POLL_S = 0.02
FULL_AT_BYTES = 64
"""Files of this size can still be written when a disk is full: this module's own."""


class InjectedError(Exception):
    """User code fails because it was told to."""


class Places:
    """Where user code can be told to fail."""

    NAMES = ("map", "key selector", "process", "timer", "window", "encoder", "source", "snapshot")


class Agent:
    """One process of one attempt; open as long as any of its functions is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._raise_in: str | None = None
        self._die_in: str | None = None
        self._of: tuple[int, int] | None = None
        self._retried_at = 0.0
        self._places: set[str] = set()
        self._orders = Path()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, directory: Path, attempt: int, run: int, places: Iterable[str] = Places.NAMES) -> None:
        """A function of the attempt begins, and with it these places are in the process."""
        with self._lock:
            self._users += 1
            if self._users == 1 or self._of != (run, attempt):
                self._of = (run, attempt)
                self._places = set()
            self._places |= set(places)
            self._announce(directory, attempt, run)
            if self._users > 1:
                return
            self._raise_in = self._die_in = None
            self._orders = directory / "orders"
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._watch, args=(self._orders, self._stop), name="chaos-agent", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """A function of the attempt ends."""
        with self._lock:
            self._users = max(self._users - 1, 0)
            if self._users == 0:
                self._stop.set()

    def at(self, place: str) -> None:
        """Fails here if that was ordered."""
        if self._raise_in is not None and self._raise_in == place:
            self._raise_in = None
            _done(self._orders, "raise", place)
            raise InjectedError(f"injected in {place}")
        if self._die_in is not None and self._die_in == place:
            _done(self._orders, "die", place)
            os.kill(os.getpid(), signal.SIGKILL)

    def _announce(self, directory: Path, attempt: int, run: int) -> None:
        slots = directory / "slots"
        # it stays told: the next task that the process runs may be there before anybody has looked
        self._retried_at = time.time() if _retry() else self._retried_at
        told = {"pid": os.getpid(), "run": run, "attempt": attempt, "places": sorted(self._places)}
        text = json.dumps({**told, "retried at": self._retried_at})
        temporary = slots / f".{os.getpid()}.new"
        temporary.write_text(text)
        temporary.replace(slots / f"{os.getpid()}.json")

    def _watch(self, orders: Path, stop: threading.Event) -> None:
        limits: tuple[int, int] | None = None
        limited_until = 0.0
        while not stop.wait(POLL_S):
            place = _taken(orders, "raise")
            if place is not None:
                self._raise_in = place
            place = _taken(orders, "die")
            if place is not None:
                self._die_in = place
            if _taken(orders, "cut") is not None:
                _done(orders, "cut", f"{cut_data_connections(orders.parent / 'slots')} connections")
            seconds = _taken(orders, "full")
            if seconds is not None:
                limits = limits or resource.getrlimit(resource.RLIMIT_FSIZE)
                limited_until = time.monotonic() + float(seconds)
                resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_AT_BYTES, limits[1]))
                _done(orders, "full", f"for {seconds} s")
            if limits is not None and time.monotonic() >= limited_until:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
                limits = None
        if limits is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)  # Spark uses the process again


def _retry() -> int:
    """How often Spark has run the task before that runs now."""
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def _taken(orders: Path, what: str) -> str | None:
    path = orders / f"{os.getpid()}.{what}"
    try:
        text = path.read_text()
        path.unlink()
    except FileNotFoundError:
        return None
    return text


def _done(orders: Path, what: str, how: str) -> None:
    path = orders / f"{os.getpid()}.{what}.done"
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(how)
    unfinished.replace(path)


def cut_data_connections(slots: Path) -> int:
    """Shuts down what connects this process to other slots of the job; how many connections there were."""
    others = {int(path.stem) for path in slots.glob("*.json")} - {os.getpid()}
    theirs = {(remote, local) for pid in others for _, local, remote in established_sockets(pid)}
    own = established_sockets(os.getpid())
    return sum(_shut_down(descriptor) for descriptor, *ports in own if tuple(ports) in theirs)


def _shut_down(descriptor: int) -> bool:
    try:
        duplicate = socket.socket(fileno=os.dup(descriptor))
    except OSError:
        return False  # closed meanwhile
    try:
        duplicate.shutdown(socket.SHUT_RDWR)
    except OSError:
        return False
    finally:
        duplicate.close()
    return True


agent: Any = Agent()
"""The agent of this process."""
