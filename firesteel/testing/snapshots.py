"""Snapshots of operator harnesses, in memory, from which new harnesses are restored."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from firesteel.jobmaster.checkpoints.operator_state_repartitioner import repartition
from firesteel.runtime.chain.running_operator import RunningOperator
from firesteel.runtime.checkpoint.files import SnapshotFiles
from firesteel.runtime.model.assigned_state import RestoredOperator, TaskRestore
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions, SnapshotKind
from firesteel.runtime.model.elements import CheckpointBarrier
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import OperatorSubtaskState

__all__ = ["HarnessSnapshot", "take_snapshot"]

_NOWHERE = CheckpointLocation("memory", "memory")


@dataclass(frozen=True)
class HarnessSnapshot:
    """What a checkpoint would keep of an operator; picklable, and independent of the state backend.

    A harness takes from it what its subtask would get: one snapshot may start several harnesses, which together are
    the operator at another parallelism. Snapshots of several subtasks are combined first.
    """

    checkpoint_id: int
    subtasks: tuple[OperatorSubtaskState, ...]

    @property
    def parallelism(self) -> int:
        """How many subtasks it is of."""
        return len(self.subtasks)

    @staticmethod
    def combine(*snapshots: HarnessSnapshot) -> HarnessSnapshot:
        """One snapshot of what subtasks gave, in their order, for the same checkpoint."""
        if len({snapshot.checkpoint_id for snapshot in snapshots}) != 1:
            raise ValueError("Only snapshots of one checkpoint can be combined; give them the same number.")
        return HarnessSnapshot(
            snapshots[0].checkpoint_id, tuple(state for snapshot in snapshots for state in snapshot.subtasks)
        )

    def restore_for(self, operator_id: str, subtask: int, parallelism: int, max_parallelism: int) -> TaskRestore:
        """What one subtask starts with, as the JobMaster would assign it."""
        groups = KeyGroupRange.of(subtask, max_parallelism, parallelism)
        found = [state.keyed for state in self.subtasks if state.keyed is not None]
        keyed = tuple(handle for handle in found if _overlap(handle.key_groups, groups))
        lists = {number: state.operator for number, state in enumerate(self.subtasks)}
        operator = repartition(lists, self.parallelism, parallelism)[subtask]
        return TaskRestore(self.checkpoint_id, {operator_id: RestoredOperator(keyed, operator)})


def take_snapshot(chained: RunningOperator, checkpoint_id: int, timestamp: int) -> HarnessSnapshot:
    """Takes an operator's part of a checkpoint, whole and in the format that all backends read."""
    chained.prepare_snapshot_pre_barrier(checkpoint_id)
    options = CheckpointOptions(SnapshotKind.SAVEPOINT, _NOWHERE)
    barrier = CheckpointBarrier(checkpoint_id, timestamp, options)
    chained.snapshot_operator(barrier)
    pending = chained.snapshot(barrier)
    # nothing is so large that it would not stand in the handle itself
    files = SnapshotFiles(_NOWHERE, inline_threshold=sys.maxsize)
    keyed = None if pending.keyed is None else pending.keyed.write(files)
    state = OperatorSubtaskState(keyed, pending.operator.write(files))
    files.finish()
    return HarnessSnapshot(checkpoint_id, (state,))


def _overlap(one: KeyGroupRange, other: KeyGroupRange) -> bool:
    return one.start <= other.end and other.start <= one.end
