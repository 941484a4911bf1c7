"""Adaptive scheduler, as in Flink: how many slots a job starts with, and when it restarts to use more. No I/O."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import TypeAlias

from firesteel.common.errors import NotEnoughSlotsError, TaskFailure
from firesteel.graph.rescaling import parallelism_limit, slots_at
from firesteel.jobmaster.model.instructions import FailJob, RequestSlots, RestartJob, Say, TakeCheckpoint
from firesteel.jobmaster.model.settings import AdaptiveSettings

__all__ = ["AdaptiveScheduler", "SchedulingInstruction"]

SchedulingInstruction: TypeAlias = RequestSlots | RestartJob | TakeCheckpoint | FailJob | Say
"""The decisions of the scheduler."""


class _Phase(Enum):
    IDLE = "idle"
    WAITING = "waiting for slots"
    STARTING = "slots were requested"
    EXECUTING = "executing"


class AdaptiveScheduler:
    """Events in (methods that take the time), instructions out of `decide`; `next_due` is the time of the next call.

    *Waiting*: with all desired slots the job starts at once. With fewer, but enough for parallelism 1, it starts
    when it could have been running for the submission's stabilization timeout; at the latest after the wait timeout.

    *Executing*: more slots are used once the job has run for the cooldown, and either all desired slots are there,
    or the stabilization timeout is over since it could have used more. Then a checkpoint is taken, and the job is
    rescaled when one completes. Should too many fail, or none complete in time, an older one has to do.
    Fewer slots are no matter here: the loss of a slot is a failure, and the job waits again.

    Unlike in Flink the checkpoint need not be a periodic one, and ``max-delay`` counts from when it is asked for.
    """

    def __init__(self, groups: Collection[int], settings: AdaptiveSettings):
        self.settings = settings
        self._groups = tuple(groups)
        self._wanted = sum(groups)
        self._phase = _Phase.IDLE
        self._available: int | None = None
        self._usable = 0
        """How many slots the job would take of those there are; 0 if they are not enough for parallelism 1."""
        self._since = 0
        self._is_stable = False
        self._sufficient_since: int | None = None
        self._slots = 0
        self._more_since: int | None = None
        self._asked_at: int | None = None
        self._completed = False
        self._failed = 0
        self._said = False

    # -- what happens -------------------------------------------------------------------------------

    def slots_available(self, slots: int) -> None:
        """So many slots are there for the job, those it has included."""
        self._available = slots
        limit = parallelism_limit(self._groups, slots)
        self._usable = 0 if limit is None else slots_at(self._groups, limit)

    def want(self, groups: Collection[int]) -> None:
        """The job's slot sharing groups have other widths from now on."""
        self._groups = tuple(groups)
        self._wanted = sum(groups)
        if self._available is not None:
            self.slots_available(self._available)

    def wait_for_slots(self, now: int) -> None:
        """An attempt is to start. One that follows a rescaling takes what is there without waiting for more."""
        self._phase = _Phase.WAITING
        self._since = now
        self._sufficient_since = None

    def executing(self, now: int) -> None:
        """All tasks of the attempt run."""
        if self._phase is _Phase.STARTING:
            self._phase = _Phase.EXECUTING
            self._since = now
            self._forget_more_slots()

    def stopped(self) -> None:
        """The attempt winds down."""
        self._phase = _Phase.IDLE

    def checkpoint_completed(self) -> None:
        self._completed = True

    def checkpoint_failed(self) -> None:
        self._failed += 1

    # -- what to do about it ------------------------------------------------------------------------

    @property
    def is_starting(self) -> bool:
        """Whether an attempt has been started whose tasks do not all run yet."""
        return self._phase is _Phase.STARTING

    @property
    def usable(self) -> int:
        """How many slots the job would take of those there are; 0 if they are not enough for parallelism 1."""
        return self._usable

    def decide(self, now: int) -> SchedulingInstruction | None:
        """What is to be done now; to be asked again until it is nothing."""
        if self._phase is _Phase.WAITING:
            return self._consider_starting(now)
        if self._phase is _Phase.STARTING and self._available is not None and self._available < self._slots:
            self._phase = _Phase.IDLE
            return RestartJob(f"of the {self._slots} requested slots, {self._available} are left")
        if self._phase is _Phase.EXECUTING:
            return self._consider_rescaling(now)
        return None

    def next_due(self) -> int | None:
        """When time alone may change the decision."""
        due: list[int] = []
        if self._phase is _Phase.WAITING:
            if self.settings.resource_wait_timeout >= 0:
                due.append(self._since + self.settings.resource_wait_timeout)
            if self._sufficient_since is not None:
                due.append(self._sufficient_since + self.settings.submission_stabilization_timeout)
        elif self._phase is _Phase.EXECUTING and self._more_since is not None:
            if self._asked_at is None:
                due.append(self._ready_at(self._more_since))
            else:
                due.append(self._asked_at + self.settings.max_delay)
        return min(due, default=None)

    def _consider_starting(self, now: int) -> SchedulingInstruction | None:
        settings, usable = self.settings, self._usable
        if usable == 0:
            self._sufficient_since = None
        elif self._sufficient_since is None:
            self._sufficient_since = now
        is_over = 0 <= settings.resource_wait_timeout <= now - self._since
        if usable:
            assert self._sufficient_since is not None
            waited = now - self._sufficient_since
            is_stable = self._is_stable or waited >= settings.submission_stabilization_timeout
            if usable == self._wanted or is_stable or is_over:
                self._phase = _Phase.STARTING
                self._is_stable = False
                self._slots = usable
                return RequestSlots(usable)
        elif is_over:
            self._phase = _Phase.IDLE
            return FailJob(self._too_few(now))
        return None

    def _consider_rescaling(self, now: int) -> SchedulingInstruction | None:
        if self._usable <= self._slots:
            self._forget_more_slots()
            return None
        if not self.settings.checkpointing:
            said, self._said = self._said, True
            return None if said else Say(self._cannot_scale_up())
        if self._more_since is None:
            self._more_since = now
            self._failed = 0
        if now < self._ready_at(self._more_since):
            return None
        if self._asked_at is None:
            self._asked_at = now
            self._completed = False
            return TakeCheckpoint()
        is_late = now - self._asked_at >= self.settings.max_delay
        if self._completed or is_late or self._failed >= self.settings.max_checkpoint_failures:
            self._phase = _Phase.IDLE
            self._is_stable = True
            return RestartJob(f"the job is rescaled from {self._slots} to {self._usable} slots")
        return None

    def _ready_at(self, more_since: int) -> int:
        cool = self._since + self.settings.cooldown
        return cool if self._usable == self._wanted else max(cool, more_since + self.settings.stabilization_timeout)

    def _forget_more_slots(self) -> None:
        self._more_since = None
        self._asked_at = None

    def _too_few(self, now: int) -> TaskFailure:
        error = NotEnoughSlotsError(
            len(self._groups),
            self._available or 0,
            (now - self._since) / 1000,
            hint="Give the cluster more cores, or raise "
            "jobmanager.adaptive-scheduler.submission.resource-wait-timeout.",
        )
        return TaskFailure(error.message, error_type="NotEnoughSlotsError", hint=error.hint, cause=error)

    def _cannot_scale_up(self) -> str:
        return (
            f"The job runs with {self._slots} of {self._wanted} requested slots. {self._available} are available now, "
            "but without checkpoints the job would have to start from the beginning to use them, so it is not "
            "rescaled. (Set execution.checkpointing.interval to enable checkpoints.)"
        )
