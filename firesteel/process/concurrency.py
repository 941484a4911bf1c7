"""Clocks, threads, queues and executors of a process, injected as one object.

Everything on the path of a job that waits, reads a clock or runs beside something else takes a `Concurrency`. In
production that is `SYSTEM`: threads and the system's clocks. A simulated cluster hands in one whose time is virtual and
whose threads run one at a time, in an order drawn from a seed.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Protocol

__all__ = ["SYSTEM", "BackgroundThread", "Concurrency", "Condition", "SystemConcurrency"]


class BackgroundThread(Protocol):
    """A thread that has been started."""

    def join(self, timeout: float | None = None) -> None:
        """Waits until the thread has ended, at most for the timeout in seconds."""
        ...

    def is_alive(self) -> bool:
        """Whether the thread has not ended yet."""
        ...


class Concurrency(Protocol):
    """Clocks, threads, queues and executors."""

    def wall_ms(self) -> int:
        """The wall clock in milliseconds since the epoch. It may be set back or forward at any time."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that is never set, for deadlines and delays."""
        ...

    def sleep(self, seconds: float) -> None:
        """Blocks the caller."""
        ...

    def start(self, target: Callable[..., None], *args: Any, name: str) -> BackgroundThread:
        """Runs a function in a daemon thread."""
        ...

    def queue(self) -> queue.Queue[Any]:
        """Creates an unbounded queue between threads."""
        ...

    def event(self) -> threading.Event:
        """Creates a flag that threads can wait for."""
        ...

    def executor(self, workers: int, name: str) -> Executor:
        """Creates a pool of worker threads, to be shut down by the caller."""
        ...


class Condition:
    """A reentrant lock that can be waited with, as ``threading.Condition``, on the events of a Concurrency."""

    def __init__(self, concurrency: Concurrency):
        self._concurrency = concurrency
        self._lock = threading.RLock()
        self._waiters: list[threading.Event] = []

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_exception: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Releases the lock until it is notified or the timeout is over; to be called with the lock held once."""
        waiter = self._concurrency.event()
        self._waiters.append(waiter)
        self._lock.release()
        try:
            return waiter.wait(timeout)
        finally:
            self._lock.acquire()
            self._waiters.remove(waiter)

    def wait_for(self, predicate: Callable[[], bool], timeout: float) -> bool:
        """Waits until the predicate holds, at most for the timeout; returns whether it does."""
        deadline = self._concurrency.monotonic() + timeout
        while not predicate():
            left = deadline - self._concurrency.monotonic()
            if left <= 0:
                return False
            self.wait(left)
        return True

    def notify_all(self) -> None:
        """Wakes all that wait; to be called with the lock."""
        for waiter in self._waiters:
            waiter.set()


class SystemConcurrency:
    """Threads and the system's clocks."""

    def wall_ms(self) -> int:
        """The wall clock in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    # read in every step of a slot's mailbox
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)

    def start(self, target: Callable[..., None], *args: Any, name: str) -> BackgroundThread:
        """Runs a function in a daemon thread."""
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        thread.start()
        return thread

    def queue(self) -> queue.Queue[Any]:
        """Creates an unbounded queue between threads."""
        return queue.Queue()

    def event(self) -> threading.Event:
        """Creates a flag that threads can wait for."""
        return threading.Event()

    def executor(self, workers: int, name: str) -> Executor:
        """Creates a pool of worker threads, to be shut down by the caller."""
        return ThreadPoolExecutor(workers, thread_name_prefix=name)


SYSTEM = SystemConcurrency()
"""The concurrency of a real process."""
