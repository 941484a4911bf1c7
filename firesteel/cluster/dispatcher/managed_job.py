"""Managed job: one job of a cluster, from its submission until it is removed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from firesteel.cluster.dispatcher.result_channels import ResultChannels
from firesteel.cluster.ha.services import JobResult
from firesteel.common.errors import FiresteelError, HostError, JobCancelledError, JobExecutionError, TaskFailure
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.model.end_of_job import retry_delay_ms
from firesteel.jobmaster.model.failure import ExceptionHistoryEntry
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.jobmaster.view.job import JobView
from firesteel.process.concurrency import SYSTEM, Concurrency
from firesteel.process.futures import complete, dependent, fail

__all__ = ["JobNotRunningError", "ManagedJob", "ManagedJobHandle", "unread_name"]

_MAX_MISHAPS = 16
_STABLE_AFTER_S = 60.0
"""After that long a JobMaster has run well: the next time it breaks down counts as the first."""
_BEFORE = {
    JobStatus.FINISHED: JobStatus.RUNNING,
    JobStatus.FAILED: JobStatus.FAILING,
    JobStatus.CANCELED: JobStatus.CANCELLING,
}


def unread_name(job_id: str) -> str:
    """The name of a job until it is read from the store."""
    return f"Job {job_id}"


class JobNotRunningError(FiresteelError):
    """A job that does not run yet, or any more, was asked for something that only a running one can do."""


class ManagedJob:
    """A job of the Dispatcher. All methods may be called from any thread.

    ``runner`` is None until the job is prepared, for one that could not be, while a JobMaster that has broken down is
    replaced, and for a job that is only known from what an earlier leader has left.
    """

    def __init__(self, job_id: str, name: str, submitted_at: int, concurrency: Concurrency = SYSTEM):
        self.job_id = job_id
        self.name = name
        self.submitted_at = submitted_at
        self._concurrency = concurrency
        self.runner: JobMasterRunner | None = None
        self.lasting_id: str | None = None
        """See `job_loading.lasting_id`."""
        self.is_loaded = False
        """Whether its program has been loaded, so that ``lasting_id`` is known."""
        self.failure: TaskFailure | None = None
        """Why it failed, where no JobMaster can say."""
        self.channels: ResultChannels | None = None
        self._client_deadline: float | None = None
        """When its client counts as gone unless it is heard of again (monotonic); None: nobody watches."""
        self._lock = threading.Lock()
        self._own_status: JobStatus | None = JobStatus.INITIALIZING
        """What counts while no JobMaster can say it; None as long as one can."""
        self._timestamps: dict[JobStatus, int] = {JobStatus.INITIALIZING: submitted_at}
        self._is_recorded = False
        self._pending_end: str | None = None
        self._mishaps: deque[ExceptionHistoryEntry] = deque(maxlen=_MAX_MISHAPS)
        """What kept it from running that is no failure of its own."""
        self._failed_starts = 0
        self._attached_at = 0.0
        self._former: JobMasterRunner | None = None
        """The runner that has broken down."""
        self._cancel_wanted = self._suspend_wanted = False
        self._stirred = concurrency.event()
        """It was cancelled or suspended: whoever waits to try again need not wait any longer."""
        self._read = concurrency.event()
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
        """The status of the job. It is terminal when its end is recorded, so that it is not run again."""
        own, runner = self._own_status, self.runner
        if own is not None or runner is None:
            return own or JobStatus.INITIALIZING
        return self._shown(runner.status())

    def _shown(self, status: JobStatus) -> JobStatus:
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
        with self._lock:
            runner = self.runner or self._former
            snapshot = None if runner is None else runner.snapshot
            status = self._own_status
            if status is None:
                status = JobStatus.INITIALIZING if snapshot is None else self._shown(snapshot.status)
            return JobView(
                self.job_id,
                self.name,
                self.submitted_at,
                status,
                dict(self._timestamps),
                snapshot,
                self.failure,
                tuple(self._mishaps),
                self._pending_end if not self._is_recorded else None,
            )

    def result_future(self) -> Future[JobExecutionResult]:
        """Completes with the result, or with the error the job ended with. Cancelling it does nothing to the job."""
        return dependent(self._over)

    # -- client requests --------------------------------------------------------------------------

    def cancel(self) -> Future[None]:
        """Cancels the job; the future completes when it is over. Nothing happens to one that is being cancelled."""
        with self._lock:
            runner = self.runner
            is_first, self._cancel_wanted = not self._cancel_wanted, True
            if runner is None and self._own_status in (JobStatus.INITIALIZING, JobStatus.RESTARTING):
                self._set_own(JobStatus.CANCELLING)
        self._stirred.set()
        # one that is CANCELLING although it was not cancelled is being suspended, and would continue elsewhere
        if runner is not None and not self.is_over and (is_first or self.status is not JobStatus.CANCELLING):
            runner.cancel()
        return self._when_over()

    def client_lives_for(self, seconds: float) -> None:
        """Its client counts as gone after that time, unless it sends a heartbeat."""
        self._client_deadline = self._concurrency.monotonic() + seconds

    def client_lives_longer(self, seconds: float) -> None:
        """The heartbeats of its client, if it is watched, could not be received for so long."""
        deadline = self._client_deadline
        if deadline is not None:
            self._client_deadline = deadline + seconds

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

    # -- state changes by the Dispatcher -------------------------------------------------

    def attach(self, runner: JobMasterRunner) -> bool:
        """The job is prepared; False if it was cancelled."""
        with self._lock:
            if self._cancel_wanted or self._suspend_wanted:
                return False
            self.runner = runner
            self.channels = ResultChannels(runner, self._concurrency)
            self._former = None
            self._attached_at = self._concurrency.monotonic()
            self._own_status = None
            self._prepared.set()
            return True

    def detach(self) -> None:
        """The JobMaster has broken down, or could not be started."""
        with self._lock:
            self._former, self.runner = self.runner, None
            self._prepared.clear()
            self._set_own(JobStatus.CANCELLING if self._cancel_wanted else JobStatus.RESTARTING)
            if self._concurrency.monotonic() - self._attached_at > _STABLE_AFTER_S:
                self._failed_starts = 0

    def fails_to_start(self, failure: TaskFailure) -> float:
        """It cannot be run for now, for a reason that is no end of it; returns how long to wait until the next try."""
        with self._lock:
            self._failed_starts += 1
            self._mishaps.append(ExceptionHistoryEntry(-1, self._concurrency.wall_ms(), failure))
            if not self._cancel_wanted:
                self._set_own(JobStatus.RESTARTING)
            return retry_delay_ms(self._failed_starts) / 1000

    def await_retry(self, timeout_s: float) -> None:
        """Waits until the next try, or until it is cancelled."""
        self._stirred.wait(timeout_s)

    def check_quiet(self) -> None:
        """Raises an error if a JobMaster that has broken down may still write to the checkpoint storage."""
        if self._former is not None and not self._former.is_quiet:
            raise HostError("The previous JobMaster has not ended yet: the checkpoint storage does not respond.")

    def has_been_read(self) -> None:
        """Its records were read from the store, or cannot be read now."""
        self._read.set()

    def await_read(self, timeout_s: float) -> None:
        """Waits for `has_been_read`."""
        self._read.wait(max(0.0, timeout_s))

    def suspend(self) -> Future[None]:
        """Ends the job here, so that it can go on elsewhere; one that is ending anyway just ends."""
        with self._lock:
            self._suspend_wanted = True
            runner = self.runner
        self._stirred.set()
        if runner is not None and not self.is_over and runner.status() not in _ENDING:
            runner.suspend()
        return self._when_over()

    @property
    def is_cancel_wanted(self) -> bool:
        return self._cancel_wanted

    @property
    def is_unwanted(self) -> bool:
        """Whether it was cancelled or suspended, so that it must not be started."""
        return self._cancel_wanted or self._suspend_wanted

    @property
    def is_recorded(self) -> bool:
        """Whether its end is in the store."""
        return self._is_recorded

    def recorded(self) -> None:
        """Its end is in the store."""
        with self._lock:
            self._is_recorded = True

    def not_recorded_yet(self, status: JobStatus, error: BaseException) -> None:
        """It has ended, but the store cannot be written; others need not wait for its slots."""
        text = f"{status.name}, but that is not recorded yet: {type(error).__name__}: {error}"
        failure = TaskFailure(f"The job is {text}", error_type=type(error).__name__)
        entry = ExceptionHistoryEntry(-1, self._concurrency.wall_ms(), failure)
        with self._lock:
            if text != self._pending_end:
                self._pending_end = text
                self._mishaps.append(entry)
        if self.runner is not None:
            self.runner.release_slots()

    def end(self, status: JobStatus, at: int | None = None, failure: TaskFailure | None = None) -> None:
        """It is over, without a report of a JobMaster."""
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
            return JobExecutionError(self.name, self.failure or TaskFailure("the job failed without an error message"))
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
        return JobID(self._job.job_id)

    def status(self) -> JobStatus:
        return self._job.status

    def cancel(self) -> Future[None]:
        return self._job.cancel()

    def result_future(self) -> Future[JobExecutionResult]:
        """Completes with the result, or with the error the job ended with."""
        return self._job.result_future()

    def accumulators(self) -> Mapping[str, Any]:
        return self._job.view().accumulators()

    def metrics(self) -> Mapping[Any, Mapping[str, Any]]:
        """The latest metrics by (vertex id, operator id, subtask)."""
        runner = self._job.runner
        return {} if runner is None else runner.metrics()

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> Future[str]:
        """Takes a savepoint while the job continues."""
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
