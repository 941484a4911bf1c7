"""What a JobMaster keeps of its job, and how it speaks: its status, slots and timers, and the instructions it gives."""

from __future__ import annotations

from collections import deque

from firesteel.common.job_status import JobStatus
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.job_checkpoints import CheckpointInstruction
from firesteel.jobmaster.model.instructions import Instruction, NotifyStatus, SendToSlot
from firesteel.jobmaster.model.life_cycle import may_follow
from firesteel.jobmaster.model.story import InvalidStatusTransitionError, Story
from firesteel.jobmaster.model.timers import Timer, Timers
from firesteel.jobmaster.model.wall_clock import WallClock
from firesteel.jobmaster.slots.pool import Slot, SlotPool, SlotState
from firesteel.jobmaster.sources.job_sources import JobSources
from firesteel.runtime.model.messages import JobMasterMessage, RegisterSlot

__all__ = ["JobRecord"]

_REMEMBERED_POOLS = 32
"""Attempts whose slots are still known; there are fewer in the exception history."""


class JobRecord:
    """Everything that all steps of a JobMaster use. Decides nothing."""

    _job_graph: JobGraph
    sources: JobSources

    def __init__(self, wall_clock: WallClock) -> None:
        self._wall_clock = wall_clock
        self.status = JobStatus.INITIALIZING
        self.status_timestamps: dict[JobStatus, int] = {}
        self.attempt = -1
        self.story = Story()
        self._timers = Timers()
        self._slot_pool: SlotPool | None = None
        self._pools: deque[tuple[int, SlotPool]] = deque(maxlen=_REMEMBERED_POOLS)
        self._out: list[Instruction] = []
        self._now = 0

    @property
    def _wall(self) -> int:
        """The time of the event that is being handled, as people read it."""
        return self._wall_clock.at(self._now)

    def timers(self) -> dict[str, int]:
        """The timers that are set, by name, and when they are due by the monotonic clock."""
        return self._timers.due()

    @property
    def _pool(self) -> SlotPool | None:
        """The slots of the attempt."""
        return self._slot_pool

    @_pool.setter
    def _pool(self, pool: SlotPool | None) -> None:
        self._slot_pool = pool
        if pool is not None:
            self._pools.append((self._wall, pool))

    @property
    def wanted_job_graph(self) -> JobGraph:
        """The job at the parallelism it was asked to run with, for which there may be too few slots."""
        return self._job_graph

    def queued_slots(self) -> SlotPool | None:
        """What the job waits for, if other jobs hold the slots it needs."""
        pool = self._slot_pool
        return pool if pool is not None and not pool.ended and pool.is_queued else None

    def slots_in_use(self) -> list[RegisterSlot]:
        """The slots that are there now, for whoever shows the job."""
        pool = self._slot_pool
        if pool is None:
            return []
        return [slot.registration for slot in pool.live() if slot.registration is not None]

    def live_slots(self) -> list[Slot]:
        """The same, each with what its process said of itself last."""
        pool = self._slot_pool
        return [] if pool is None else pool.live()

    def slot_at(self, slot_index: int, created: int) -> RegisterSlot | None:
        """Which process was the slot of an execution that was created then; None if it had none, or long ago.

        The executions of an attempt are made in the same moment as its slots are asked for; those of the first are
        there before anything is, at 0.
        """
        for requested, pool in reversed(list(self._pools)):
            if (requested == created or (not created and pool.attempt == 0)) and slot_index in pool:
                return pool[slot_index].registration
        return None

    def slot_of_attempt(self, slot_index: int, attempt: int) -> RegisterSlot | None:
        """Which process was a slot of an attempt of the job."""
        for _, pool in reversed(list(self._pools)):
            if pool.attempt == attempt and slot_index in pool:
                return pool[slot_index].registration
        return None

    def send_to_slot(self, slot_index: int, message: JobMasterMessage) -> None:
        """Sends to one slot."""
        self._send(slot_index, message)

    def send_to_all(self, message: JobMasterMessage) -> None:
        """Sends to every slot that is there."""
        if self._pool is not None and not self._pool.ended:
            for slot in self._pool.live():
                self._send(slot.index, message)

    def instruct(self, instruction: CheckpointInstruction) -> None:
        """Passes an instruction of the checkpoints to the shell."""
        self._out.append(instruction)

    def _transition(self, new: JobStatus) -> None:
        old = self.status
        if not may_follow(old, new):
            raise InvalidStatusTransitionError(f"job from {old.name} to {new.name}", self.story)
        self.status = new
        self.status_timestamps[new] = self._wall
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
