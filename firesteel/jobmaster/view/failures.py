"""Exception history of a job for display: the task, its location and the full failure report."""

from __future__ import annotations

import re
from dataclasses import dataclass

from firesteel.common.errors import TaskFailure
from firesteel.jobmaster.model.failure import ExceptionHistoryEntry
from firesteel.jobmaster.view.job import JobView
from firesteel.runtime.model.messages import RegisterSlot

__all__ = ["FailedTask", "failed_task", "stack_trace"]

_TASK_NAME = re.compile(r"(?P<task>(?P<vertex>.*) \((?P<subtask>\d+)/\d+\))(#\d+)?", re.DOTALL)
"""As in ``Map (1/2)#3``, the last being the number of the attempt."""


@dataclass(frozen=True, slots=True)
class FailedTask:
    """A task that failed, as Flink names it, and the slot it ran in."""

    name: str
    registration: RegisterSlot | None


def failed_task(view: JobView, entry: ExceptionHistoryEntry, failure: TaskFailure) -> FailedTask | None:
    """Whose failure it was; None if it was not that of a task."""
    if failure.task is None:
        return None
    matched = _TASK_NAME.fullmatch(failure.task)
    if matched is None:
        return FailedTask(failure.task, None)
    slot = _slot(view, entry.attempt, matched["vertex"], int(matched["subtask"]) - 1)
    return FailedTask(f"{matched['task']} - execution #{entry.attempt}", slot)


def _slot(view: JobView, attempt: int, vertex_name: str, subtask: int) -> RegisterSlot | None:
    snapshot = view.snapshot
    if snapshot is None:
        return None
    for vertex in snapshot.job_graph.vertices:
        if vertex.name == vertex_name and subtask < vertex.parallelism:
            return snapshot.slot_of_attempt(snapshot.execution_graph.slots.slot_of(vertex.id, subtask), attempt)
    return None


def stack_trace(failure: TaskFailure) -> str:
    """What happened, where, with the user's own line first, and the traceback after it."""
    described = failure.describe()
    return f"{described}\n\n{failure.traceback.rstrip()}\n" if failure.traceback else f"{described}\n"
