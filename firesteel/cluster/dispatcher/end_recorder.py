"""Records the results of finished jobs, so that no JobManager runs them again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from firesteel.cluster.dispatcher.managed_job import ManagedJob
from firesteel.cluster.ha.services import FencedError, JobResult, JobStore
from firesteel.common.errors import FiresteelError, TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.model.end_of_job import may_record, retry_delay_ms
from firesteel.process.concurrency import Concurrency

__all__ = ["EndRecorder", "NotRecordedError"]

_log = logging.getLogger(__name__)


class NotRecordedError(FiresteelError):
    """The end of a job is not recorded, so that the job has not ended."""


class EndRecorder:
    """Writes the ends of jobs to the store of a leader.

    ``write`` makes a write and notices if another one leads. ``host_lives`` returns whether the jobs' host is still
    there. ``closed`` is set when this process stops leading in good order.
    """

    def __init__(
        self,
        store: JobStore,
        write: Callable[[Callable[[], None]], None],
        host_lives: Callable[[], bool],
        closed: threading.Event,
        concurrency: Concurrency,
    ):
        self._store = store
        self._write = write
        self._host_lives = host_lives
        self._closed = closed
        self._concurrency = concurrency

    def record(self, job: ManagedJob, status: JobStatus, failure: TaskFailure | None) -> None:
        """Has the store forget a job and keep its result; returns when that is done.

        A store that cannot be written is tried again for as long as this process leads; meanwhile the job is shown as
        one whose end is not recorded yet. Raises FencedError if another one leads, and NotRecordedError if the end does
        not count (see `end_of_job.may_record`) or this process stops first: the job is then still in the store.
        """
        if not may_record(status, host_lives=self._is_host_alive()):
            raise NotRecordedError(f"Job {job.job_id} is {status.name}, but Spark was lost: it is run again.")
        text = "" if failure is None else failure.describe()
        result = JobResult(job.job_id, job.name, status, job.submitted_at, self._concurrency.wall_ms(), text)
        failures = 0
        while not self._try(result, again=failures > 0, job=job):
            failures += 1
            if self._closed.wait(retry_delay_ms(failures) / 1000):
                _log.error("Job %s is %s, but that is not recorded: the next leader runs it.", job.job_id, status.name)
                raise NotRecordedError(f"The end of job {job.job_id} ({status.name}) could not be recorded.")
        job.recorded()

    def _try(self, result: JobResult, *, again: bool, job: ManagedJob) -> bool:
        try:
            if not again or not self._is_recorded(result.job_id):
                self._write(lambda: self._store.end(result))
        except FencedError:
            raise
        except Exception as error:  # noqa: BLE001 - a store may raise anything, and may work the next moment
            _log.warning(
                "Job '%s' (%s) is %s, but that could not be recorded yet: %s",
                result.job_name,
                result.job_id,
                result.status.name,
                error,
            )
            job.not_recorded_yet(result.status, error)
            return False
        return True

    def _is_recorded(self, job_id: str) -> bool:
        """Whether a write that seemed to fail has been made."""
        return job_id not in self._store.job_ids() and any(job_id == other.job_id for other in self._store.results())

    def _is_host_alive(self) -> bool:
        try:
            return self._host_lives()
        except Exception:  # noqa: BLE001 - an error counts as not alive
            _log.exception("It could not be determined whether Spark is alive")
            return False
