"""Single-threaded executor that makes calls one after the other."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from typing import Any

from firesteel.filesystem.stores import Stores
from firesteel.process.concurrency import BackgroundThread, Concurrency

__all__ = ["SerialWorker"]

_log = logging.getLogger(__name__)


class SerialWorker:
    """Makes calls in the order in which they were submitted, in a daemon thread that starts with the first.

    A call that never returns blocks those behind it, but neither their submitters nor the end of the process.
    What a call raises is logged, and the next one follows. All work with the given stores.
    """

    def __init__(self, concurrency: Concurrency, name: str, stores: Stores, slow_s: float = math.inf):
        self._concurrency = concurrency
        self._stores = stores
        self._name = name
        self._slow_s = slow_s
        self._calls = concurrency.queue()
        self._lock = threading.Lock()
        self._started = self._closed = False
        self._thread: BackgroundThread | None = None
        self._busy_since: float | None = None
        self._slow_call_returned: float | None = None

    @property
    def busy_for_s(self) -> float:
        """How long the call that is being made has taken so far, in seconds; 0 if none is."""
        since = self._busy_since
        return 0.0 if since is None else self._concurrency.monotonic() - since

    def was_slow(self, within_s: float) -> bool:
        """Whether a call takes ``slow_s`` or longer now, or one did that returned within so many seconds."""
        if self.busy_for_s >= self._slow_s:
            return True
        returned = self._slow_call_returned
        return returned is not None and self._concurrency.monotonic() - returned < within_s

    @property
    def is_idle(self) -> bool:
        """Whether all calls that were submitted have returned."""
        return self._calls.unfinished_tasks == 0

    def submit(self, call: Callable[..., object], *args: Any) -> bool:
        """Has a call made; False if the worker is closed. Returns at once."""
        with self._lock:
            if self._closed:
                return False
            is_first, self._started = not self._started, True
        self._calls.put((call, args))
        if is_first:
            self._thread = self._concurrency.start(self._stores.bind(self._run), name=self._name)
        return True

    def close(self, timeout_s: float) -> bool:
        """Takes no more calls and waits for those it has; False if they have not all returned in time."""
        with self._lock:
            was_closed, self._closed = self._closed, True
        if self._started and not was_closed:
            self._calls.put(None)
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            item = self._calls.get()
            try:
                if item is None:
                    return
                call, args = item
                self._busy_since = self._concurrency.monotonic()
                call(*args)
            except BaseException:  # noqa: BLE001 - the calls behind it must be made
                _log.exception("A call in %s failed", self._name)
            finally:
                self._note_end()
                self._calls.task_done()

    def _note_end(self) -> None:
        if self.busy_for_s >= self._slow_s:
            self._slow_call_returned = self._concurrency.monotonic()
        self._busy_since = None
