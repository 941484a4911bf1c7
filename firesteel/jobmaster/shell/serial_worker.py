"""A thread that makes calls one after the other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from firesteel.common.concurrency import BackgroundThread, Concurrency

__all__ = ["SerialWorker"]

_log = logging.getLogger(__name__)


class SerialWorker:
    """Makes calls in the order in which they were submitted, in a daemon thread that starts with the first.

    A call that never returns holds up those behind it, but neither whoever submits them nor the end of the process.
    What a call raises is logged, and the next one follows.
    """

    def __init__(self, concurrency: Concurrency, name: str):
        self._concurrency = concurrency
        self._name = name
        self._calls = concurrency.queue()
        self._lock = threading.Lock()
        self._thread: BackgroundThread | None = None
        self._closed = False

    def submit(self, call: Callable[..., object], *args: Any) -> bool:
        """Has a call made; False if the worker is closed. Returns at once."""
        with self._lock:
            if self._closed:
                return False
            self._calls.put((call, args))
            if self._thread is None:
                self._thread = self._concurrency.start(self._run, name=self._name)
            return True

    def close(self, timeout_s: float) -> bool:
        """Takes no more calls and waits for those it has; False if they have not all returned in time."""
        with self._lock:
            self._closed = True
            thread = self._thread
            self._calls.put(None)
        if thread is None:
            return True
        thread.join(timeout_s)
        return not thread.is_alive()

    def _run(self) -> None:
        while (item := self._calls.get()) is not None:
            call, args = item
            try:
                call(*args)
            except BaseException:  # noqa: BLE001 - the calls behind it must be made
                _log.exception("A call in %s failed", self._name)
