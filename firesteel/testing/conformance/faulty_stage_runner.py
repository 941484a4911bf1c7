"""Stage runner with faults: workers lose their cached tasks, and tasks are run twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.graph.job_graph import JobGraph
from firesteel.testing.stages import FaultKind, InProcessStageRunner, TaskFault

__all__ = ["FaultyStageRunner"]


class FaultyStageRunner(InProcessStageRunner):
    """A batch has a task that dies when it has finished, and one that breaks off; of epochs every other one has.

    After each epoch one worker is gone: its task is loaded from the checkpoint, within the same attempt.
    """

    def __init__(self) -> None:
        super().__init__([TaskFault(FaultKind.KILL, subtask=0, after_rows=None), TaskFault(FaultKind.RETRY, subtask=1)])

    def run_epoch(self, job_graph: JobGraph, epoch: Any) -> Sequence[Any]:
        """Runs an epoch with its faults."""
        number = epoch.epoch
        self.faults.clear()
        if number % 2 == 0:
            kind = (FaultKind.RETRY, FaultKind.KILL)[number // 2 % 2]
            for vertex in job_graph.vertices:
                self.faults.append(TaskFault(kind, vertex.id, number % 4 // 2, after_rows=(0, None)[number // 4 % 2]))
        messages = super().run_epoch(job_graph, epoch)
        self.forget(number % 2)
        return messages
