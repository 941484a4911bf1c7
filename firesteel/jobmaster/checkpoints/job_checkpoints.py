"""Checkpointing of a job, for the JobMaster: the restore point of an attempt, and the tasks that take part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Protocol

from firesteel.common.errors import CheckpointError, FiresteelError, TaskFailure, UserCodeError
from firesteel.common.job_status import JobStatus
from firesteel.graph.execution_graph import ExecutionGraph, ExecutionState
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.coordinator import CheckpointCoordinator
from firesteel.jobmaster.checkpoints.guarantees import commits
from firesteel.jobmaster.checkpoints.plan import CheckpointPlan
from firesteel.jobmaster.checkpoints.settings import CheckpointSettings
from firesteel.jobmaster.checkpoints.state_assignment import assign_state
from firesteel.jobmaster.model.end_of_job import CORRUPT_READS, is_final
from firesteel.jobmaster.model.events import MetadataFailed, MetadataStored, TriggerSavepoint
from firesteel.jobmaster.model.instructions import PartInstruction, Say, SendToSlot, TriggerTasks
from firesteel.jobmaster.model.restored_job import RestoredJob
from firesteel.jobmaster.sources.job_sources import JobSources
from firesteel.process import fault_points
from firesteel.runtime.model.assigned_state import TaskRestore
from firesteel.runtime.model.checkpoint_options import CheckpointLocation
from firesteel.runtime.model.messages import (
    AcknowledgeCheckpoint,
    DeclineCheckpoint,
    TaskAwaitsCheckpoint,
    TaskKey,
    TriggerCheckpoint,
)
from firesteel.runtime.model.state_handles import InlineBytes

__all__ = ["CheckpointMessage", "CheckpointedJob", "JobCheckpoints", "without_checkpoints"]

CheckpointMessage = AcknowledgeCheckpoint | DeclineCheckpoint | TaskAwaitsCheckpoint
"""Checkpoint messages of tasks."""

Instructions = list[PartInstruction]


class CheckpointedJob(Protocol):
    """What the checkpoints read of the JobMaster."""

    attempt: int
    execution_graph: ExecutionGraph
    sources: JobSources


class JobCheckpoints:
    """What the CheckpointCoordinator does not know: the attempts of a job, its enumerators, tasks that end.

    Most methods return instructions for the JobMaster.
    """

    def __init__(
        self,
        job: CheckpointedJob,
        coordinator: CheckpointCoordinator,
        restored: RestoredJob | None = None,
        *,
        allow_non_restored: bool = False,
        has_run: bool = False,
        is_kept: bool = False,
    ):
        self.coordinator = coordinator
        self._given = restored
        """What the job was told to start from, until it has."""
        self._job = job
        self._allow_non_restored = allow_non_restored
        self._awaiting: set[TaskKey] = set()
        """Tasks that end with the next checkpoint."""
        self._ending: dict[int, frozenset[TaskKey]] = {}
        """By checkpoint under way: the tasks that end with it."""
        self._ended: set[TaskKey] = set()
        """Tasks whose last checkpoint has completed; they are about to finish."""
        self._running = False
        self._has_run = has_run
        """Whether the job has been running, here or under an earlier leader."""
        self._is_kept = is_kept
        self._restored_id: int | None = None
        self._corrupt_restores = 0
        self._tasks: Mapping[TaskKey, TaskRestore] = {}

    @property
    def is_running(self) -> bool:
        """Whether all tasks run, so that checkpoints can be taken."""
        return self._running

    # -- an attempt ---------------------------------------------------------------------------------

    def begin_attempt(self, now: int) -> dict[str, bytes]:
        """Decides what the attempt starts from; returns the states of the enumerators."""
        self._awaiting.clear()
        self._ending.clear()
        self._ended.clear()
        self._tasks = {}
        self._restored_id = None
        given, self._given = self._given, None
        if given is not None:
            self.coordinator.restored(given.metadata, given.path, given.claim, now)
        latest = self.coordinator.latest()
        if latest is None:
            return {}
        self._restored_id = latest.checkpoint_id
        if given is None:
            self.coordinator.restored(latest.metadata, latest.path, latest.is_owned, now)
        self._tasks = assign_state(
            latest.metadata,
            self._job.execution_graph.job_graph,
            allow_non_restored=self._allow_non_restored,
            reusable=latest.is_owned,
        )
        return {
            operator.operator_id: operator.coordinator.data
            for operator in latest.metadata.operators
            if isinstance(operator.coordinator, InlineBytes)
        }

    def restore_of(self, slot_index: int) -> dict[TaskKey, TaskRestore]:
        """What the tasks of a slot start from."""
        return {
            key: self._tasks[key]
            for key in self._job.execution_graph.slots.subtasks_in(slot_index)
            if key in self._tasks
        }

    def start_if_all_run(self, now: int) -> Instructions:
        """Checkpoints begin when every task runs and every reader has been given what was restored for it."""
        if self._running or not self._all_run():
            return []
        self._running = self._has_run = True
        self._corrupt_restores = 0
        instructions = self.coordinator.start(CheckpointPlan.of(self._job.execution_graph.job_graph), now)
        for vertex in self._job.execution_graph.vertices():
            if vertex.current.state is ExecutionState.FINISHED:
                instructions += self.coordinator.task_finished((vertex.vertex_id, vertex.subtask_index), now)
        return instructions

    def end_attempt(self, reason: str, now: int) -> Instructions:
        """The attempt winds down: nothing that is under way will complete."""
        self._running = False
        return self.coordinator.stop(reason, now)

    def end_job(self, status: JobStatus, now: int) -> Instructions:
        """Retains or deletes checkpoints according to the settings."""
        return self.end_attempt(f"the job is {status.name}", now) + self.coordinator.job_ended(status, now)

    def may_restart_after(self, failure: TaskFailure) -> TaskFailure | Say | None:
        """None or a warning if another attempt makes sense after a failure, else why it does not.

        A checkpoint whose files are bad more than once is given up for the next older one. Not so if the job has
        sinks that commit: what they committed with the newer one would be written again.
        """
        if is_final(failure, has_run=self._has_run, is_kept=self._is_kept):
            return failure
        if failure.error_type != "CorruptStateError" or self._restored_id is None:
            return None
        self._corrupt_restores += 1
        if self._corrupt_restores < CORRUPT_READS:
            return None
        self._corrupt_restores = 0
        bad = self._restored_id
        self.coordinator.unusable(bad, failure.message)
        older = self.coordinator.latest()
        text = f"Checkpoint {bad} cannot be restored: {failure.message}"
        if older is None:
            return _refusal(failure, text, "There is no older checkpoint. Restore the file, or start from a savepoint.")
        if self._commits():
            hint = (
                f"Sinks have committed output with checkpoint {bad}; going back to checkpoint {older.checkpoint_id} "
                f"would write it twice. To do so anyway: -D execution.state-recovery.path={older.path}"
            )
            return _refusal(failure, text, hint)
        return Say(f"{text} Going back to checkpoint {older.checkpoint_id}, which is older.")

    def _commits(self) -> bool:
        """Whether the job has sinks that make output visible with checkpoints."""
        return commits(self._job.execution_graph.job_graph)

    # -- what happens -------------------------------------------------------------------------------

    def on_request(self, event: TriggerSavepoint, now: int) -> Instructions:
        """A user requests a savepoint or a checkpoint."""
        request = str(event.request_id)
        if event.kind.is_savepoint:
            directory = event.target_directory or ""
            return self.coordinator.trigger_savepoint(request, event.kind, directory, event.stop, now)
        return self.coordinator.trigger_checkpoint(request, now, event.kind)

    def on_metadata(self, event: MetadataStored | MetadataFailed, now: int) -> Instructions:
        """The metadata of a checkpoint was written, or was not."""
        if isinstance(event, MetadataStored):
            return self.coordinator.stored(event.checkpoint_id, event.path, now)
        return self.coordinator.store_failed(event.checkpoint_id, event.reason, now)

    def task_finished(self, vertex_id: str, subtask: int, now: int) -> Instructions:
        return self.coordinator.task_finished((vertex_id, subtask), now) if self._running else []

    def on_message(self, message: CheckpointMessage, now: int) -> Instructions:
        """A task's part in a checkpoint."""
        if isinstance(message, TaskAwaitsCheckpoint):
            self._awaiting.add((message.vertex_id, message.subtask))
            return self.start_if_all_run(now) + self._trigger_last(now)
        number, vertex_id, subtask = message.checkpoint_id, message.vertex_id, message.subtask
        if isinstance(message, AcknowledgeCheckpoint):
            return self.coordinator.acknowledge(number, vertex_id, subtask, message.state, message.metrics, now)
        return self.coordinator.decline(number, vertex_id, subtask, message.reason, now)

    def trigger(self, trigger: TriggerTasks, now: int) -> Instructions:
        """Enumerators first: a split assigned from now on reaches its reader behind the barrier."""
        checkpoint_id = trigger.checkpoint_id
        try:
            fault_points.reach("checkpoint.trigger")
            states = self._job.sources.snapshot(checkpoint_id)
        except (FiresteelError, OSError) as error:
            said = error.failure.message if isinstance(error, UserCodeError) else str(error)
            return self.coordinator.trigger_failed(checkpoint_id, f"an enumerator failed: {said}", now)
        if self._awaiting:
            self._ending[checkpoint_id] = frozenset(self._awaiting)
        by_slot: dict[int, list[TaskKey]] = defaultdict(list)
        for vertex_id, subtask in trigger.tasks:
            by_slot[self._job.execution_graph.slots.slot_of(vertex_id, subtask)].append((vertex_id, subtask))
        return self.coordinator.coordinator_states(checkpoint_id, states, now) + [
            SendToSlot(
                self._job.attempt,
                slot_index,
                TriggerCheckpoint(checkpoint_id, trigger.timestamp, trigger.options, tuple(tasks)),
            )
            for slot_index, tasks in by_slot.items()
        ]

    def completed(self, checkpoint_id: int) -> None:
        """A checkpoint has completed, and with it the tasks that waited for it or for an older one."""
        for ending in [each for each in self._ending if each <= checkpoint_id]:
            self._ended |= self._ending.pop(ending)
        self._awaiting -= self._ended

    def aborted(self, checkpoint_id: int) -> None:
        """A checkpoint was given up: the tasks that waited for it wait for another one."""
        self._ending.pop(checkpoint_id, None)

    def _trigger_last(self, now: int) -> Instructions:
        """With nothing left to do but to wait for a checkpoint, it need not wait for its time."""
        if not self._running:
            return []
        ending = self._ended.union(*self._ending.values())
        waiting = {
            (vertex.vertex_id, vertex.subtask_index)
            for vertex in self._job.execution_graph.vertices()
            if not vertex.current.state.is_terminal
        } - ending
        if waiting and waiting <= self._awaiting:
            return self.coordinator.trigger_checkpoint(None, now)
        return []

    def _all_run(self) -> bool:
        return self._job.sources.all_readers_started and all(
            vertex.current.state in (ExecutionState.RUNNING, ExecutionState.FINISHED)
            for vertex in self._job.execution_graph.vertices()
        )


def without_checkpoints(job_graph: JobGraph) -> CheckpointCoordinator:
    """The coordinator of a job without checkpoints."""

    def nowhere(_number_or_directory: int | str) -> CheckpointLocation:
        raise CheckpointError("The job takes no checkpoints.")

    return CheckpointCoordinator(
        CheckpointSettings(),
        job_graph.job_id,
        job_graph.job_name,
        location_of=nowhere,
        savepoint_location_of=nowhere,
    )


def _refusal(failure: TaskFailure, text: str, hint: str) -> TaskFailure:
    return TaskFailure(text, failure.error_type, failure.task, failure.operator, failure.uid, hint=hint)
