"""Fails a test that leaves anything behind: threads, processes, sockets, files, temporary directories.

What a test finds is not its fault, so each test is compared with the moment before it. A Spark that is there already
(the session's embedded one, a test module's cluster) may go on and fork Python workers, but none of them may still be
a slot: a slot listens for its peers, an idle worker does not. A browser that is there already may start helpers. What
is about to end anyway gets time for it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.processes import (
    command_line,
    descendants,
    has_children,
    is_of_worker_daemon,
    listening_processes,
    own_open_files,
)

__all__ = ["Holdings", "LeakError", "leaks_since"]

DEADLINE_S = 60.0
TOLERATED_FILES = 2
"""Libraries open a descriptor or two for good when first used: /dev/urandom, an event loop, a connection to the JVM."""
FILES_OF_LIBRARIES = {"deltalake": 10}
"""More of them, of the test that is the first to use a library: the event loop of delta-rs."""
THREADS_OF_LIBRARIES = {"pyiceberg": "ThreadPoolExecutor-"}
"""How the threads of a pool are named that a library keeps from its first use on."""
PREFIX = "firesteel"


class LeakError(AssertionError):
    """A test left something behind."""


@dataclass(frozen=True)
class Holdings:
    """What this process has at one moment."""

    threads: frozenset[threading.Thread]
    processes: frozenset[int]
    files: dict[int, str]
    temporary: frozenset[str]
    libraries: frozenset[str]

    @classmethod
    def now(cls) -> Holdings:
        """Takes stock."""
        return cls(
            frozenset(threading.enumerate()),
            frozenset(descendants(os.getpid())) if has_children() else frozenset(),
            own_open_files(),
            frozenset(name for name in os.listdir(tempfile.gettempdir()) if name.startswith(PREFIX)),  # noqa: PTH208
            frozenset(name for name in (*FILES_OF_LIBRARIES, *THREADS_OF_LIBRARIES) if name in sys.modules),
        )


def leaks_since(before: Holdings) -> list[str]:
    """What is there now and should not be, as sentences."""
    now = Holdings.now()
    new = now.libraries - before.libraries
    pools = tuple(THREADS_OF_LIBRARIES[name] for name in new & THREADS_OF_LIBRARIES.keys())
    leaks = [
        f"thread {thread.name!r} ({'daemon' if thread.daemon else 'not daemon'})"
        for thread in now.threads - before.threads
        if (not thread.daemon or thread.name.startswith(PREFIX)) and not (pools and thread.name.startswith(pools))
    ]
    leaks += _process_leaks(before.processes, now.processes)
    opened = [(fd, target) for fd, target in now.files.items() if before.files.get(fd) != target]
    tolerated = TOLERATED_FILES + sum(FILES_OF_LIBRARIES.get(name, 0) for name in new)
    if len(now.files) - len(before.files) > tolerated:
        leaks += [f"file descriptor {fd} ({target})" for fd, target in opened]
    leaks += [f"temporary file {name!r}" for name in now.temporary - before.temporary]
    return sorted(leaks)


def _process_leaks(before: frozenset[int], now: frozenset[int]) -> list[str]:
    spark: set[int] = set()
    helpers: set[int] = set()
    for pid in before & now:
        command = command_line(pid)
        if "org.apache.spark.deploy." in command:
            spark |= descendants(pid)
        elif "/chromium" in command:
            helpers |= descendants(pid)
    leaks = [f"process {pid}: {command_line(pid)[:200]}" for pid in now - before - spark - helpers]
    leaks += [
        f"process {pid}: a Python worker of Spark that is still a slot" for pid in listening_processes(_workers(spark))
    ]
    return leaks


def _workers(spark: set[int]) -> set[int]:
    """Python workers: forked by the daemon, which listens itself, for Spark."""
    daemons = {pid for pid in spark if is_of_worker_daemon(pid)}
    return {worker for daemon in daemons for worker in descendants(daemon)}


@pytest.fixture(autouse=True)
def no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compares what there is before and after each test."""
    before = Holdings.now()
    yield
    end = time.monotonic() + DEADLINE_S
    pause = 0.001
    while leaks := leaks_since(before):
        if time.monotonic() >= end:
            raise LeakError(f"{request.node.nodeid} left behind:\n  " + "\n  ".join(leaks))
        time.sleep(pause)
        pause = min(pause * 2, 0.1)
