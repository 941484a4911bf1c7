"""Queries to the slots of a running job that bypass the JobMaster: stacks, thread dumps and keyed state."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.job_snapshot import JobSnapshot
from firesteel.jobmaster.model.events import AttemptEnded, Event, MessageReceived, SlotLost
from firesteel.process.concurrency import SYSTEM, BackgroundThread, Concurrency
from firesteel.runtime.model.messages import Answer, Ask, JobMasterMessage

__all__ = ["SlotQuestionError", "SlotQuestions"]

Send = Callable[[int, int, JobMasterMessage], None]


class SlotQuestionError(FiresteelError):
    """A slot did not answer: it is gone, timed out, or returned an error."""


@dataclass
class _Pending:
    attempt: int
    slot: int
    deadline: float
    future: Future[Any] = field(default_factory=Future)


class SlotQuestions:
    """Sends queries to slots and matches their answers with the callers.

    ``ask`` may be called from any thread; ``hears`` is given all that a host posts. Every future completes:
    with the answer, or because the slot or its attempt ends, or with a timeout.
    """

    def __init__(self, job: Callable[[], JobSnapshot], send: Send, concurrency: Concurrency = SYSTEM):
        self._job = job
        self._send = send
        self._concurrency = concurrency
        self._numbers = itertools.count(1)
        self._pending: dict[int, _Pending] = {}
        self._lock = threading.Lock()
        self._changed = concurrency.event()
        self._watch: BackgroundThread | None = None
        self._closed = False

    def ask(self, slot_index: int, question: Any, timeout_s: float) -> Future[Any]:
        """Asks a slot of the present attempt; the future's exception is a SlotQuestionError."""
        job = self._job()
        refusal = self._refusal(job, slot_index)
        number = next(self._numbers)
        pending = _Pending(job.attempt, slot_index, self._concurrency.monotonic() + timeout_s)
        if refusal is not None:
            pending.future.set_exception(refusal)
            return pending.future
        with self._lock:
            self._pending[number] = pending
            if self._watch is None:
                self._watch = self._concurrency.start(self._watch_deadlines, name="firesteel-questions")
        self._changed.set()
        self._send(pending.attempt, slot_index, Ask(number, question))
        return pending.future

    def _refusal(self, job: JobSnapshot, slot_index: int) -> SlotQuestionError | None:
        job_graph = job.job_graph
        if not job_graph.execution.traits.is_long_lived:
            return SlotQuestionError(
                f"Job '{job_graph.job_name}' has no long-lived tasks that could respond.",
                hint="Only pipelined jobs can be queried (execution.runtime-mode STREAMING without epochs).",
            )
        if self._closed or job.status is not JobStatus.RUNNING:
            return SlotQuestionError(
                f"Job '{job_graph.job_name}' is {job.status.name}, so its slots cannot be queried."
            )
        if not 0 <= slot_index < job.execution_graph.slots.total:
            return SlotQuestionError(f"Job '{job_graph.job_name}' has no slot {slot_index}.")
        return None

    def hears(self, event: Event) -> bool:
        """Handles an event of a host if it is an answer; returns whether it was one, which the JobMaster ignores."""
        if isinstance(event, MessageReceived):
            if isinstance(event.message, Answer):
                self._answered(event.message)
                return True
        elif isinstance(event, SlotLost):
            self._give_up(
                lambda asked: (asked.attempt, asked.slot) == (event.attempt, event.slot_index), "the slot was lost"
            )
        elif isinstance(event, AttemptEnded):
            self._give_up(lambda asked: asked.attempt <= event.attempt, "the attempt has ended")
        return False

    def close(self) -> None:
        self._closed = True
        self._give_up(lambda _asked: True, "the job is over")

    def _answered(self, answer: Answer) -> None:
        with self._lock:
            pending = self._pending.pop(answer.request_id, None)
        self._changed.set()
        if pending is None:
            return  # too late
        if answer.error is not None:
            _fail(pending, answer.error)
        else:
            _complete(pending, answer.value)

    def _give_up(self, is_meant: Callable[[_Pending], bool], why: str) -> None:
        with self._lock:
            given_up = [number for number, pending in self._pending.items() if is_meant(pending)]
            futures = [self._pending.pop(number) for number in given_up]
        self._changed.set()
        for pending in futures:
            _fail(pending, why)

    def _watch_deadlines(self) -> None:
        """Lives as long as there are questions."""
        while True:
            self._changed.clear()
            with self._lock:
                if not self._pending:
                    self._watch = None
                    return
                left = min(pending.deadline for pending in self._pending.values()) - self._concurrency.monotonic()
            if left > 0:
                self._changed.wait(left)
            now = self._concurrency.monotonic()
            self._give_up(lambda asked, now=now: asked.deadline <= now, "the request timed out")  # type: ignore[misc]


def _complete(pending: _Pending, value: Any) -> None:
    if pending.future.set_running_or_notify_cancel():
        pending.future.set_result(value)


def _fail(pending: _Pending, why: str) -> None:
    if pending.future.set_running_or_notify_cancel():
        pending.future.set_exception(SlotQuestionError(f"The request to slot {pending.slot} failed: {why}."))
