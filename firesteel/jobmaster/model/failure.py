"""Failure root cause among several failures, and the failure history of a job."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import firesteel
from firesteel.common.errors import TaskFailure, UserCodeError
from firesteel.config.redaction import Redactor

__all__ = [
    "ExceptionHistory",
    "ExceptionHistoryEntry",
    "FailureKind",
    "RootCause",
    "failure_of",
    "kind_of_task_failure",
]

_CONNECTION_ERRORS = frozenset(
    {
        "BrokenPipeError",
        "ConnectionAbortedError",
        "ConnectionError",
        "ConnectionRefusedError",
        "ConnectionResetError",
        "PeerLostError",
    }
)
_PACKAGE_DIRECTORY = str(Path(firesteel.__file__).parent)


class FailureKind(IntEnum):
    """How specific a failure is about the cause; the greater wins.

    A task that raises takes its slot down. Its peers then see a broken connection, the JobMaster a lost slot,
    and Spark a failed stage, in any order, and possibly before the task's own failure report.
    """

    PEER_LOST = 0
    ATTEMPT_ENDED = 1
    SLOT_LOST = 2
    CAUSE = 3
    HOST = 4
    """What runs the slots could not be used. The job is not to blame, and its restart strategy is not asked."""


def kind_of_task_failure(failure: TaskFailure) -> FailureKind:
    """PEER_LOST for a broken connection between slots, else CAUSE.

    A connection error with a line of user code is the user's own connection, and so a cause.
    """
    if failure.error_type.rpartition(".")[2] in _CONNECTION_ERRORS and failure.user_file is None:
        return FailureKind.PEER_LOST
    return FailureKind.CAUSE


def failure_of(
    error: BaseException, *, operator: str | None = None, uid: str | None = None, defined_at: str | None = None
) -> TaskFailure:
    """The failure of an exception raised by user code in the JobMaster, with the user's own line."""
    if isinstance(error, UserCodeError):
        return error.failure
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_PACKAGE_DIRECTORY)
    ]
    user_frame = frames[-1] if frames else None
    return TaskFailure(
        message=str(getattr(error, "message", error)),
        error_type=type(error).__name__,
        operator=operator,
        uid=uid,
        defined_at=defined_at,
        user_file=user_frame.filename if user_frame else None,
        user_line=user_frame.lineno if user_frame else None,
        user_source=user_frame.line if user_frame else None,
        hint=getattr(error, "hint", None),
        traceback="".join(traceback.format_exception(error)),
    )


@dataclass(frozen=True, slots=True)
class ExceptionHistoryEntry:
    """A failure that ended an attempt, and the failures that came with it."""

    attempt: int
    at: int
    failure: TaskFailure
    concurrent: tuple[TaskFailure, ...] = ()


class ExceptionHistory:
    """The last failures of a job (Flink's ``web.exception-history-size``), newest last."""

    _MAX_CONCURRENT = 32

    def __init__(self, size: int = 16):
        self._size = size
        self._entries: tuple[ExceptionHistoryEntry, ...] = ()

    def add(self, attempt: int, at: int, failure: TaskFailure, concurrent: Iterable[TaskFailure]) -> None:
        """An attempt ended because of the failure."""
        others = tuple(concurrent)[: self._MAX_CONCURRENT]
        entries = (*self._entries, ExceptionHistoryEntry(attempt, at, failure, others))
        self._entries = entries[max(0, len(entries) - self._size) :]

    def add_concurrent(self, failure: TaskFailure) -> None:
        """Another failure of the attempt that failed last."""
        if self._entries and len(self._entries[-1].concurrent) < self._MAX_CONCURRENT:
            self._replace_last(concurrent=(*self._entries[-1].concurrent, failure))

    def replace_cause(self, failure: TaskFailure) -> None:
        """The last entry's cause turns out to be a consequence of this failure."""
        last = self._entries[-1]
        if (last.failure.error_type, last.failure.message) != (failure.error_type, failure.message):
            self.add_concurrent(last.failure)
        self._replace_last(failure=failure)

    def entries(self) -> tuple[ExceptionHistoryEntry, ...]:
        """What is kept, oldest first."""
        return self._entries

    def _replace_last(self, **changes: Any) -> None:
        self._entries = (*self._entries[:-1], replace(self._entries[-1], **changes))


@dataclass(frozen=True, slots=True)
class _Reported:
    kind: FailureKind
    failure: TaskFailure
    at: int


class RootCause:
    """Finds out which of an attempt's failures is the cause of the others.

    Failures are collected until `conclude`; after that, a more specific one still replaces the cause.
    """

    def __init__(self, history: ExceptionHistory, redactor: Redactor | None = None):
        self.failure: TaskFailure | None = None
        """The cause of the attempt that failed last."""
        self._history = history
        self._redactor = redactor or Redactor({})
        self._kind = FailureKind.CAUSE
        self._held: list[_Reported] = []

    @property
    def is_of_host(self) -> bool:
        """Whether the cause is one that the job is not to blame for."""
        return self._kind is FailureKind.HOST

    @property
    def is_pending(self) -> bool:
        """Whether there are failures but no conclusion."""
        return bool(self._held)

    def hold(self, kind: FailureKind, failure: TaskFailure, now: int) -> None:
        """A failure of an attempt that was thought to run."""
        self._held.append(_Reported(kind, self._redactor.clean_failure(failure), now))

    def conclude(self, attempt: int) -> TaskFailure:
        """Takes the first of the most specific failures for the cause.

        The host's report on a lost slot (exit code, out of memory) completes the JobMaster's own.
        """
        best = max(self._held, key=lambda item: item.kind)
        cause = best.failure
        if best.kind is FailureKind.SLOT_LOST and not cause.traceback:
            for item in self._held:
                if item.kind is FailureKind.ATTEMPT_ENDED:
                    cause = replace(cause, traceback=item.failure.traceback or item.failure.message)
                    break
        self.failure = cause
        self._kind = best.kind
        others = [item.failure for item in self._held if item is not best and item.failure != cause]
        self._history.add(attempt, best.at, cause, others)
        self._held.clear()
        return cause

    def add(self, kind: FailureKind, failure: TaskFailure) -> None:
        """Adds a failure of an attempt that has already failed."""
        failure = self._redactor.clean_failure(failure)
        if failure == self.failure:
            return
        if kind > self._kind:
            self._kind = kind
            self.failure = failure
            self._history.replace_cause(failure)
        else:
            self._history.add_concurrent(failure)

    def replace(self, failure: TaskFailure) -> None:
        """Replaces the cause by a better description, or by the reason why the job is not restarted."""
        self.failure = failure
        self._history.replace_cause(failure)
