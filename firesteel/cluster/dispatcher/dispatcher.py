"""The Dispatcher: accepts jobs, persists them, and runs them."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeAlias

from firesteel.cluster.dispatcher.end_recorder import EndRecorder
from firesteel.cluster.dispatcher.job_archive import JobArchive
from firesteel.cluster.dispatcher.job_loading import JobLoader, failure_of_preparation, lasting_id
from firesteel.cluster.dispatcher.managed_job import ManagedJob, unread_name
from firesteel.cluster.ha.services import FencedError, JobStore, JobSubmission
from firesteel.common.errors import CorruptStateError, FiresteelError, InvalidProgramError, TaskFailure
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.model.end_of_job import ends_preparation
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.model.log_line import LogLine
from firesteel.jobmaster.shell.job_preparation import PreparedJob
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.process.concurrency import SYSTEM, Concurrency, Condition

__all__ = ["Dispatcher", "DispatcherClosedError", "DuplicateJobSubmissionError", "JobNotFoundError", "JobStarter"]

_log = logging.getLogger(__name__)

JobStarter: TypeAlias = Callable[[PreparedJob, JobServices], JobMasterRunner]
"""Makes the runner of a job, with the host it runs on; called in the order of submission. It is started afterwards."""
WriteOutput: TypeAlias = Callable[[str, str, Sequence[str]], None]
WriteLog: TypeAlias = Callable[[str, Sequence[LogLine]], None]
"""Takes lines that functions of a job printed: its id, ``stdout`` or ``stderr``, and the lines."""

_JOB_ID = re.compile(r"[0-9a-f]{32}")
_PREDECESSORS_TIMEOUT_S = 5.0
"""How long a job that is prepared waits for those submitted before it that are not."""
_RECOVERY_TIMEOUT_S = 10.0
"""How long a new leader waits until the jobs of the one before are read, before it answers questions."""
_CHECK_INTERVAL_S = 1.0
_STALL_THRESHOLD_S = 2.0


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
    """This JobManager is being shut down, or does not lead any more."""

    status = 503


class JobsNotLoadedError(FiresteelError):
    """A job cannot be started before others, which came earlier, are loaded."""

    is_transient = True


class Dispatcher:
    """Runs the jobs of a cluster, as long as this process leads it.

    A job goes through these steps; what goes wrong with it in any of them no other job notices:

    1. It is kept in the store, so that it is run even if this process dies.
    2. In a thread of its own it is unpickled, checked and prepared: see `JobLoader`.
    3. When those submitted before it have come so far, its JobMaster is started; it waits for slots by itself.
    4. Each completed checkpoint is registered in the store before any task is notified.
    5. At its end its result is recorded, and then its checkpoints are deleted, unless they are to be retained.

    A new leader goes through steps 2 to 5 with all jobs that have not got beyond step 4, and so does this one with a
    job whose JobMaster has broken down. `end_of_job` decides which failure of steps 2 and 3 ends a job. After any
    other the job is RESTARTING, and tried again with growing delays until it runs or is cancelled.

    When the store shows that another JobManager leads, ``on_fenced`` is called, once, and from then on nothing shared
    is written or deleted. ``host_lives`` returns whether the jobs' host is still there.
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
        write_log: WriteLog | None = None,
        host_lives: Callable[[], bool] = lambda: True,
        concurrency: Concurrency = SYSTEM,
    ):
        self.configuration = configuration
        self._store = store
        self._start_job = start_job
        self._on_fenced = on_fenced
        self._is_leader = is_leader
        self._write_output = write_output
        self._write_log = write_log
        self._concurrency = concurrency
        self._loader = JobLoader(configuration, checkpoint_directory)
        self._archive = JobArchive(configuration)
        self._jobs: dict[str, ManagedJob] = {}
        self._submitting = threading.Lock()
        self._starting = threading.Lock()
        self._fencing = threading.Lock()
        self._fenced = concurrency.event()
        self._closed = concurrency.event()
        self._ends = EndRecorder(store, self._write, host_lives, self._closed, concurrency)
        self._turn = concurrency.event()
        """Set when the job submitted last has got beyond step 3."""
        self._turn.set()
        self._housekeeper = concurrency.start(self._keep_house, name="firesteel-dispatcher")

    # -- looking ------------------------------------------------------------------------------------

    def jobs(self) -> list[ManagedJob]:
        """All jobs, in the order of their submission."""
        return list(self._jobs.values())

    def job(self, job_id: str) -> ManagedJob:
        """One job; JobNotFoundError if there is none of that id."""
        job = self._jobs.get(job_id)
        if job is None:
            if not self._is_leader():
                # one that wakes up late does not know what was submitted to its successor
                raise DispatcherClosedError(
                    f"This JobManager is no longer the leader, and cannot determine whether job {job_id} exists.",
                    hint="Retry: another JobManager is or will become the leader.",
                )
            raise JobNotFoundError(job_id)
        return job

    def find(self, job_id: str) -> ManagedJob | None:
        """One job, also if it has ended so long ago that it is not shown any more; None if the store has none."""
        job = self._jobs.get(job_id)
        if job is not None:
            return job
        ended = next((result for result in self._store.results() if result.job_id == job_id), None)
        return None if ended is None else ManagedJob.of_result(ended, self._concurrency)

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
                    "This JobManager does not accept jobs: it is shutting down.",
                    hint="Submit the job again when the cluster has a leader.",
                )
            if submission.job_id in self._jobs:
                raise DuplicateJobSubmissionError(
                    f"Job {submission.job_id} was already submitted: it is {self._jobs[submission.job_id].status.name}."
                )
            self._write(lambda: self._store.put(submission))
            _log.info("Job '%s' (%s) was submitted.", submission.job_name, submission.job_id)
            job = ManagedJob(submission.job_id, submission.job_name, submission.submitted_at, self._concurrency)
            self._start(job, submission)
        return submission.job_id

    def recover(self) -> None:
        """Shows the jobs that have ended under earlier leaders, and starts those that have not."""
        with self._submitting:
            known = [ManagedJob.of_result(result, self._concurrency) for result in self._store.results()]
            for job in sorted(known, key=lambda job: job.submitted_at):
                self._jobs[job.job_id] = job
            self._forget_expired()
            recovered = [
                ManagedJob(job_id, unread_name(job_id), self._concurrency.wall_ms(), self._concurrency)
                for job_id in self._store.job_ids()
            ]
            for job in recovered:
                self._start(job, None)
        deadline = self._concurrency.monotonic() + _RECOVERY_TIMEOUT_S
        for job in recovered:  # so that what is shown first has its name
            job.await_read(deadline - self._concurrency.monotonic())
        if self._fenced.is_set():
            raise FencedError("Another JobManager is the leader.")

    # -- steps 2 and 3 ------------------------------------------------------------------------------

    def _start(self, job: ManagedJob, submission: JobSubmission | None, delay_s: float = 0.0) -> None:
        """Brings a job up in a thread of its own; one without a submission is recovered from the store."""
        self._jobs[job.job_id] = job
        turn, self._turn = self._turn, self._concurrency.event()
        name = f"firesteel-prepare-{job.job_id[:8]}"
        self._concurrency.start(self._bring_up, job, submission, delay_s, turn, self._turn, name=name)

    def _bring_up(
        self,
        job: ManagedJob,
        submission: JobSubmission | None,
        delay_s: float,
        turn: threading.Event,
        next_turn: threading.Event,
    ) -> None:
        """Tries until the job's JobMaster runs, or the job has ended."""
        corrupt_reads = 0
        if delay_s:
            next_turn.set()  # others need not wait for it
            job.await_retry(delay_s)
        while not job.is_unwanted and not self._closed.is_set():
            try:
                if self._run(job, submission, turn):
                    return
                break
            except FencedError as error:
                self._fence(error)
                break
            except BaseException as error:  # noqa: BLE001 - storage, Spark and the program itself may raise anything
                corrupt_reads = corrupt_reads + 1 if isinstance(error, CorruptStateError) else 0
                failure = failure_of_preparation(error)
                if ends_preparation(error, is_recovered=submission is None, corrupt_reads=corrupt_reads):
                    _log.warning("Job '%s' (%s) could not be started: %s", job.name, job.job_id, error)
                    next_turn.set()
                    self._end(job, JobStatus.FAILED, failure)
                    return
                delay_s = job.fails_to_start(failure)
                text = "Job '%s' (%s) cannot be run yet, and is tried again in %g s: %s"
                _log.warning(text, job.name, job.job_id, delay_s, failure.describe())
            finally:
                next_turn.set()  # others need not wait for its next try
                job.has_been_read()
            job.await_retry(delay_s)
        next_turn.set()
        self._end(job, JobStatus.CANCELED if job.is_cancel_wanted else JobStatus.SUSPENDED, None)

    def _run(self, job: ManagedJob, submission: JobSubmission | None, turn: threading.Event) -> bool:
        """Starts the JobMaster of a job; False if the job was cancelled."""
        checkpoints: Sequence[tuple[int, str]] | None = None
        if submission is None:
            job.check_quiet()
            submission, checkpoints = self._store.load(job.job_id), self._store.checkpoints(job.job_id)
            job.name, job.submitted_at = submission.job_name, submission.submitted_at
            job.has_been_read()
            _log.info("Job '%s' (%s) is recovered.", job.name, job.job_id)
        # already now: preparing a run takes the place in the checkpoint directory that another one may have
        prepared = self._loader.load(submission, checkpoints, lambda job_graph: self._check_alone(job, job_graph))
        try:
            turn.wait(_PREDECESSORS_TIMEOUT_S)
            is_admitted = self._admit(job, prepared)
        except BaseException:
            prepared.discard()
            raise
        if not is_admitted:
            prepared.discard()
        return is_admitted

    def _admit(self, job: ManagedJob, prepared: PreparedJob) -> bool:
        """Starts the JobMaster; False if the job was cancelled."""
        with self._starting:
            self._check_alone(job, prepared.job_graph)
            if job.is_unwanted or self._closed.is_set():
                return False
            runner = self._start_job(prepared, self._services_of(job))
            if not job.attach(runner):
                runner.abandon()
                return False
            try:
                runner.result_future().add_done_callback(lambda done: self._on_done(job, runner, done))
                runner.start()
            except BaseException:
                job.detach()
                runner.abandon()
                raise
            return True

    def _check_alone(self, job: ManagedJob, job_graph: JobGraph) -> None:
        job.lasting_id = lasting_id(job_graph)
        job.is_loaded = True
        if job.lasting_id is None:
            return
        is_before = True
        for other in self.jobs():
            is_before = is_before and other is not job
            if other is job or other.is_over:
                continue
            if other.lasting_id == job.lasting_id and (is_before or other.runner is not None):
                raise InvalidProgramError(
                    f"Another run of job '{job.name}' is still in progress ({other.job_id}): both would read the same "
                    "input.",
                    hint="Wait until it ends, or start runs less often.",
                )
            if is_before and not other.is_loaded and other.name in (job.name, unread_name(other.job_id)):
                raise JobsNotLoadedError(
                    f"Job {other.job_id} may be another run of '{job.name}', and is not loaded yet."
                )

    # -- steps 4 and 5 ------------------------------------------------------------------------------

    def _services_of(self, job: ManagedJob) -> JobServices:
        write_output, write_log = self._write_output, self._write_log

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
                self._ends.record(job, status, failure)

        services = JobServices(
            is_kept=True,
            register_checkpoint=register_checkpoint,
            unregister_checkpoint=unregister_checkpoint,
            status_changed=status_changed,
            job_ending=job_ending,
            may_delete=self._may_delete,
        )
        if write_output is not None:
            services = replace(services, write_output=lambda stream, lines: write_output(job.job_id, stream, lines))
        if write_log is not None:
            services = replace(services, write_log=lambda lines: write_log(job.job_id, lines))
        return services

    def _on_done(self, job: ManagedJob, runner: JobMasterRunner, done: Future[JobExecutionResult]) -> None:
        """The runner has ended: with the job, or because it has broken down, which is no end of the job."""
        if job.runner is not runner:
            return
        error = done.exception()
        if runner.ended_as is not None:
            job.complete(None if error is not None else done.result(), error)
        elif self._fenced.is_set() or self._closed.is_set():
            job.end(JobStatus.SUSPENDED)
        else:
            assert error is not None
            _log.error("The JobMaster of job '%s' (%s) failed", job.name, job.job_id, exc_info=error)
            job.detach()
            self._start(job, None, job.fails_to_start(failure_of_preparation(error)))

    def _end(self, job: ManagedJob, status: JobStatus, failure: TaskFailure | None) -> None:
        """A job ends that has no JobMaster; SUSPENDED: only here."""
        if status is not JobStatus.SUSPENDED:
            try:
                self._ends.record(job, status, failure)
            except Exception as error:  # noqa: BLE001 - what is not recorded is still to be run
                _log.info("Job '%s' (%s) stays in the store: %s", job.name, job.job_id, error)
                status, failure = JobStatus.SUSPENDED, None
        job.end(status, failure=failure)

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
        looked_at = self._concurrency.monotonic()
        while not self._closed.wait(_CHECK_INTERVAL_S):
            now = self._concurrency.monotonic()
            late_s, looked_at = now - looked_at - _CHECK_INTERVAL_S, now
            if late_s > _STALL_THRESHOLD_S:
                # this process was stopped: it could not receive requests in that time
                for job in self.jobs():
                    job.client_lives_longer(late_s)
            try:
                self._forget_expired()
                self._cancel_abandoned()
            except Exception:  # noqa: BLE001 - the next look may go well
                _log.exception("The periodic check of jobs failed")

    def _forget_expired(self) -> None:
        for job_id in self._archive.expired(self.jobs()):
            self._jobs.pop(job_id, None)

    def _cancel_abandoned(self) -> None:
        """Cancels jobs whose clients have promised heartbeats and sent none."""
        for job in self.jobs():
            if job.take_client_loss() and not job.is_over:
                _log.warning("Job '%s' (%s) is cancelled: the heartbeat of its client timed out.", job.name, job.job_id)
                job.cancel()

    def rescale(self, job_id: str, parallelism: Mapping[str, int]) -> None:
        """Rescales a running job to other parallelisms of its vertices; a new leader runs it with those as well."""

        def keep(job_graph: JobGraph) -> None:
            submission = self._store.load(job_id)
            self._write(lambda: self._store.put(replace(submission, serialized=serialize_job(job_graph))))

        self.job(job_id).running().rescale(parallelism, keep)

    def close(self, timeout_s: float = 30.0) -> None:
        """Suspends all jobs: their checkpoints and the store keep them for the next leader. Takes no more."""
        # not with the lock of submissions, of which one may wait for a store that hangs: it starts nothing any more
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
