"""One job of a cluster, from when it was submitted until it is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from firesteel.cluster.ha.services import JobResult
from firesteel.cluster.result_channels import ResultChannels
from firesteel.common.concurrency import SYSTEM, Concurrency
from firesteel.common.errors import FiresteelError, JobCancelledError, JobExecutionError, TaskFailure
from firesteel.common.futures import complete, dependent, fail
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.job_view import JobView
from firesteel.jobmaster.runner import JobMasterRunner

__all__ = ["JobNotRunningError", "ManagedJob", "ManagedJobHandle"]

_BEFORE = {
    JobStatus.FINISHED: JobStatus.RUNNING,
    JobStatus.FAILED: JobStatus.FAILING,
    JobStatus.CANCELED: JobStatus.CANCELLING,
}


class JobNotRunningError(FiresteelError):
    """A job that does not run yet, or any more, was asked for something that only a running one can do."""


class ManagedJob:
    """A job the Dispatcher knows. All methods may be called from any thread.

    ``runner`` is None until the job is prepared, for one that could not be, and for one that is only known from what an
    earlier leader has left.
    """

    def __init__(self, job_id: str, name: str, submitted_at: int, concurrency: Concurrency = SYSTEM):
        self.job_id = job_id
        self.name = name
        self.submitted_at = submitted_at
        self._concurrency = concurrency
        self.runner: JobMasterRunner | None = None
        self.lasting_id: str | None = None
        """See `job_loading.lasting_id`."""
        self.failure: TaskFailure | None = None
        self.channels: ResultChannels | None = None
        self._client_deadline: float | None = None
        """When its client counts as gone unless it is heard of again (monotonic); None: nobody watches."""
        self._lock = threading.Lock()
        self._own_status: JobStatus | None = JobStatus.INITIALIZING
        """What counts while no JobMaster can say it; None as long as one can."""
        self._timestamps: dict[JobStatus, int] = {JobStatus.INITIALIZING: submitted_at}
        self._is_recorded = False
        self._cancel_wanted = self._suspend_wanted = False
        self._prepared = concurrency.event()
        self._over: Future[JobExecutionResult] = Future()
        self._over_at: float | None = None
        """When it was over, by the monotonic clock."""

    @classmethod
    def of_result(cls, result: JobResult, concurrency: Concurrency = SYSTEM) -> ManagedJob:
        """A job that ended under an earlier leader."""
        job = cls(result.job_id, result.job_name, result.started_at, concurrency)
        if result.status is JobStatus.FAILED:
            job.failure = TaskFailure(result.failure or "The job failed under an earlier JobManager.")
        job.end(result.status, result.ended_at, job.failure)
        job._over_at = concurrency.monotonic() - max(0, concurrency.wall_ms() - result.ended_at) / 1000
        return job

    # -- looking ------------------------------------------------------------------------------------

    @property
    def status(self) -> JobStatus:
        """Where the job is in its life. It ends here when its end is recorded, so that nobody will run it again."""
        own, runner = self._own_status, self.runner
        if own is not None or runner is None:
            return own or JobStatus.INITIALIZING
        status = runner.status()
        return status if self._is_recorded else _BEFORE.get(status, status)

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs here any more."""
        return self._over.done()

    @property
    def over_for_s(self) -> float | None:
        """How long it has been over, for good; None while it is not."""
        if self._over_at is None or not self.status.is_globally_terminal_state():
            return None
        return self._concurrency.monotonic() - self._over_at

    def view(self) -> JobView:
        """What is to be shown of it."""
        runner = self.runner
        master = None if runner is None else runner.master
        return JobView(
            self.job_id, self.name, self.submitted_at, self.status, dict(self._timestamps), master, self.failure
        )

    def result_future(self) -> Future[JobExecutionResult]:
        """Completes with the result, or with the error the job ended with. Cancelling it does nothing to the job."""
        return dependent(self._over)

    # -- what clients want --------------------------------------------------------------------------

    def cancel(self) -> Future[None]:
        """Cancels the job; the future completes when it is over. Nothing happens to one that is being cancelled."""
        with self._lock:
            runner = self.runner
            if runner is None and self._own_status is JobStatus.INITIALIZING:
                self._cancel_wanted = True
                self._set_own(JobStatus.CANCELLING)
        if runner is not None and not self.is_over and self.status is not JobStatus.CANCELLING:
            runner.cancel()
        return self._when_over()

    def client_lives_for(self, seconds: float) -> None:
        """Its client counts as gone after that time, unless it is heard of again."""
        self._client_deadline = self._concurrency.monotonic() + seconds

    def take_client_loss(self) -> bool:
        """Whether its client counts as gone; True only once."""
        deadline = self._client_deadline
        if deadline is None or self._concurrency.monotonic() <= deadline:
            return False
        self._client_deadline = None
        return True

    def await_prepared(self, timeout_s: float | None = None) -> JobMasterRunner | None:
        """Waits until the job is prepared, or could not be; returns its runner if it has one by then."""
        self._prepared.wait(timeout_s)
        return self.runner

    def running(self) -> JobMasterRunner:
        """What can take savepoints; JobNotRunningError if there is no such thing."""
        runner = self.runner
        if runner is None or self.is_over:
            raise JobNotRunningError(f"Job {self.job_id} ('{self.name}') is {self.status.name}.")
        return runner

    # -- what becomes of it, told by the Dispatcher -------------------------------------------------

    def attach(self, runner: JobMasterRunner) -> bool:
        """The job is prepared; False if it is not wanted any more."""
        with self._lock:
            if self._cancel_wanted or self._suspend_wanted:
                return False
            self.runner = runner
            self.channels = ResultChannels(runner, self._concurrency)
            self._own_status = None
            self._prepared.set()
            return True

    def suspend(self) -> Future[None]:
        """Ends the job here, so that it can go on elsewhere; one that is ending anyway just ends."""
        with self._lock:
            self._suspend_wanted = True
            runner = self.runner
        if runner is not None and not self.is_over and runner.status() not in _ENDING:
            runner.suspend()
        return self._when_over()

    @property
    def is_cancel_wanted(self) -> bool:
        """Whether it was cancelled before it was prepared."""
        return self._cancel_wanted

    @property
    def is_recorded(self) -> bool:
        """Whether its end is in the store."""
        return self._is_recorded

    def recorded(self) -> None:
        """Its end is in the store."""
        self._is_recorded = True

    def end(self, status: JobStatus, at: int | None = None, failure: TaskFailure | None = None) -> None:
        """It is over, although no JobMaster says so."""
        with self._lock:
            self.failure = failure or self.failure
            self._set_own(status, at)
            self._is_recorded = True
        self._complete(self._error())
        self._prepared.set()

    def complete(self, result: JobExecutionResult | None, error: BaseException | None) -> None:
        """The JobMaster is done with it."""
        if self.runner is not None:
            self.runner.release()
        self._complete(error, result)

    def _complete(self, error: BaseException | None, result: JobExecutionResult | None = None) -> None:
        if self._over_at is None:
            self._over_at = self._concurrency.monotonic()
        if error is not None:
            fail(self._over, error)
        else:
            complete(self._over, result or JobExecutionResult(JobID(self.job_id), 0))

    def _error(self) -> FiresteelError | None:
        status = self.status
        if status is JobStatus.FAILED:
            return JobExecutionError(self.name, self.failure or TaskFailure("the job failed without saying why"))
        if status is JobStatus.CANCELED:
            return JobCancelledError(f"Job '{self.name}' was cancelled.")
        if status is JobStatus.SUSPENDED:
            return JobCancelledError(f"Job '{self.name}' was suspended: its JobManager was shut down.")
        return None

    def _set_own(self, status: JobStatus, at: int | None = None) -> None:
        self._own_status = status
        self._timestamps[status] = self._concurrency.wall_ms() if at is None else at

    def _when_over(self) -> Future[None]:
        over: Future[None] = Future()
        self._over.add_done_callback(lambda _: complete(over, None))
        return over


_ENDING = frozenset({JobStatus.CANCELLING, JobStatus.FAILING, *_BEFORE})


class ManagedJobHandle:
    """The JobHandle of a client in the same process: that of a program that runs in the JobManager."""

    def __init__(self, job: ManagedJob):
        self._job = job

    def job_id(self) -> JobID:
        """The job's id."""
        return JobID(self._job.job_id)

    def status(self) -> JobStatus:
        """The job's present state."""
        return self._job.status

    def cancel(self) -> Future[None]:
        """Cancels the job."""
        return self._job.cancel()

    def result_future(self) -> Future[JobExecutionResult]:
        """Completes with the result, or with the error the job ended with."""
        return self._job.result_future()

    def accumulators(self) -> Mapping[str, Any]:
        """The accumulators' present values."""
        return self._job.view().accumulators()

    def metrics(self) -> Mapping[Any, Mapping[str, Any]]:
        """The latest metrics by (vertex id, operator id, subtask)."""
        runner = self._job.runner
        return {} if runner is None else runner.metrics()

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> Future[str]:
        """Takes a savepoint while the job goes on."""
        return self._job.running().trigger_savepoint(savepoint_directory)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> Future[str]:
        """Takes a savepoint and ends the job."""
        return self._job.running().stop_with_savepoint(advance_to_end_of_event_time, savepoint_directory)

    def collect_iterator(self, channel: str) -> Iterator[Any]:
        """The records of a collect sink, as they come."""
        runner = self._job.await_prepared()
        if runner is None:
            self._job.result_future().result()
        else:
            yield from runner.collect_iterator(channel)
