"""The state of a job that a JobMaster holds: status, slots, timers, and the instructions it has issued."""

from __future__ import annotations

from firesteel.common.job_status import JobStatus
from firesteel.graph.execution_graph import ExecutionGraph
from firesteel.graph.frozen_dict import FrozenDict
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.job_checkpoints import JobCheckpoints
from firesteel.jobmaster.job_snapshot import JobSnapshot
from firesteel.jobmaster.metrics import JobMetrics
from firesteel.jobmaster.model.failure import ExceptionHistory
from firesteel.jobmaster.model.instructions import Instruction, NotifyStatus, SendToSlot
from firesteel.jobmaster.model.life_cycle import may_follow
from firesteel.jobmaster.model.story import InvalidStatusTransitionError, Story
from firesteel.jobmaster.model.timers import Timer, Timers
from firesteel.jobmaster.model.wall_clock import WallClock
from firesteel.jobmaster.slots.job_slots import JobSlots
from firesteel.jobmaster.slots.pool import SlotPool, SlotPoolSnapshot, SlotState
from firesteel.jobmaster.sources.job_sources import JobSources
from firesteel.runtime.model.messages import JobMasterMessage

__all__ = ["JobRecord"]

_REMEMBERED_POOLS = 31
"""Past attempts whose slots are still known; there are fewer in the exception history."""


class JobRecord:
    """Everything that all steps of a JobMaster use. Decides nothing."""

    execution_graph: ExecutionGraph
    sources: JobSources
    slots: JobSlots
    checkpoints: JobCheckpoints
    metrics: JobMetrics
    exception_history: ExceptionHistory
    snapshot: JobSnapshot
    """The job after the last event: all that other threads may read."""
    _job_graph: JobGraph

    def __init__(self, wall_clock: WallClock) -> None:
        self._wall_clock = wall_clock
        self.status = JobStatus.INITIALIZING
        self.status_timestamps: FrozenDict[JobStatus, int] = FrozenDict()
        self.attempt = -1
        self.story = Story()
        self._timers = Timers()
        self._pool: SlotPool | None = None
        """The slots of the attempt."""
        self._past_pools: tuple[SlotPoolSnapshot, ...] = ()
        self._out: list[Instruction] = []
        self._now = 0

    @property
    def _wall(self) -> int:
        """The time of the event that is being handled, as people read it."""
        return self._wall_clock.at(self._now)

    def timers(self) -> dict[str, int]:
        """The timers that are set, by name, and when they are due by the monotonic clock."""
        return self._timers.due()

    def _publish(self) -> None:
        """Makes all effects of an event visible to readers at once."""
        coordinator = self.checkpoints.coordinator
        self.snapshot = JobSnapshot(
            self.status,
            self.status_timestamps,
            self.attempt,
            self.execution_graph.snapshot(),
            self._job_graph,
            self.slots.is_adaptive,
            None if self._pool is None else self._pool.snapshot(),
            self._past_pools,
            self.exception_history.entries(),
            self.metrics.snapshot(),
            coordinator.stats.snapshot(),
            coordinator.settings,
            coordinator.retained_paths,
        )

    def _forget_pool(self) -> None:
        """The slots of the last attempt are only shown from now on."""
        if self._pool is not None:
            self._past_pools = (*self._past_pools, self._pool.snapshot())[-_REMEMBERED_POOLS:]
        self._pool = None

    def send_to_slot(self, slot_index: int, message: JobMasterMessage) -> None:
        self._send(slot_index, message)

    def _send_to_all(self, message: JobMasterMessage) -> None:
        if self._pool is not None and not self._pool.ended:
            for slot in self._pool.live():
                self._send(slot.index, message)

    def _transition(self, new: JobStatus) -> None:
        old = self.status
        if not may_follow(old, new):
            raise InvalidStatusTransitionError(f"job from {old.name} to {new.name}", self.story)
        self.status = new
        self.status_timestamps = self.status_timestamps.merge({new: self._wall})
        self.story.add(self._wall, f"{old.name} -> {new.name}")
        self._out.append(NotifyStatus(old, new, self._wall))

    def _send(self, slot_index: int, message: JobMasterMessage) -> None:
        pool = self._expect_pool()
        if not pool.ended and pool[slot_index].state is SlotState.REGISTERED:
            self._out.append(SendToSlot(self.attempt, slot_index, message))

    def _close_sources(self) -> None:
        for failure in self.sources.close():
            self.story.add(self._wall, f"closing {failure.operator} failed: {failure.message}")

    def _set_timer(self, timer: Timer, delay: int) -> None:
        self._out.append(self._timers.set(timer, self._now + delay))

    def _keep_timer(self, timer: Timer, due: int | None) -> None:
        """Sets a timer whose time others decide, and may change with every event."""
        if due is None or self.status.is_terminal_state():
            self._cancel_timers(timer)
        elif self._timers.due().get(timer.value) != due:
            self._out.append(self._timers.set(timer, max(due, self._now)))

    def _cancel_timers(self, *timers: Timer) -> None:
        self._out += self._timers.cancel(*timers)

    def _expect_pool(self) -> SlotPool:
        if self._pool is None:
            raise InvalidStatusTransitionError(f"job in {self.status.name} needs its slots", self.story)
        return self._pool
