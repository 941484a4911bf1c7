"""State of a job's tasks between epochs: their next commands and their state handles. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from firesteel.execution.stages.task_commands import EpochCommand, StageTaskDescriptor
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.pending import PendingCheckpoint
from firesteel.jobmaster.checkpoints.plan import CheckpointPlan
from firesteel.jobmaster.checkpoints.requests import CheckpointRequest
from firesteel.jobmaster.checkpoints.state_assignment import assign_state
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.model.assigned_state import TaskRestore
from firesteel.runtime.model.messages import (
    AddSplits,
    AlignWatermark,
    ClientAck,
    Deploy,
    JobMasterMessage,
    NoMoreSplits,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    ReaderEvent,
    TaskKey,
    TriggerCheckpoint,
)
from firesteel.runtime.model.state_handles import TaskStateSnapshot

__all__ = ["EpochTasks", "PlannedEpoch"]


@dataclass
class PlannedEpoch:
    """An epoch that was triggered: messages to tasks before the trigger belong to it, later ones do not.

    The enumerators' part of the checkpoint is as it was at the trigger: splits assigned afterwards are for the next.
    """

    trigger: TriggerCheckpoint
    messages: dict[TaskKey, list[JobMasterMessage]]
    finished: frozenset[TaskKey]
    """Tasks that take no part in the checkpoint any more."""
    states: dict[TaskKey, TaskStateSnapshot] = field(default_factory=dict)
    """What the tasks acknowledged."""

    @property
    def number(self) -> int:
        """That of its checkpoint."""
        return self.trigger.checkpoint_id


class EpochTasks:
    """Keeps, for all tasks of one attempt, what a slot would keep for them.

    A task lives in a worker from epoch to epoch, and another worker may have to load it at any time. So what it was
    sent and does not keep with its state (that there are no more splits, the alignment limit) is repeated with
    every epoch.
    """

    def __init__(self, job_graph: JobGraph, descriptors: Mapping[TaskKey, StageTaskDescriptor]):
        self.descriptors = dict(descriptors)
        self.finished: set[TaskKey] = set()
        self.sources: dict[TaskKey, str] = {
            (vertex.id, subtask): vertex.head.node.operator_id
            for vertex in job_graph.vertices
            if vertex.is_source
            for subtask in range(vertex.parallelism)
        }
        """The subtasks of sources, with their operator ids."""
        self.planned: list[PlannedEpoch] = []
        """Epochs that were triggered and have not begun, in order."""
        self._job_graph = job_graph
        self._plan = CheckpointPlan.of(job_graph)
        self._readers = {(operator, task[1]): task for task, operator in self.sources.items()}
        self._told: dict[TaskKey, list[JobMasterMessage]] = {task: [] for task in self.descriptors}
        self._no_more: dict[TaskKey, NoMoreSplits] = {}
        self._aligned: dict[TaskKey, AlignWatermark] = {}
        self._deploy: Deploy | None = None
        self._last = 0
        self._version: int | None = None
        self._restore: Mapping[TaskKey, TaskRestore] = {}
        self._is_restorable = True
        self._metadata: CheckpointMetadata | None = None

    # -- messages of the JobMaster --------------------------------------------------------------------

    def deploy(self, message: Deploy) -> None:
        """What the tasks of a slot start from."""
        self._restore = {**self._restore, **message.restore}
        # every worker that loads a task makes sure that it sees the same checkpoint directory
        self._deploy = replace(message, peers={}, restore={})

    def tell(self, tasks: Iterable[TaskKey], message: JobMasterMessage) -> TaskKey | None:
        """Keeps a message for the tasks of a slot; returns the task for which it is something to do."""
        if isinstance(message, (AddSplits, NoMoreSplits, ReaderEvent, AlignWatermark)):
            task = self._readers[message.operator_id, message.subtask]
            self._told[task].append(message)
            return task if self._is_work(task, message) else None
        if isinstance(message, (NotifyCheckpointComplete, NotifyCheckpointAborted)):
            for task in tasks:
                self._told[task].append(message)
        else:
            # what the client takes is no matter between epochs
            assert isinstance(message, ClientAck), message
        return None

    def with_work(self) -> list[TaskKey]:
        """The readers that get new messages with the next epoch."""
        return [task for task in self.sources if any(self._is_work(task, message) for message in self._told[task])]

    def _is_work(self, task: TaskKey, message: JobMasterMessage) -> bool:
        if isinstance(message, AlignWatermark):
            return self._aligned.get(task) != message
        return isinstance(message, (AddSplits, NoMoreSplits, ReaderEvent))

    def plan(self, trigger: TriggerCheckpoint) -> bool:
        """Triggers an epoch; False if it was already triggered: every slot gets the trigger."""
        if trigger.checkpoint_id <= self._last:
            return False
        self._last = trigger.checkpoint_id
        told, self._told = self._told, {task: [] for task in self._told}
        self.planned.append(PlannedEpoch(trigger, told, frozenset(self.finished)))
        return True

    def drop(self, number: int) -> None:
        """Withdraws an epoch that has not begun: its messages to tasks are for the next one."""
        for place, epoch in enumerate(self.planned):
            if epoch.number == number:
                del self.planned[place]
                following = self.planned[place].messages if place < len(self.planned) else self._told
                for task, messages in epoch.messages.items():
                    following[task][:0] = messages
                return

    # -- an epoch -----------------------------------------------------------------------------------

    def commands(
        self, epoch: PlannedEpoch, quota: int, budget_ms: int, *, is_last: bool = False
    ) -> dict[TaskKey, EpochCommand]:
        """What every task is to do.

        Those that have finished get a command too, without the trigger: they must notify new consumers.
        """
        commands = {}
        for task, descriptor in self.descriptors.items():
            messages = self._said_again(task, epoch.messages[task])
            if task not in epoch.finished:
                messages.append(replace(epoch.trigger, tasks=(task,)))
            commands[task] = EpochCommand(
                descriptor,
                epoch.number,
                self._version,
                self._restore.get(task),
                self._is_restorable,
                tuple(messages),
                quota,
                budget_ms,
                is_last,
            )
        return commands

    def _said_again(self, task: TaskKey, messages: Sequence[JobMasterMessage]) -> list[JobMasterMessage]:
        known = (self._deploy, self._no_more.get(task), self._aligned.get(task))
        for message in messages:
            if isinstance(message, NoMoreSplits):
                self._no_more[task] = message
            elif isinstance(message, AlignWatermark):
                self._aligned[task] = message
        return [*(message for message in known if message is not None), *messages]

    def has_all_splits(self, task: TaskKey) -> bool:
        """Whether a reader has been notified that there are no more splits."""
        return task in self._no_more

    def ran(self, epoch: PlannedEpoch) -> None:
        """All tasks have run the epoch: their state is that after it, and until it is complete only they have it."""
        self._version = epoch.number
        self._is_restorable = False

    def completed(self, epoch: PlannedEpoch) -> None:
        """The checkpoint of the last epoch is complete: from now on a task can be loaded from there."""
        assert self._version == epoch.number
        trigger = epoch.trigger
        pending = PendingCheckpoint(
            epoch.number,
            trigger.timestamp,
            trigger.options.kind,
            trigger.options.location,
            CheckpointRequest(trigger.options.kind),
            self._plan,
            epoch.finished,
        )
        for task, state in epoch.states.items():
            pending.acknowledge(task, state)
        if pending.inherit_unions(self._metadata) is not None:
            return  # union lists of subtasks that had finished before this attempt began
        self._metadata = pending.metadata(self._job_graph.job_id, self._job_graph.job_name)
        self._restore = assign_state(self._metadata, self._job_graph, allow_non_restored=True, reusable=True)
        self._is_restorable = True
