"""Calls with a timeout, made in a thread of their own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from firesteel.filesystem.stores import current_stores
from firesteel.testing.conformance.errors import ConformanceError

__all__ = ["GuardedThread"]

T = TypeVar("T")


class GuardedThread:
    """Plays the thread of a task: makes one call at a time, and gives one up that does not return in time."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._calls: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._hangs_in: str | None = None
        self._thread = threading.Thread(target=self._run, name="conformance-task", daemon=True)
        self._thread.start()

    def call(self, what: str, function: Callable[..., T], *arguments: Any) -> T:
        """What the function returns or raises; ``what`` names it should it hang."""
        if self._hangs_in is not None:
            raise ConformanceError(f"The task's thread still hangs in {self._hangs_in}.")
        self._calls.put(partial(current_stores().bind(function), *arguments))
        try:
            result, error = self._results.get(timeout=self._timeout_s)
        except queue.Empty:
            self._hangs_in = what
            raise ConformanceError(
                f"{what} did not return within {self._timeout_s:g} s. All tasks of a slot share one thread: as long as "
                "a connector waits, no other task goes on and no checkpoint is taken. Do what waits in a thread of its "
                "own."
            ) from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    @property
    def hangs(self) -> bool:
        """Whether a call has not returned."""
        return self._hangs_in is not None

    def close(self) -> None:
        """Ends the thread, unless it hangs."""
        self._calls.put(None)
        if not self.hangs:
            self._thread.join(self._timeout_s)

    def _run(self) -> None:
        while True:
            call = self._calls.get()
            if call is None:
                return
            try:
                self._results.put((call(), None))
            except BaseException as error:  # noqa: BLE001 - raised where the call was asked for
                self._results.put((None, error))
