"""StageRunner: the interface that runs a job's vertices as stages, for batches and epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from firesteel.common.errors import FiresteelError
from firesteel.execution.stages.task_commands import BatchCommand, BatchReport, EpochCommand, EpochReport
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.messages import SlotMessage, TaskKey

__all__ = ["EpochRun", "StageError", "StageMessage", "StageRunner"]

StageMessage = SlotMessage | EpochReport | BatchReport
"""The messages of tasks: for the JobMaster, or for the host."""


class StageError(FiresteelError):
    """A run ended early. ``messages`` are those of the failed task, empty if there are none."""

    def __init__(self, message: str, messages: Sequence[StageMessage] = (), hint: str | None = None):
        super().__init__(message, hint=hint)
        self.messages = tuple(messages)


@dataclass(frozen=True)
class EpochRun:
    """One epoch of a job."""

    epoch: int
    commands: Mapping[TaskKey, EpochCommand]


class StageRunner(Protocol):
    """Runs stages, in the caller's thread. One runner serves one job, one run at a time.

    A run that fails because what runs the stages is gone, and not because of a task, ends with a HostError.
    """

    def run_batch(self, job_graph: JobGraph, commands: Mapping[TaskKey, BatchCommand]) -> Sequence[StageMessage]:
        """Runs a whole batch job; a run after a failed one may reuse the stages that had finished."""
        ...

    def run_epoch(self, job_graph: JobGraph, epoch: EpochRun) -> Sequence[StageMessage]:
        """Runs one epoch; returns the messages of the tasks, those of sources first."""
        ...

    def cancel(self, reason: str) -> None:
        """Makes a run end soon with a StageError; called from another thread."""
        ...

    def close(self, on_closed: Callable[[], Any] | None = None) -> None:
        """Makes the workers close the tasks they keep, and forget them."""
        ...
