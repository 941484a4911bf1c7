"""Job snapshot: the immutable view of a job that its JobMaster publishes to other threads."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from firesteel.common.job_status import JobStatus
from firesteel.graph.execution_graph import ExecutionGraphSnapshot
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.settings import CheckpointSettings
from firesteel.jobmaster.checkpoints.statistics import CheckpointStatistics
from firesteel.jobmaster.metrics import MetricsSnapshot
from firesteel.jobmaster.model.failure import ExceptionHistoryEntry
from firesteel.jobmaster.slots.pool import SlotPoolSnapshot, SlotSnapshot
from firesteel.runtime.model.messages import RegisterSlot

__all__ = ["JobSnapshot"]


class JobSnapshot(msgspec.Struct, frozen=True):
    """Immutable, so that any thread may read it at any time. All parts are of the same moment, between two events.

    A new one is created after each event. It shares with the previous one all parts that the event has not changed: a
    heartbeat of one slot of 400 costs one tuple of 400 references.
    """

    status: JobStatus
    status_timestamps: Mapping[JobStatus, int]
    """When the job entered each status last, by the wall clock."""
    attempt: int
    execution_graph: ExecutionGraphSnapshot
    wanted_job_graph: JobGraph
    """The job at the parallelism it was asked to run with, for which there may be too few slots."""
    is_adaptive: bool
    slot_pool: SlotPoolSnapshot | None
    """The slots of the attempt, if it has asked for any."""
    past_slot_pools: tuple[SlotPoolSnapshot, ...]
    """Those of the last attempts before, oldest first."""
    exception_history: tuple[ExceptionHistoryEntry, ...]
    """Oldest first."""
    metrics: MetricsSnapshot
    checkpoints: CheckpointStatistics
    checkpoint_settings: CheckpointSettings
    retained_checkpoints: tuple[str, ...]
    """The directories of the checkpoints that are kept, oldest first."""

    @property
    def job_graph(self) -> JobGraph:
        """The job at its present parallelism."""
        return self.execution_graph.job_graph

    def live_slots(self) -> list[SlotSnapshot]:
        """The slots that are there."""
        return [] if self.slot_pool is None else self.slot_pool.live()

    def slot_at(self, slot_index: int, created: int) -> RegisterSlot | None:
        """Which process was the slot of an execution that was created then; None if it had none, or long ago.

        The executions of an attempt are made in the same moment as its slots are asked for; those of the first are
        there before anything is, at 0.
        """
        for pool in self._slot_pools():
            if (pool.requested_at == created or (not created and pool.attempt == 0)) and slot_index < pool.needed:
                return pool.slots[slot_index].registration
        return None

    def slot_of_attempt(self, slot_index: int, attempt: int) -> RegisterSlot | None:
        """Which process was a slot of an attempt of the job."""
        for pool in self._slot_pools():
            if pool.attempt == attempt and slot_index < pool.needed:
                return pool.slots[slot_index].registration
        return None

    def _slot_pools(self) -> tuple[SlotPoolSnapshot, ...]:
        """Newest first."""
        present = () if self.slot_pool is None else (self.slot_pool,)
        return (*present, *reversed(self.past_slot_pools))
