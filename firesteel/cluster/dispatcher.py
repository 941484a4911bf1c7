"""Takes jobs, keeps them so that they outlive this process, and runs them."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeAlias

from firesteel.cluster.ha.services import FencedError, JobResult, JobStore, JobSubmission
from firesteel.cluster.job_archive import JobArchive
from firesteel.cluster.job_loading import JobLoader, failure_of_preparation, lasting_id
from firesteel.cluster.managed_job import ManagedJob
from firesteel.common.concurrency import SYSTEM, Concurrency, Condition
from firesteel.common.configuration import Configuration
from firesteel.common.errors import FiresteelError, InvalidProgramError, TaskFailure
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.job_preparation import PreparedJob
from firesteel.jobmaster.job_serialization import serialize_job
from firesteel.jobmaster.job_services import JobServices
from firesteel.jobmaster.runner import JobMasterRunner

__all__ = ["Dispatcher", "DispatcherClosedError", "DuplicateJobSubmissionError", "JobNotFoundError", "JobStarter"]

_log = logging.getLogger(__name__)

JobStarter: TypeAlias = Callable[[PreparedJob, JobServices], JobMasterRunner]
"""Makes the runner of a job, with the host it runs on; called in the order of submission. It is started afterwards."""
WriteOutput: TypeAlias = Callable[[str, str, Sequence[str]], None]
"""Takes lines that functions of a job printed: its id, ``stdout`` or ``stderr``, and the lines."""

_JOB_ID = re.compile(r"[0-9a-f]{32}")
_TURN_S = 5.0
"""How long a job that is prepared waits for those submitted before it that are not."""
_RECORD_S = 30.0
"""How long is tried to record the end of a job."""
_LOOK_S = 1.0


class JobNotFoundError(FiresteelError):
    """There is no such job, or none any more."""

    status = 404

    def __init__(self, job_id: str):
        super().__init__(f"Job {job_id[:200]} not found")
        self.job_id = job_id


class DuplicateJobSubmissionError(FiresteelError):
    """A job of that id was submitted before."""

    status = 409


class DispatcherClosedError(FiresteelError):
    """This JobManager is being shut down."""

    status = 503


class Dispatcher:
    """Runs the jobs of a cluster, as long as this process leads it.

    A job goes through these steps; one that fails in any of them is FAILED, and no other job notices:

    1. It is kept in the store, so that it is run even if this process dies.
    2. In a thread of its own it is unpickled, checked and prepared: see `JobLoader`.
    3. When those submitted before it have come so far, its JobMaster is started; it waits for slots by itself.
    4. Each completed checkpoint is registered in the store before anybody is told of it.
    5. At its end its result is recorded, and then its checkpoints are deleted, unless they are to be retained.

    A new leader goes through steps 2 to 5 with all jobs that have not got beyond step 4. Whoever finds out from the
    store that another one leads calls ``on_fenced``, once, and from then on nothing shared is written or deleted.
    """

    def __init__(
        self,
        store: JobStore,
        configuration: Configuration,
        start_job: JobStarter,
        *,
        on_fenced: Callable[[str], None],
        checkpoint_directory: str | None = None,
        is_leader: Callable[[], bool] = lambda: True,
        write_output: WriteOutput | None = None,
        concurrency: Concurrency = SYSTEM,
    ):
        self.configuration = configuration
        self._store = store
        self._start_job = start_job
        self._on_fenced = on_fenced
        self._is_leader = is_leader
        self._write_output = write_output
        self._concurrency = concurrency
        self._loader = JobLoader(configuration, checkpoint_directory, concurrency)
        self._archive = JobArchive(configuration)
        self._jobs: dict[str, ManagedJob] = {}
        self._submitting = threading.Lock()
        self._starting = threading.Lock()
        self._fencing = threading.Lock()
        self._fenced = concurrency.event()
        self._closed = concurrency.event()
        self._turn = concurrency.event()
        """Set when the job submitted last has got beyond step 3."""
        self._turn.set()
        self._housekeeper = concurrency.start(self._keep_house, name="firesteel-dispatcher")

    # -- looking ------------------------------------------------------------------------------------

    def jobs(self) -> list[ManagedJob]:
        """All jobs that are known, in the order of their submission."""
        return list(self._jobs.values())

    def job(self, job_id: str) -> ManagedJob:
        """One job; JobNotFoundError if there is none of that id."""
        job = self._jobs.get(job_id)
        if job is None:
            raise JobNotFoundError(job_id)
        return job

    # -- step 1 -------------------------------------------------------------------------------------

    def submit(self, submission: JobSubmission) -> str:
        """Keeps a job, has it started, and returns its id."""
        if not _JOB_ID.fullmatch(submission.job_id):
            raise InvalidProgramError(f"A job id has 32 hexadecimal digits, not {submission.job_id[:200]!r}.")
        if submission.submitted_at <= 0:
            submission = replace(submission, submitted_at=self._concurrency.wall_ms())
        with self._submitting:
            if self._closed.is_set() or self._fenced.is_set():
                raise DispatcherClosedError(
                    "This JobManager takes no more jobs: it is being shut down.",
                    hint="Submit the job again once the cluster has a JobManager that leads.",
                )
            if submission.job_id in self._jobs:
                raise DuplicateJobSubmissionError(
                    f"Job {submission.job_id} was submitted already: it is {self._jobs[submission.job_id].status.name}."
                )
            self._write(lambda: self._store.put(submission))
            _log.info("Job '%s' (%s) was submitted.", submission.job_name, submission.job_id)
            self._start(submission, None)
        return submission.job_id

    def recover(self) -> None:
        """Shows the jobs that have ended under earlier leaders, and starts those that have not."""
        with self._submitting:
            known = [ManagedJob.of_result(result, self._concurrency) for result in self._store.results()]
            for job in sorted(known, key=lambda job: job.submitted_at):
                self._jobs[job.job_id] = job
            self._forget_expired()
            for job_id in self._store.job_ids():
                try:
                    submission, checkpoints = self._store.load(job_id), self._store.checkpoints(job_id)
                except FencedError as error:
                    self._fence(error)
                    raise
                except Exception as error:  # noqa: BLE001 - the others can be recovered all the same
                    _log.exception("Job %s cannot be read from the store", job_id)
                    lost = self._jobs[job_id] = ManagedJob(
                        job_id, f"Job {job_id}", self._concurrency.wall_ms(), self._concurrency
                    )
                    # not recorded: it stays in the store, and may be readable another time
                    lost.end(JobStatus.FAILED, failure=failure_of_preparation(error))
                else:
                    _log.info("Job '%s' (%s) is recovered.", submission.job_name, job_id)
                    self._start(submission, checkpoints)

    # -- steps 2 and 3 ------------------------------------------------------------------------------

    def _start(self, submission: JobSubmission, taken_over: Sequence[tuple[int, str]] | None) -> None:
        job = ManagedJob(submission.job_id, submission.job_name, submission.submitted_at, self._concurrency)
        self._jobs[job.job_id] = job
        turn, self._turn = self._turn, self._concurrency.event()
        name = f"firesteel-prepare-{job.job_id[:8]}"
        self._concurrency.start(self._prepare_and_run, job, submission, taken_over, turn, self._turn, name=name)

    def _prepare_and_run(
        self,
        job: ManagedJob,
        submission: JobSubmission,
        taken_over: Sequence[tuple[int, str]] | None,
        turn: threading.Event,
        next_turn: threading.Event,
    ) -> None:
        try:
            prepared = self._loader.load(submission, taken_over)
            turn.wait(_TURN_S)
            try:
                runner = self._admit(job, prepared)
            except BaseException:
                prepared.discard()
                raise
            if runner is None:
                prepared.discard()
                self._end_unstarted(job)
        except BaseException as error:  # noqa: BLE001 - unpickling runs the program's code, which may raise anything
            _log.warning("Job '%s' (%s) could not be started: %s", job.name, job.job_id, error)
            self._end_failed(job, failure_of_preparation(error))
        finally:
            next_turn.set()

    def _admit(self, job: ManagedJob, prepared: PreparedJob) -> JobMasterRunner | None:
        """Starts the JobMaster; None if the job is not wanted any more."""
        with self._starting:
            self._check_alone(job, prepared)
            if job.is_cancel_wanted or self._closed.is_set():
                return None
            runner = self._start_job(prepared, self._services_of(job))
            if not job.attach(runner):
                runner.abandon()
                return None
            runner.result_future().add_done_callback(lambda done: self._on_done(job, done))
            runner.start()
            return runner

    def _check_alone(self, job: ManagedJob, prepared: PreparedJob) -> None:
        job.lasting_id = lasting_id(prepared.job_graph)
        for other in self.jobs():
            is_same = other.lasting_id is not None and other.lasting_id == job.lasting_id
            if other is not job and is_same and not other.is_over:
                raise InvalidProgramError(
                    f"Another run of job '{job.name}' has not ended yet ({other.job_id}): both would read what came "
                    "since the last one.",
                    hint="Wait for it; or let runs start less often.",
                )

    # -- steps 4 and 5 ------------------------------------------------------------------------------

    def _services_of(self, job: ManagedJob) -> JobServices:
        write_output = self._write_output

        def register_checkpoint(checkpoint_id: int, path: str) -> None:
            self._write(lambda: self._store.add_checkpoint(job.job_id, checkpoint_id, path))

        def unregister_checkpoint(checkpoint_id: int) -> None:
            # one that has ended is not known to the store any more
            if not job.is_recorded:
                self._write(lambda: self._store.remove_checkpoint(job.job_id, checkpoint_id))

        def status_changed(status: JobStatus, _: int) -> None:
            _log.info("Job '%s' (%s) is %s.", job.name, job.job_id, status.name)

        def job_ending(status: JobStatus, failure: TaskFailure | None) -> None:
            if failure is not None:
                _log.warning("Job '%s' (%s) fails: %s", job.name, job.job_id, failure.describe())
            if status.is_globally_terminal_state():
                self._record(job, status, failure)

        services = JobServices(
            register_checkpoint=register_checkpoint,
            unregister_checkpoint=unregister_checkpoint,
            status_changed=status_changed,
            job_ending=job_ending,
            may_delete=self._may_delete,
        )
        if write_output is None:
            return services
        return replace(services, write_output=lambda stream, lines: write_output(job.job_id, stream, lines))

    def _record(self, job: ManagedJob, status: JobStatus, failure: TaskFailure | None) -> None:
        """Has the store forget a job and keep its result; tries for a while."""
        text = "" if failure is None else failure.describe()
        result = JobResult(job.job_id, job.name, status, job.submitted_at, self._concurrency.wall_ms(), text)
        deadline = self._concurrency.monotonic() + _RECORD_S
        delay = 0.1
        while True:
            try:
                self._write(lambda: self._store.end(result))
            except FencedError:
                raise
            except Exception as error:  # noqa: BLE001 - a store may raise anything, and may work the next moment
                _log.warning("The end of job '%s' (%s) could not be recorded: %s", job.name, job.job_id, error)
                if self._concurrency.monotonic() + delay > deadline or self._closed.wait(delay):
                    _log.error("Job %s is %s, but the next leader will not know.", job.job_id, status.name)
                    break
                delay = min(delay * 2, 5.0)
            else:
                break
        job.recorded()

    def _on_done(self, job: ManagedJob, done: Future[JobExecutionResult]) -> None:
        """The runner has ended: also one that has broken down, whose JobMaster does not say so."""
        error = done.exception()
        runner = job.runner
        assert runner is not None
        if not runner.status().is_terminal_state():
            assert error is not None
            if self._fenced.is_set():
                job.end(JobStatus.SUSPENDED)
                return
            _log.error("The JobMaster of job '%s' (%s) broke down", job.name, job.job_id, exc_info=error)
            self._end_failed(job, failure_of_preparation(error))
            return
        job.complete(None if error is not None else done.result(), error)

    def _end_failed(self, job: ManagedJob, failure: TaskFailure) -> None:
        if self._fenced.is_set():
            job.end(JobStatus.SUSPENDED)
            return
        try:
            self._record(job, JobStatus.FAILED, failure)
        except FencedError:
            job.end(JobStatus.SUSPENDED)
        else:
            job.end(JobStatus.FAILED, failure=failure)

    def _end_unstarted(self, job: ManagedJob) -> None:
        """The job was cancelled, or this process told to end, before it was prepared."""
        if not job.is_cancel_wanted:
            job.end(JobStatus.SUSPENDED)
            return
        self._record(job, JobStatus.CANCELED, None)
        job.end(JobStatus.CANCELED)

    # -- the store ----------------------------------------------------------------------------------

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
        except FencedError as error:
            self._fence(error)
            raise

    def _fence(self, error: FencedError) -> None:
        with self._fencing:
            if self._fenced.is_set():
                return
            self._fenced.set()
        self._on_fenced(error.message)

    def _may_delete(self) -> bool:
        return not self._fenced.is_set() and self._is_leader()

    # -- housekeeping -------------------------------------------------------------------------------

    def _keep_house(self) -> None:
        while not self._closed.wait(_LOOK_S):
            try:
                self._forget_expired()
                self._cancel_abandoned()
            except Exception:  # noqa: BLE001 - the next look may go well
                _log.exception("Looking after the jobs failed")

    def _forget_expired(self) -> None:
        for job_id in self._archive.expired(self.jobs()):
            self._jobs.pop(job_id, None)

    def _cancel_abandoned(self) -> None:
        """Cancels jobs whose clients have promised to be heard of, and were not."""
        for job in self.jobs():
            if job.take_client_loss() and not job.is_over:
                _log.warning("Job '%s' (%s) is cancelled: its client is not heard of any more.", job.name, job.job_id)
                job.cancel()

    def rescale(self, job_id: str, parallelism: Mapping[str, int]) -> None:
        """Has a running job go on with other parallelisms of its vertices; a new leader runs it with those as well."""
        runner = self.job(job_id).running()
        job_graph = runner.rescale(parallelism)
        submission = self._store.load(job_id)
        self._write(lambda: self._store.put(replace(submission, serialized=serialize_job(job_graph))))

    def close(self, timeout_s: float = 30.0) -> None:
        """Suspends all jobs: their checkpoints and the store keep them for the next leader. Takes no more."""
        with self._submitting:
            self._closed.set()
        suspended = Condition(self._concurrency)

        def notify(_over: Future[None]) -> None:
            with suspended:
                suspended.notify_all()

        over = [job.suspend() for job in self.jobs() if not job.is_over]
        for future in over:
            future.add_done_callback(notify)
        with suspended:
            suspended.wait_for(lambda: all(future.done() for future in over), timeout_s)
        left = sum(not future.done() for future in over)
        if left:
            _log.warning("%d jobs were not suspended within %g s.", left, timeout_s)
        self._housekeeper.join(5.0)
