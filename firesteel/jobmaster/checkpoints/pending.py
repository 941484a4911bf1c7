"""Pending checkpoint: which tasks have acknowledged it, and with what state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum

from firesteel.jobmaster.checkpoints.plan import CheckpointPlan, PlannedOperator
from firesteel.jobmaster.checkpoints.requests import CheckpointRequest
from firesteel.jobmaster.model.task_key import TaskKey
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, SnapshotKind
from firesteel.runtime.model.state_handles import (
    UNION,
    InlineBytes,
    OperatorStateHandle,
    OperatorSubtaskState,
    TaskStateSnapshot,
    segments_of,
)

__all__ = ["AckResult", "PendingCheckpoint", "PendingStatus"]


class AckResult(Enum):
    """The result of an acknowledgement."""

    SUCCESS = "success"
    DUPLICATE = "duplicate"
    """The task has acknowledged already."""
    UNKNOWN = "unknown"
    """The task takes no part in the checkpoint."""


class PendingStatus(Enum):
    """How far a checkpoint is."""

    ACKNOWLEDGING = "acknowledging"
    """Tasks are taking their snapshots."""
    STORING = "storing"
    """All are there, and ``_metadata`` is being written."""


class PendingCheckpoint:
    """Collects what the tasks acknowledge."""

    def __init__(
        self,
        checkpoint_id: int,
        timestamp: int,
        kind: SnapshotKind,
        location: CheckpointLocation,
        request: CheckpointRequest,
        plan: CheckpointPlan,
        finished: Collection[TaskKey],
        *,
        triggered_at: int = 0,
    ):
        self.checkpoint_id = checkpoint_id
        self.timestamp = timestamp
        """When it was triggered, by the wall clock."""
        self.triggered_at = triggered_at
        """The same by the monotonic clock."""
        self.kind = kind
        self.location = location
        self.request = request
        self.status = PendingStatus.ACKNOWLEDGING
        self.finished = frozenset(finished)
        """Tasks that had finished before it was triggered."""
        self.waiting = set(plan.keys - self.finished)
        """Tasks that have not acknowledged it."""
        self.coordinators = frozenset(plan.coordinators(self.finished))
        self.plan = plan
        self._acknowledged: dict[TaskKey, TaskStateSnapshot] = {}
        self._coordinator_states: dict[str, bytes] | None = None
        self._inherited: dict[str, dict[int, OperatorSubtaskState]] = {}
        self.stored_metadata: CheckpointMetadata | None = None
        """What is being stored."""

    def acknowledge(self, task: TaskKey, state: TaskStateSnapshot) -> AckResult:
        """Takes the state of a task."""
        if task in self._acknowledged:
            return AckResult.DUPLICATE
        if task not in self.waiting:
            return AckResult.UNKNOWN
        self.waiting.discard(task)
        self._acknowledged[task] = state
        return AckResult.SUCCESS

    def acknowledge_coordinators(self, states: Mapping[str, bytes]) -> None:
        """Takes the state of the enumerators."""
        self._coordinator_states = dict(states)

    @property
    def is_fully_acknowledged(self) -> bool:
        """Whether nothing is missing but the metadata."""
        return not self.waiting and (not self.coordinators or self._coordinator_states is not None)

    def inherit_unions(self, previous: CheckpointMetadata | None) -> PlannedOperator | None:
        """Takes the union list state of subtasks that are gone, while others are not, out of the checkpoint before.

        They would be missing from the union that every subtask gets. Returns an operator for which that cannot be done.
        """
        states = {state.operator_id: state for state in previous.operators} if previous is not None else {}
        for operator, tasks in self._by_operator():
            gone = [index for index, task in enumerate(tasks) if task is None]
            if not 0 < len(gone) < len(tasks) or not any(
                _unions(task.operators.get(operator.operator_id)) for task in tasks if task is not None
            ):
                continue
            state = states.get(operator.operator_id)
            if state is None or state.parallelism != operator.parallelism:
                return operator
            self._inherited[operator.operator_id] = {
                index: OperatorSubtaskState(operator=_unions(state.subtasks.get(index))) for index in gone
            }
            if not self.kind.may_share and self.inherited_files():
                return operator  # a savepoint has all its files to itself, and so has a full checkpoint
        return None

    def inherited_files(self) -> set[str]:
        """The files of what was inherited."""
        states = (state for subtasks in self._inherited.values() for state in subtasks.values())
        return {segment.path for state in states for segment in segments_of(state)}

    def metadata(self, job_id: str, job_name: str) -> CheckpointMetadata:
        """What is to be stored: every operator of the job, those without state too."""
        return CheckpointMetadata(
            checkpoint_id=self.checkpoint_id,
            job_id=job_id,
            job_name=job_name,
            timestamp=self.timestamp,
            kind=self.kind,
            operators=tuple(self._operator_state(operator, tasks) for operator, tasks in self._by_operator()),
            channels=tuple(channel for task in self._acknowledged.values() for channel in task.channels),
        )

    def _operator_state(self, operator: PlannedOperator, tasks: list[TaskStateSnapshot | None]) -> OperatorState:
        coordinator = (self._coordinator_states or {}).get(operator.operator_id)
        return OperatorState(
            operator_id=operator.operator_id,
            uid=operator.uid,
            name=operator.name,
            parallelism=operator.parallelism,
            max_parallelism=operator.max_parallelism,
            subtasks={
                index: task.operators.get(operator.operator_id, OperatorSubtaskState())
                for index, task in enumerate(tasks)
                if task is not None
            }
            | self._inherited.get(operator.operator_id, {}),
            coordinator=None if coordinator is None else InlineBytes(coordinator),
            finished=frozenset(index for index, task in enumerate(tasks) if self._is_over(task)),
        )

    def _is_over(self, task: TaskStateSnapshot | None) -> bool:
        """Whether a task has nothing left to do, not even after a restore.

        One that has ended its work but left state, such as what is yet to be committed, must run again to deal with
        it. One that was drained ended only because it was stopped.
        """
        if task is None:
            return True
        return (
            task.finished
            and self.request.stop is None
            and not task.channels
            and all(state.is_empty for state in task.operators.values())
        )

    def _by_operator(self) -> list[tuple[PlannedOperator, list[TaskStateSnapshot | None]]]:
        tasks: dict[str, list[TaskStateSnapshot | None]] = {
            operator.operator_id: [None] * operator.parallelism for operator in self.plan.operators
        }
        for task in self.plan.tasks:
            for operator in task.operators:
                tasks[operator.operator_id][task.subtask] = self._acknowledged.get(task.key)
        return [(operator, tasks[operator.operator_id]) for operator in self.plan.operators]


def _unions(state: OperatorSubtaskState | None) -> tuple[OperatorStateHandle, ...]:
    """The user's union lists; the runtime's own, whose names begin with ``_``, can do without what is gone."""
    lists = () if state is None else state.operator
    return tuple(handle for handle in lists if handle.mode == UNION and not handle.name.startswith("_"))
