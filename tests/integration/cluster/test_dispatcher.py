"""The Dispatcher runs jobs side by side: what it is given, what goes wrong with one, and how they end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest

from firesteel.cluster.dispatcher.dispatcher import (
    DispatcherClosedError,
    DuplicateJobSubmissionError,
    JobNotFoundError,
)
from firesteel.cluster.dispatcher.job_archive import JobArchive
from firesteel.cluster.dispatcher.managed_job import ManagedJob
from firesteel.cluster.ha.services import JobResult, JobSubmission
from firesteel.common.errors import InvalidProgramError, JobCancelledError, JobExecutionError
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.shell.job_preparation import PreparedJob
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.process.concurrency import SystemConcurrency
from firesteel.testing import eventually
from tests.support.clocks import SettableClock
from tests.support.jobs.dispatched_jobs import (
    Cluster,
    MemoryStore,
    bounded,
    endless,
    is_running,
    numbers,
    submission_of,
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(MemoryStore(), tmp_path)
    yield cluster
    cluster.dispatcher.close(60.0)


def test_a_job_runs_to_its_end(cluster: Cluster) -> None:
    job = cluster.submit(bounded, name="tens")
    assert str(job.result_future().result(60).get_job_id()) == job.job_id
    assert job.status is JobStatus.FINISHED
    assert cluster.lines == ["10", "20", "30"]
    assert [(ended.job_name, ended.status) for ended in cluster.store.ended] == [("tens", JobStatus.FINISHED)]
    assert not cluster.store.submissions
    assert cluster.dispatcher.jobs() == [job]
    assert job.view().end_time >= job.submitted_at


def test_the_log_tells_what_becomes_of_jobs(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "firesteel.cluster.dispatcher.dispatcher")
    job = cluster.submit(bounded, name="tens")
    job.result_future().result(60)
    told = [record.getMessage() for record in caplog.records if job.job_id in record.getMessage()]
    assert told[0] == f"Job 'tens' ({job.job_id}) was submitted."
    assert f"Job 'tens' ({job.job_id}) is RUNNING." in told
    assert told[-1] == f"Job 'tens' ({job.job_id}) is FINISHED."


def test_a_job_is_in_the_store_before_it_runs(cluster: Cluster) -> None:
    seen: list[bool] = []
    start = cluster.dispatcher._start_job

    def look(job: PreparedJob, services: JobServices) -> JobMasterRunner:
        seen.append(job.job_graph.job_id in cluster.store.submissions)
        return start(job, services)

    cluster.dispatcher._start_job = look
    cluster.submit(bounded).result_future().result(60)
    assert seen == [True]


def test_a_job_that_cannot_be_kept_is_not_run(cluster: Cluster) -> None:
    def full(_submission: JobSubmission) -> None:
        raise OSError("the disk is full")

    cluster.store.put = full  # type: ignore[method-assign,assignment]
    with pytest.raises(OSError, match="disk is full"):
        cluster.submit(bounded)
    assert cluster.dispatcher.jobs() == []


def test_a_running_job_is_cancelled_and_twice_is_as_good_as_once(cluster: Cluster) -> None:
    job = cluster.submit(endless)
    eventually(lambda: is_running(job))
    job.cancel()
    job.cancel().result(60)
    assert job.status is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        job.result_future().result(0)
    job.cancel().result(60)
    assert [ended.status for ended in cluster.store.ended] == [JobStatus.CANCELED]


@pytest.mark.parametrize("is_cancelled_first", [True, False])
def test_a_job_that_is_cancelled_as_its_cluster_is_shut_down_does_not_go_on(
    cluster: Cluster, is_cancelled_first: bool
) -> None:
    job = cluster.submit(endless)
    eventually(lambda: is_running(job))
    assert job.runner is not None
    master, gate = job.runner._master, threading.Lock()
    handle = master.handle

    def held_up(*event: Any) -> Any:
        with gate:
            return handle(*event)

    master.handle = held_up  # type: ignore[assignment, method-assign]
    with gate:
        for end in (job.cancel, job.suspend) if is_cancelled_first else (job.suspend, job.cancel):
            end()
    cluster.dispatcher.close(60.0)
    assert job.status is JobStatus.CANCELED
    assert [ended.status for ended in cluster.store.ended] == [JobStatus.CANCELED]
    assert not cluster.store.submissions


def test_a_job_is_cancelled_before_it_is_prepared(cluster: Cluster) -> None:
    go_on = threading.Event()
    load = cluster.dispatcher._loader.load

    def slow(*arguments: Any) -> PreparedJob:
        assert go_on.wait(60)
        return load(*arguments)

    cluster.dispatcher._loader.load = slow  # type: ignore[method-assign,assignment]
    job = cluster.submit(endless)
    assert job.status.name == "INITIALIZING"
    cancelled = job.cancel()
    assert job.status.name == "CANCELLING"
    go_on.set()
    cancelled.result(60)
    assert job.status.name == "CANCELED"
    assert cluster.started == []
    assert [ended.status for ended in cluster.store.ended] == [JobStatus.CANCELED]


def test_a_cluster_is_shut_down_while_the_store_hangs(cluster: Cluster) -> None:
    go_on, begun = threading.Event(), threading.Event()
    put = cluster.store.put

    def slow(submission: JobSubmission) -> None:
        begun.set()
        assert go_on.wait(60)
        put(submission)

    cluster.store.put = slow  # type: ignore[method-assign]
    submitting = threading.Thread(target=cluster.submit, args=(endless,), daemon=True)
    submitting.start()
    closing = threading.Thread(target=cluster.dispatcher.close, args=(5.0,), daemon=True)
    try:
        assert begun.wait(60)
        closing.start()
        closing.join(120)
        assert not closing.is_alive()
    finally:
        go_on.set()
        submitting.join(60)
    (job,) = cluster.dispatcher.jobs()
    eventually(lambda: job.status is JobStatus.SUSPENDED)
    assert cluster.started == []
    assert job.job_id in cluster.store.submissions


class SteppedClock(SystemConcurrency):
    """A clock that can be put forward, as it seems to be to a process that was stopped."""

    ahead_s = 0.0

    def monotonic(self) -> float:  # type: ignore[override]
        return time.monotonic() + self.ahead_s


def test_a_client_is_not_taken_for_gone_by_a_cluster_that_was_frozen(cluster: Cluster) -> None:
    job = cluster.submit(endless)
    eventually(lambda: is_running(job))
    clock = SteppedClock()
    job._concurrency = cluster.dispatcher._concurrency = clock
    job.client_lives_for(100.0)
    clock.ahead_s = 1000.0
    time.sleep(2.5)
    assert not job.is_cancel_wanted
    job.client_lives_for(0.0)
    eventually(lambda: job.status is JobStatus.CANCELED)


def test_a_job_id_cannot_be_used_twice(cluster: Cluster) -> None:
    job = cluster.submit(endless)
    with pytest.raises(DuplicateJobSubmissionError, match=job.job_id):
        cluster.submit(endless, job_id=job.job_id)
    job.cancel().result(60)
    with pytest.raises(DuplicateJobSubmissionError, match="CANCELED"):
        cluster.submit(endless, job_id=job.job_id)


@pytest.mark.parametrize("job_id", ["", "x" * 32, "../" * 11, "0" * 31, "A" * 32])
def test_a_malformed_job_id_is_refused(cluster: Cluster, job_id: str) -> None:
    with pytest.raises(InvalidProgramError, match="32 hexadecimal"):
        cluster.dispatcher.submit(JobSubmission(job_id, "a job", b""))
    with pytest.raises(JobNotFoundError):
        cluster.dispatcher.job(job_id)


class _Exits:
    def __reduce__(self) -> Any:
        return exit, (3,)


@pytest.mark.parametrize(
    ("serialized", "text"),
    [
        (b"", "cannot be loaded"),
        (b"\x80\x05garbage", "cannot be loaded"),
        (cloudpickle.dumps([1, 2]), "contains a list instead of a JobGraph"),
        (cloudpickle.dumps(_Exits()), "3"),
        (b"cno_such_module\nThing\n.", "no module 'no_such_module'"),
    ],
)
def test_what_cannot_be_unpickled_fails_and_hurts_nobody(cluster: Cluster, serialized: bytes, text: str) -> None:
    other = cluster.submit(endless)
    job_id = cluster.dispatcher.submit(JobSubmission("0" * 32, "bad", serialized))
    bad = cluster.dispatcher.job(job_id)
    with pytest.raises(JobExecutionError, match=text):
        bad.result_future().result(60)
    assert bad.status is JobStatus.FAILED
    assert bad.runner is None
    (entry,) = bad.view().exceptions()
    assert text in entry.failure.message
    assert bad.view().plan()["nodes"] == []
    assert [(ended.job_id, ended.status) for ended in cluster.store.ended] == [(job_id, JobStatus.FAILED)]
    eventually(lambda: is_running(other))


def test_a_job_that_cannot_be_prepared_fails_with_the_reason(cluster: Cluster) -> None:
    job = cluster.submit(endless, settings={"execution.state-recovery.path": "/no/such/savepoint"})
    with pytest.raises(JobExecutionError, match="no checkpoint or savepoint in"):
        job.result_future().result(60)
    assert job.status is JobStatus.FAILED
    assert job.view().exceptions()[0].failure.hint is not None


def test_a_function_that_fails_ends_its_own_job_alone(cluster: Cluster) -> None:
    other = cluster.submit(endless)
    job = cluster.submit(
        lambda environment: numbers(environment, [1, 0]).map(lambda x: 1 // x).print(),
        settings={"restart-strategy.type": "none"},
    )
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        job.result_future().result(60)
    assert job.status is JobStatus.FAILED
    assert "ZeroDivisionError" in cluster.store.ended[0].failure
    eventually(lambda: is_running(other))


def test_a_job_master_that_breaks_down_is_replaced(cluster: Cluster) -> None:
    start = cluster.dispatcher._start_job
    broken: list[JobMasterRunner] = []

    def break_the_first(job: PreparedJob, services: JobServices) -> JobMasterRunner:
        runner = start(job, services)
        if not broken:
            broken.append(runner)
            runner._master.handle = lambda *_: 1 // 0  # type: ignore[assignment,method-assign]
        return runner

    cluster.dispatcher._start_job = break_the_first
    job = cluster.submit(endless)
    eventually(lambda: is_running(job))
    assert job.runner not in broken
    assert not job.is_over
    (entry,) = job.view().exceptions()
    assert "ZeroDivisionError" in entry.failure.describe()
    assert not cluster.store.ended
    job.cancel().result(60)
    assert [ended.status for ended in cluster.store.ended] == [JobStatus.CANCELED]


def test_a_job_whose_job_master_broke_down_is_cancelled_before_it_is_replaced(cluster: Cluster) -> None:
    start = cluster.dispatcher._start_job

    def broken(job: PreparedJob, services: JobServices) -> JobMasterRunner:
        runner = start(job, services)
        runner._master.handle = lambda *_: 1 // 0  # type: ignore[assignment,method-assign]
        return runner

    cluster.dispatcher._start_job = broken
    job = cluster.submit(endless)
    eventually(lambda: job.status is JobStatus.RESTARTING)
    job.cancel().result(60)
    assert job.status is JobStatus.CANCELED
    assert [ended.status for ended in cluster.store.ended] == [JobStatus.CANCELED]


def test_many_jobs_at_once_are_started_in_order(cluster: Cluster) -> None:
    submissions = [submission_of(bounded, name=f"job {n:03}") for n in range(40)]
    for submission in submissions:
        cluster.dispatcher.submit(submission)
    for submission in submissions:
        cluster.dispatcher.job(submission.job_id).result_future().result(60)
    assert cluster.started == [submission.job_name for submission in submissions]
    assert [job.job_id for job in cluster.dispatcher.jobs()] == [submission.job_id for submission in submissions]


def test_jobs_submitted_by_many_threads_are_all_run(cluster: Cluster) -> None:
    submissions = [submission_of(bounded) for _ in range(20)]
    threads = [threading.Thread(target=cluster.dispatcher.submit, args=(each,)) for each in submissions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for submission in submissions:
        cluster.dispatcher.job(submission.job_id).result_future().result(60)
    assert {ended.job_id for ended in cluster.store.ended} == {submission.job_id for submission in submissions}


def test_the_cluster_s_settings_count_where_the_job_s_own_say_nothing(tmp_path: Path) -> None:
    settings = {"restart-strategy.type": "none", "execution.checkpointing.interval": "1 h", "rest.port": "1"}
    cluster = Cluster(MemoryStore(), tmp_path, settings)
    job = cluster.submit(endless, settings={"execution.checkpointing.interval": "2 h"})
    eventually(lambda: is_running(job))
    configuration = job.view().configuration.to_dict()
    assert configuration["restart-strategy.type"] == "none"
    assert configuration["execution.checkpointing.interval"] == "2 h"
    assert configuration["execution.checkpointing.dir"] == str(tmp_path / "checkpoints")
    assert "rest.port" not in configuration
    cluster.dispatcher.close(60.0)


def test_each_job_reaches_object_stores_with_its_own_settings(tmp_path: Path) -> None:
    cluster = Cluster(MemoryStore(), tmp_path)
    endpoints = ["http://one", "http://two", None]
    jobs = [cluster.submit(endless, settings={"s3.endpoint": each} if each else {}) for each in endpoints]
    eventually(lambda: all(is_running(job) for job in jobs))
    assert [job.view().configuration.to_dict().get("s3.endpoint") for job in jobs] == endpoints
    cluster.dispatcher.close(60.0)


def test_ended_jobs_are_shown_until_they_are_too_many_or_too_old(tmp_path: Path) -> None:
    cluster = Cluster(MemoryStore(), tmp_path, {"jobstore.max-capacity": "2"})
    running = cluster.submit(endless)
    ended = [cluster.submit(bounded) for _ in range(4)]
    for job in ended:
        job.result_future().result(60)
    cluster.dispatcher._forget_expired()
    shown = cluster.dispatcher.jobs()
    assert running in shown
    assert len(shown) == 3
    cluster.dispatcher._archive._expiration_s = 0
    cluster.dispatcher._forget_expired()
    assert cluster.dispatcher.jobs() == [running]
    cluster.dispatcher.close(60.0)


def test_a_job_whose_client_is_not_heard_of_any_more_is_cancelled(cluster: Cluster) -> None:
    job = cluster.submit(endless)
    eventually(lambda: is_running(job))
    job.client_lives_for(0)
    with pytest.raises(JobCancelledError):
        job.result_future().result(60)


@pytest.mark.parametrize("step", [-3_600_000, 3_600_000], ids=["back", "forward"])
def test_a_clock_that_is_set_changes_nothing_for_clients_and_ended_jobs(step: int) -> None:
    clock = SettableClock()
    attached, ended = (ManagedJob(digit * 32, "a job", clock.wall_ms(), clock) for digit in "12")
    attached.client_lives_for(600)
    ended.end(JobStatus.FINISHED)
    old = ManagedJob.of_result(
        JobResult("3" * 32, "an old job", JobStatus.FINISHED, 0, clock.wall_ms() - 7_200_000), clock
    )
    clock.offset_ms = step
    assert not attached.take_client_loss()
    archive = JobArchive(Configuration.from_dict({"jobstore.expiration-time": "3600"}))
    assert archive.expired([attached, ended, old]) == [old.job_id]
    attached.client_lives_for(-1)
    assert attached.take_client_loss()
    assert not attached.take_client_loss()


def test_a_closed_dispatcher_takes_no_jobs(cluster: Cluster) -> None:
    cluster.dispatcher.close(60.0)
    with pytest.raises(DispatcherClosedError):
        cluster.submit(bounded)
    assert not cluster.store.submissions


def test_one_that_leads_no_more_does_not_say_that_a_job_is_unknown(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JobNotFoundError):
        cluster.dispatcher.job("7" * 32)
    monkeypatch.setattr(cluster.dispatcher, "_is_leader", lambda: False)
    with pytest.raises(DispatcherClosedError):
        cluster.dispatcher.job("7" * 32)


def test_the_status_of_a_view_is_that_of_its_snapshot() -> None:
    """The job ends while it is looked at: what was read first must not be mixed with what is read later."""

    class Ending:
        def __init__(self) -> None:
            self._statuses = iter([JobStatus.RUNNING, JobStatus.FAILING, JobStatus.RESTARTING])

        @property
        def snapshot(self) -> Any:
            return SimpleNamespace(status=next(self._statuses))

        def status(self) -> JobStatus:
            return self.snapshot.status  # type: ignore[no-any-return]

    job = ManagedJob("0" * 32, "job", 0)
    assert job.attach(Ending())  # type: ignore[arg-type]
    view = job.view()
    assert view.snapshot is not None
    assert view.status is view.snapshot.status is JobStatus.RUNNING
