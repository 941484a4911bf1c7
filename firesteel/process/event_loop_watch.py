"""Finds functions that block the event loop: they call something that waits instead of awaiting it."""

from __future__ import annotations

import linecache
import logging
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from types import FrameType

    from firesteel.process.concurrency import BackgroundThread, Concurrency

__all__ = ["BLOCKED_S", "EventLoopWatch", "blocking_place"]

_log = logging.getLogger(__name__)

BLOCKED_S = 0.25
"""How long the loop must be unable to run anything else before that is reported."""
_POLL_INTERVAL_S = 0.1
_MIN_REPORT_INTERVAL_S = 60.0
"""A function is reported again after this time at the earliest."""
_JOIN_TIMEOUT_S = 5.0
_OWN_PACKAGES = ("asyncio", "selectors", "concurrent", "firesteel")


class EventLoopWatch:
    """Looks at an event loop from a thread of its own, and logs a warning with the function that blocks it.

    It has the loop call it back. If that takes too long, and the loop's thread is in the same call of the same function
    at the beginning and at the end of that time, the function blocks the loop. A loop that waits for the processor, as
    the thread of the tasks has it, is not in any function for so long.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, concurrency: Concurrency):
        self._loop = loop
        self._monotonic = concurrency.monotonic
        self._answered = concurrency.event()
        self._closed = concurrency.event()
        self._loop_thread: int | None = None
        self._reported: dict[tuple[str, str], float] = {}
        # ahead of all functions: the first one may block
        loop.call_soon_threadsafe(self._answer)
        self._thread: BackgroundThread = concurrency.start(self._run, name="firesteel-event-loop-watch")

    def close(self) -> None:
        """Ends the thread."""
        self._closed.set()
        self._thread.join(_JOIN_TIMEOUT_S)

    def _run(self) -> None:
        while not self._closed.wait(_POLL_INTERVAL_S):
            self._answered.clear()
            try:
                self._loop.call_soon_threadsafe(self._answer)
            except RuntimeError:
                return  # the loop is closed
            if self._answered.wait(_POLL_INTERVAL_S):
                continue
            first = self._innermost()
            if not self._answered.wait(BLOCKED_S) and not self._closed.is_set() and first is not None:
                self._look_again(first)
                self._await_answer()

    def _answer(self) -> None:
        self._loop_thread = threading.get_ident()
        self._answered.set()

    def _await_answer(self) -> None:
        while not self._answered.wait(_POLL_INTERVAL_S) and not self._closed.is_set():
            pass

    def _innermost(self) -> FrameType | None:
        if self._loop_thread is None:
            return None
        return _function_frame(sys._current_frames().get(self._loop_thread))

    def _look_again(self, first: FrameType) -> None:
        now = self._innermost()
        if now is None or now is not first:
            return
        name, place = blocking_place(now)
        key = (name, now.f_code.co_filename)
        at = self._monotonic()
        if at - self._reported.get(key, float("-inf")) < _MIN_REPORT_INTERVAL_S:
            return
        self._reported[key] = at
        _log.warning(
            "%s blocks the event loop: for at least %g s it has been at %s. No other call of an async function of "
            "this slot can go on meanwhile. Await an asynchronous client, or call what blocks with "
            "asyncio.to_thread().",
            name,
            BLOCKED_S,
            place,
        )


def _function_frame(frame: FrameType | None) -> FrameType | None:
    """Returns the outermost frame of a function that the loop runs: the coroutine, or a callback."""
    found = None
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(_OWN_PACKAGES) and module != "threading":
            found = frame
        frame = frame.f_back
    return found


def blocking_place(outermost: FrameType) -> tuple[str, str]:
    """Returns the name of a function and the line that it is at, as texts."""
    code = outermost.f_code
    owner = outermost.f_locals.get("self")
    name = code.co_name if owner is None else f"{type(owner).__name__}.{code.co_name}"
    line = linecache.getline(code.co_filename, outermost.f_lineno).strip()
    return name, f"{code.co_filename}:{outermost.f_lineno}" + (f" ({line})" if line else "")
