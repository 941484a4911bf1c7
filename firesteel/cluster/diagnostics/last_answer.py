"""Cache for answers that are slow to compute: a request that waits too long gets the previous answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Generic, TypeVar

__all__ = ["LastAnswer"]

T = TypeVar("T")


class LastAnswer(Generic[T]):
    """Computes a value in a thread; callers wait a moment for it, then take the one before.

    One thread computes at a time, however many ask. The first value is always waited for.
    """

    def __init__(self, compute: Callable[[], T], patience_s: float, name: str):
        self._compute = compute
        self._patience_s = patience_s
        self._name = name
        self._lock = threading.Lock()
        self._running: Future[T] | None = None
        self._last: Future[T] | None = None

    def get(self) -> T:
        """The value of now, or the last one that there is."""
        with self._lock:
            running = self._running
            if running is None:
                running = self._running = Future()
                threading.Thread(target=self._run, args=(running,), name=self._name, daemon=True).start()
            last = self._last
        if last is None:
            return running.result()
        try:
            return running.result(self._patience_s)
        except FutureTimeoutError:
            return last.result()

    def _run(self, future: Future[T]) -> None:
        try:
            value = self._compute()
        except BaseException as error:  # noqa: BLE001 - raised where the value is awaited
            with self._lock:
                self._running = None
            future.set_exception(error)
        else:
            with self._lock:
                self._running, self._last = None, future
            future.set_result(value)
