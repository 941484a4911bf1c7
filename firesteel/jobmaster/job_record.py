"""What a JobMaster keeps of its job, and how it speaks: its status, slots and timers, and the instructions it gives."""

from __future__ import annotations

from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.instructions import Instruction, NotifyStatus, SendToSlot
from firesteel.jobmaster.job_checkpoints import CheckpointInstruction
from firesteel.jobmaster.life_cycle import may_follow
from firesteel.jobmaster.slot_pool import SlotPool, SlotState
from firesteel.jobmaster.source_coordinator import SourceCoordinators
from firesteel.jobmaster.story import InvalidStatusTransitionError, Story
from firesteel.jobmaster.timers import Timer, Timers
from firesteel.runtime.messages import JobMasterMessage

__all__ = ["JobRecord"]


class JobRecord:
    """Everything that all steps of a JobMaster use. Decides nothing."""

    def __init__(self) -> None:
        self.status = JobStatus.INITIALIZING
        self.status_timestamps: dict[JobStatus, int] = {}
        self.attempt = -1
        self.story = Story()
        self._timers = Timers()
        self._pool: SlotPool | None = None
        self._sources: SourceCoordinators | None = None
        self._out: list[Instruction] = []
        self._now = 0

    def timers(self) -> dict[str, int]:
        """The timers that are set, by name, and when they are due."""
        return self._timers.due()

    @property
    def sources(self) -> SourceCoordinators | None:
        """The enumerators of the attempt."""
        return self._sources

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
        self.status_timestamps[new] = self._now
        self.story.add(self._now, f"{old.name} -> {new.name}")
        self._out.append(NotifyStatus(old, new, self._now))

    def _send(self, slot_index: int, message: JobMasterMessage) -> None:
        pool = self._expect_pool()
        if not pool.ended and pool[slot_index].state is SlotState.REGISTERED:
            self._out.append(SendToSlot(self.attempt, slot_index, message))

    def _close_sources(self) -> None:
        if self._sources is not None:
            for failure in self._sources.close():
                self.story.add(self._now, f"closing {failure.operator} failed: {failure.message}")
            self._sources = None

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
