"""Rescaling of a running job: it takes a checkpoint, and its next attempt is restored from that."""

from __future__ import annotations

from firesteel.common.job_status import JobStatus
from firesteel.graph.rescaling import has_same_parallelism, limit_parallelism
from firesteel.jobmaster.model import events
from firesteel.jobmaster.model.failure import RootCause
from firesteel.jobmaster.model.wall_clock import WallClock
from firesteel.jobmaster.winding_down import WindingDown

__all__ = ["JobRescaling"]


class JobRescaling(WindingDown):
    """Restarts of a job that has not failed; see `JobMaster`."""

    _root_cause: RootCause

    def __init__(self, wall_clock: WallClock) -> None:
        super().__init__(wall_clock)
        self._shutting_down = False
        """All tasks have finished."""
        self._restarts_by_plan = False
        self._rescale_reason: str | None = None
        """Why the job is restarted once the checkpoint under way has completed."""

    @property
    def _ends_well(self) -> bool:
        """Whether the attempt is about to end the job: all tasks have finished, or it stops with a savepoint."""
        return self.status is JobStatus.RUNNING and (self._shutting_down or self.checkpoints.coordinator.is_stopping)

    @property
    def _would_not_change(self) -> bool:
        """Whether a restart of the running job would give it the parallelism it has."""
        usable = self.slots.usable
        if self.status is not JobStatus.RUNNING or not usable:
            return False
        return has_same_parallelism(limit_parallelism(self._job_graph, usable), self.execution_graph.job_graph)

    def _take_checkpoint(self) -> None:
        self._perform(self.checkpoints.coordinator.trigger_checkpoint(None, self._now))

    def _on_rescale(self, event: events.RescaleJob) -> None:
        """The next attempt has another parallelism; one that runs takes a checkpoint first, to lose as little time.

        A job that is about to end is not restarted for it. Should it fail before its end, or should its savepoint be
        refused, it continues with the new parallelism. Neither is an adaptive job that already uses all the slots
        there are: it is rescaled when more of them become available.
        """
        self._job_graph = event.job_graph
        self.slots.rescaled(event.job_graph)
        if self._would_not_change:
            self._rescale_reason = None
        elif self._ends_well:
            self._rescale_reason = event.reason
        elif self.status is JobStatus.RUNNING and self.checkpoints.is_running and not self._root_cause.is_pending:
            self._rescale_reason = event.reason
            self._take_checkpoint()
        elif self.status in (JobStatus.CREATED, JobStatus.RUNNING) and not self._root_cause.is_pending:
            self._restart(event.reason)

    def _rescale_now(self) -> None:
        if self._ends_well:
            return
        reason, self._rescale_reason = self._rescale_reason, None
        if reason is not None and self.status is JobStatus.RUNNING and not self._root_cause.is_pending:
            self._restart(reason)

    def _restart(self, reason: str) -> None:
        """Ends the attempt and begins the next one, although nothing has failed."""
        self.story.add(self._wall, reason)
        self._restarts_by_plan = True
        self._transition(JobStatus.RESTARTING)
        self._wind_down(reason)
