"""Asynchronous operations of the REST API: one request triggers them, others poll their status."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeVar
from uuid import uuid4

from firesteel.cluster.rest.request import RestError
from firesteel.common.errors import FiresteelError

__all__ = ["AsyncOperations", "Completed", "Failed", "InProgress"]

T = TypeVar("T")

RETENTION_S = 300.0
"""How long the outcome of an operation can be asked for."""
MAX_KEPT_OUTCOMES = 10_000


@dataclass(frozen=True)
class InProgress:
    """Not done yet."""


@dataclass(frozen=True)
class Completed(Generic[T]):
    """Done; ``value`` is what came of it."""

    value: T


@dataclass(frozen=True)
class Failed:
    """Ended with an error."""

    error: BaseException


class AsyncOperations(Generic[T]):
    """Operations by job and trigger id, from when they start until some time after they end."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._lock = Lock()
        self._running: set[tuple[str, str]] = set()
        self._ended: OrderedDict[tuple[str, str], tuple[float, Completed[T] | Failed]] = OrderedDict()

    def trigger(self, job_id: str, trigger_id: str | None, start: Callable[[], Future[Any]]) -> str:
        """Starts an operation, unless one with that id was started before; returns its id.

        What ``start`` raises is raised here: such an operation was never started.
        """
        if trigger_id is not None:
            trigger_id = _checked(trigger_id)
        key = (job_id, trigger_id or uuid4().hex)
        with self._lock:
            self._expire()
            if key in self._running or key in self._ended:
                return key[1]
            self._running.add(key)
        try:
            future = start()
        except BaseException:
            with self._lock:
                self._running.discard(key)
            raise
        future.add_done_callback(lambda done: self._end(key, done))
        return key[1]

    def result(self, job_id: str, trigger_id: str) -> InProgress | Completed[T] | Failed:
        """How an operation is doing; RestError 404 if there is none, or none any more."""
        key = (job_id, trigger_id)
        with self._lock:
            self._expire()
            if key in self._running:
                return InProgress()
            ended = self._ended.get(key)
        if ended is None:
            raise RestError(
                404,
                f"Operation not found under key: {trigger_id}{f' of job {job_id}' if job_id else ''}.",
                hint=f"Outcomes are kept for {RETENTION_S / 60:.0f} minutes.",
            )
        return ended[1]

    def poll(self, job_id: str, trigger_id: str) -> T | None:
        """What came of an operation, or None while it runs.

        If it failed: RestError 500 with the reason. Flink's clients take that for the failure of the operation, and
        would ask again and again for one that they cannot deserialize.
        """
        result = self.result(job_id, trigger_id)
        if isinstance(result, Failed):
            error = result.error
            message = str(error) if isinstance(error, FiresteelError) else f"{type(error).__name__}: {error}"
            raise RestError(500, message)
        return result.value if isinstance(result, Completed) else None

    def _end(self, key: tuple[str, str], done: Future[Any]) -> None:
        outcome: Completed[T] | Failed
        try:
            error = done.exception()
            outcome = Failed(error) if error is not None else Completed(done.result())
        except CancelledError:
            outcome = Failed(FiresteelError("The operation was aborted."))
        with self._lock:
            self._running.discard(key)
            self._ended[key] = (self._clock(), outcome)
            self._expire()

    def _expire(self) -> None:
        oldest = self._clock() - RETENTION_S
        while self._ended:
            at, _ = next(iter(self._ended.values()))
            if at > oldest and len(self._ended) <= MAX_KEPT_OUTCOMES:
                return
            self._ended.popitem(last=False)


def _checked(trigger_id: str) -> str:
    lowered = trigger_id.lower()
    if len(lowered) != 32 or any(digit not in "0123456789abcdef" for digit in lowered):
        raise RestError(400, f"A triggerId has 32 hexadecimal digits, not {trigger_id[:200]!r}.")
    return lowered
