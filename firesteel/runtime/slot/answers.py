"""Handlers of the queries that the JobMaster forwards to a slot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.process.concurrency import SYSTEM, BackgroundThread, Concurrency
from firesteel.runtime.model.messages import Answer, Ask

if TYPE_CHECKING:
    from firesteel.runtime.task.task import Task

__all__ = ["AskedSlot", "SlotAnswers", "SlotQuestion", "TaskQuestion"]


@dataclass(frozen=True)
class AskedSlot:
    """A slot as the thread sees it that answers a question beside the mailbox."""

    thread_id: int
    """The mailbox thread."""
    tasks: Sequence[Task]
    is_over: threading.Event
    """Set when the slot ends: waiting threads give up."""


class SlotQuestion(Protocol):
    """A question answered in a thread of its own. Is picklable, and its answer is plain data."""

    def answer(self, slot: AskedSlot) -> Any:
        """The answer; may take its time."""
        ...


class TaskQuestion(Protocol):
    """A question about a task, answered in the mailbox between two batches. Is picklable, its answer plain data."""

    vertex_id: str
    subtask: int

    def answer_of(self, task: Task) -> Any:
        """The answer; must not take long."""
        ...


class SlotAnswers:
    """Answers queries to a slot. An error is returned as an answer, and never fails a task."""

    def __init__(
        self,
        attempt: int,
        slot_index: int,
        send: Callable[[Answer], None],
        act: Callable[[Task, Callable[[], None]], None],
        concurrency: Concurrency = SYSTEM,
    ):
        """``act`` runs a callback for a task between two batches."""
        self._attempt = attempt
        self._slot_index = slot_index
        self._send = send
        self._act = act
        self._tasks: Sequence[Task] = ()
        self._thread_id = 0
        self._concurrency = concurrency
        self._is_over = concurrency.event()
        self._lock = threading.Lock()
        self._threads: list[BackgroundThread] = []

    def open(self, tasks: Sequence[Task]) -> None:
        """The tasks are there; called in the mailbox thread."""
        self._tasks = tasks
        self._thread_id = threading.get_ident()

    def close(self) -> None:
        """No more answers are sent."""
        with self._lock:
            self._is_over.set()
        for thread in self._threads:
            thread.join(5.0)

    def beside(self, ask: Ask) -> bool:
        """Takes a question that can be answered beside the mailbox, from any thread; False for one that cannot."""
        if not hasattr(ask.question, "answer"):
            return False
        with self._lock:
            if not self._is_over.is_set():
                self._threads = [thread for thread in self._threads if thread.is_alive()]
                self._threads.append(self._concurrency.start(self._answer_beside, ask, name="firesteel-slot-answer"))
        return True

    def ask(self, ask: Ask) -> None:
        """Takes a question about a task; called in the mailbox thread."""
        question: TaskQuestion = ask.question
        for task in self._tasks:
            if (task.descriptor.vertex_id, task.descriptor.subtask) == (question.vertex_id, question.subtask):
                if task.finished:
                    self._tell(ask, error=f"task {task.descriptor.name_with_subtask} has finished")
                else:
                    self._act(task, partial(self._answer, ask, partial(question.answer_of, task)))
                return
        self._tell(ask, error=f"subtask {question.subtask} of vertex {question.vertex_id} does not run in this slot")

    def _answer_beside(self, ask: Ask) -> None:
        slot = AskedSlot(self._thread_id, self._tasks, self._is_over)
        self._answer(ask, partial(ask.question.answer, slot))

    def _answer(self, ask: Ask, answer: Callable[[], Any]) -> None:
        try:
            value = answer()
        except Exception as error:  # noqa: BLE001 - functions and values of the user may raise anything
            self._tell(ask, error=f"{type(error).__name__}: {error}")
        else:
            self._tell(ask, value)

    def _tell(self, ask: Ask, value: Any = None, error: str | None = None) -> None:
        if not self._is_over.is_set():
            self._send(Answer(self._attempt, self._slot_index, ask.request_id, value, error))
