"""Scheduler facade of the JobMaster: the slots an attempt starts with, and when the job is rescaled."""

from __future__ import annotations

from firesteel.graph.execution import JobType
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.slots import slot_counts
from firesteel.jobmaster.model.instructions import RequestSlots
from firesteel.jobmaster.model.settings import AdaptiveSettings
from firesteel.jobmaster.slots.adaptive_scheduler import AdaptiveScheduler, SchedulingInstruction

__all__ = ["JobSlots"]


class JobSlots:
    """Requests all slots of a job or, with the adaptive scheduler, as many as are useful."""

    def __init__(self, job_graph: JobGraph, settings: AdaptiveSettings | None):
        groups = slot_counts(job_graph).values()
        self._wanted = sum(groups)
        self._scheduler: AdaptiveScheduler | None = None
        # a batch job has no checkpoints that it could be rescaled from
        if settings is not None and job_graph.job_type is JobType.STREAMING:
            self._scheduler = AdaptiveScheduler(groups, settings)

    @property
    def is_adaptive(self) -> bool:
        """Whether the number of slots there are matters."""
        return self._scheduler is not None

    @property
    def usable(self) -> int | None:
        """How many of the slots there are the job would take; None if it requests all of its slots regardless."""
        return None if self._scheduler is None else self._scheduler.usable

    def rescaled(self, job_graph: JobGraph) -> None:
        """Changes the numbers of slots of the job from its next attempt on."""
        groups = slot_counts(job_graph).values()
        self._wanted = sum(groups)
        if self._scheduler is not None:
            self._scheduler.want(groups)

    def begin_attempt(self, now: int) -> list[RequestSlots]:
        if self._scheduler is None:
            return [RequestSlots(self._wanted)]
        self._scheduler.wait_for_slots(now)
        return []

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

    def tasks_run(self, now: int) -> None:
        """All tasks of the attempt run."""
        if self._scheduler is not None:
            self._scheduler.executing(now)

    def decide(self, now: int) -> SchedulingInstruction | None:
        """What is to be done now; to be asked again until it is nothing."""
        return None if self._scheduler is None else self._scheduler.decide(now)

    def next_due(self) -> int | None:
        """When time alone may change that."""
        return None if self._scheduler is None else self._scheduler.next_due()
