"""Clocks, threads, queues and executors of a process, as one object that is handed in.

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

__all__ = ["SYSTEM", "BackgroundThread", "Concurrency", "SystemConcurrency"]


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


class SystemConcurrency:
    """Threads and the system's clocks."""

    def wall_ms(self) -> int:
        """The wall clock in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds of a clock that is never set."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Blocks the calling thread."""
        time.sleep(seconds)

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
