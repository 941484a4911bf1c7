"""The slots of a job as its JobMaster sees them: with how many an attempt starts, and when another one is to follow."""

from __future__ import annotations

from typing import Protocol

from firesteel.common.errors import NotEnoughSlotsError, TaskFailure
from firesteel.graph.execution import JobType
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.slots import slot_counts
from firesteel.jobmaster.model.instructions import Say
from firesteel.jobmaster.model.settings import AdaptiveSettings
from firesteel.jobmaster.slots.adaptive_scheduler import (
    AdaptiveScheduler,
    GiveUp,
    Rescale,
    SchedulingDecision,
    StartWith,
    TakeCheckpoint,
    Withdraw,
)

__all__ = ["JobSlots", "ScheduledJob"]


class ScheduledJob(Protocol):
    """What the scheduler asks of the JobMaster."""

    def request_slots(self, slots: int) -> None:
        """Starts the attempt with so many slots."""
        ...

    def restart(self, reason: str) -> None:
        """Ends the attempt and begins the next one, although nothing has failed."""
        ...

    def take_checkpoint(self) -> None:
        """Takes a checkpoint as soon as possible."""
        ...

    def fail_job(self, failure: TaskFailure) -> None:
        """The job cannot go on like this."""
        ...

    def instruct(self, instruction: Say) -> None:
        """Passes an instruction to the shell."""
        ...


class JobSlots:
    """Asks for all slots a job wants or, with the adaptive scheduler, for as many as make sense."""

    def __init__(self, job: ScheduledJob, job_graph: JobGraph, settings: AdaptiveSettings | None):
        groups = slot_counts(job_graph).values()
        self._job = job
        self._wanted = sum(groups)
        self._scheduler: AdaptiveScheduler | None = None
        # a batch job has no checkpoints that it could be rescaled from
        if settings is not None and job_graph.job_type is JobType.STREAMING:
            self._scheduler = AdaptiveScheduler(groups, settings)

    @property
    def is_adaptive(self) -> bool:
        """Whether the number of slots there are matters."""
        return self._scheduler is not None

    def rescaled(self, job_graph: JobGraph) -> None:
        """The job wants other numbers of slots from its next attempt on."""
        groups = slot_counts(job_graph).values()
        self._wanted = sum(groups)
        if self._scheduler is not None:
            self._scheduler.want(groups)

    def begin_attempt(self, now: int) -> None:
        """An attempt is to start."""
        if self._scheduler is None:
            self._job.request_slots(self._wanted)
        else:
            self._scheduler.wait_for_slots(now)

    def end_attempt(self) -> None:
        """The attempt winds down."""
        if self._scheduler is not None:
            self._scheduler.stopped()

    def available(self, slots: int) -> None:
        """So many slots are there for the job."""
        if self._scheduler is not None:
            self._scheduler.slots_available(slots)

    def checkpoint_ended(self, *, completed: bool) -> None:
        """A checkpoint has completed, or was given up."""
        if self._scheduler is None:
            return
        if completed:
            self._scheduler.checkpoint_completed()
        else:
            self._scheduler.checkpoint_failed()

    def step(self, now: int, *, tasks_run: bool) -> int | None:
        """Does what the scheduler decides now; returns when it has to be asked again."""
        scheduler = self._scheduler
        if scheduler is None:
            return None
        if tasks_run and scheduler.is_starting:
            scheduler.executing(now)
        while (decision := scheduler.decide(now)) is not None:
            self._carry_out(decision)
        return scheduler.next_due()

    def _carry_out(self, decision: SchedulingDecision) -> None:
        if isinstance(decision, StartWith):
            self._job.request_slots(decision.slots)
        elif isinstance(decision, Withdraw):
            self._job.restart(f"of the {decision.slots} slots that were asked for, {decision.available} are left")
        elif isinstance(decision, TakeCheckpoint):
            self._job.take_checkpoint()
        elif isinstance(decision, Rescale):
            self._job.restart(f"the job is rescaled from {decision.before} to {decision.slots} slots")
        elif isinstance(decision, GiveUp):
            self._job.fail_job(_too_few(decision))
        else:
            self._job.instruct(
                Say(
                    f"The job runs with {decision.slots} of the {self._wanted} slots it wants. There are "
                    f"{decision.available} now, but without checkpoints it would have to begin anew to use them, so it "
                    "goes on as it is. (Checkpoints are taken if execution.checkpointing.interval is set.)"
                )
            )


def _too_few(decision: GiveUp) -> TaskFailure:
    error = NotEnoughSlotsError(
        decision.needed,
        decision.available,
        decision.waited / 1000,
        hint="Give the cluster more cores, or raise jobmanager.adaptive-scheduler.submission.resource-wait-timeout.",
    )
    return TaskFailure(error.message, error_type="NotEnoughSlotsError", hint=error.hint, cause=error)
