"""The asyncio event loop of a process: runs the coroutines of functions in a thread beside the mailbox."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from firesteel.process.event_loop_watch import EventLoopWatch

if TYPE_CHECKING:
    from firesteel.process.concurrency import BackgroundThread, Concurrency

__all__ = ["EventLoop", "EventLoopThread", "create_event_loop"]

T = TypeVar("T")

_log = logging.getLogger(__name__)
_INTERRUPT_CHECK_S = 0.1
_CLOSE_TIMEOUT_S = 5.0


class EventLoop(Protocol):
    """An event loop that several operators share."""

    def acquire(self) -> asyncio.AbstractEventLoop:
        """Returns the loop, which runs until it has been released as often."""
        ...

    def release(self) -> None:
        """Declares that one user of the loop is done with it."""
        ...

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Runs a coroutine on the loop and waits for its result; raises TimeoutError after so many seconds."""
        ...


def create_event_loop() -> asyncio.AbstractEventLoop:
    """Creates the loop of a process; a simulated process has another one."""
    return asyncio.new_event_loop()


class EventLoopThread:
    """An event loop in a thread, which is started for the first user and ends with the last one.

    Its users are operators of one thread, the mailbox. Nothing that runs on the loop accesses an operator's state.
    """

    def __init__(self, concurrency: Concurrency):
        self._concurrency = concurrency
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: BackgroundThread | None = None
        self._watch: EventLoopWatch | None = None

    def acquire(self) -> asyncio.AbstractEventLoop:
        """Returns the loop, which runs until it has been released as often."""
        if self._loop is None:
            self._loop = create_event_loop()
            self._thread = self._concurrency.start(self._run, self._loop, name="firesteel-event-loop")
            self._watch = EventLoopWatch(self._loop, self._concurrency)
        self._users += 1
        return self._loop

    def release(self) -> None:
        """Ends the loop and its thread after the last user."""
        self._users -= 1
        if self._users or self._loop is None:
            return
        loop, self._loop = self._loop, None
        thread, self._thread = self._thread, None
        watch, self._watch = self._watch, None
        assert thread is not None
        assert watch is not None
        watch.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_CLOSE_TIMEOUT_S)
        if thread.is_alive():
            _log.warning("The event loop did not end within %g s: a coroutine blocks it.", _CLOSE_TIMEOUT_S)

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Runs a coroutine on the loop and waits for its result; raises TimeoutError after so many seconds."""
        assert self._loop is not None
        until = float("inf") if timeout is None else self._concurrency.monotonic() + timeout
        done = self._concurrency.event()
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        future.add_done_callback(lambda _future: done.set())
        try:
            # returns to Python code now and then, so that a cancellation can interrupt it
            while not done.wait(_INTERRUPT_CHECK_S):
                if self._concurrency.monotonic() > until:
                    raise TimeoutError(f"a coroutine did not end within {timeout} s")
        except BaseException:
            future.cancel()
            raise
        return future.result()

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        # for functions that call asyncio.to_thread; with an own one it is known whom to wait for
        executor = ThreadPoolExecutor(thread_name_prefix="firesteel-event-loop-worker")
        loop.set_default_executor(executor)
        try:
            loop.run_forever()
        finally:
            _end(loop, executor.shutdown)


def _end(loop: asyncio.AbstractEventLoop, shut_down: Callable[..., None]) -> None:
    """Ends what functions left on the loop: tasks that they started themselves, generators, threads."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_CLOSE_TIMEOUT_S / 2))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        shut_down(wait=True, cancel_futures=True)
        loop.close()
