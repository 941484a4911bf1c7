"""Jobs outlive their Dispatcher: suspended, fenced or gone, the next one goes on from what they have registered."""

from __future__ import annotations

import shutil
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firesteel.api.state import ValueStateDescriptor
from firesteel.cluster.dispatcher.dispatcher import DuplicateJobSubmissionError
from firesteel.cluster.dispatcher.managed_job import ManagedJob
from firesteel.cluster.ha.services import FencedError, JobSubmission
from firesteel.common import Configuration
from firesteel.common.errors import JobExecutionError
from firesteel.common.job_status import JobStatus
from firesteel.common.serialization import Encoder
from firesteel.common.typeinfo import Types
from firesteel.connectors.files.sink import FileSink
from firesteel.datastream.functions import KeyedProcessFunction, RuntimeContext
from firesteel.execution.epochs.host import EpochHost
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.shell.job_preparation import PreparedJob
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.runtime.dependencies.collection import dependency_artifacts
from firesteel.testing import eventually
from firesteel.testing.source import PAUSE
from firesteel.testing.stages import InProcessStageRunner
from tests.support.jobs.dispatched_jobs import (
    Cluster,
    MemoryStore,
    bounded,
    endless,
    is_running,
    numbers,
    submission_of,
)
from tests.support.wheels import write_wheel

CHECKPOINTED = {"execution.checkpointing.interval": "20 ms"}
LONG = 20_000
"""More records, 5 ms apart, than any test waits for."""


class Leaders:
    """One Dispatcher after the other, with the same store."""

    def __init__(self, directory: Path) -> None:
        self.store = MemoryStore()
        self._directory = directory
        self.all: list[Cluster] = []

    def next(self, store: MemoryStore | None = None) -> Cluster:
        cluster = Cluster(store or self.store, self._directory)
        self.all.append(cluster)
        cluster.dispatcher.recover()
        return cluster


@pytest.fixture
def leaders(tmp_path: Path) -> Iterator[Leaders]:
    leaders = Leaders(tmp_path)
    yield leaders
    for cluster in leaders.all:
        for job in cluster.dispatcher.jobs():
            job.cancel()
        cluster.dispatcher.close(60.0)


class Count(KeyedProcessFunction):
    """How many of a key there were."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        count = (self._state.value() or 0) + 1
        self._state.update(count)
        yield f"{value}:{count}"


def counting(environment: Any) -> None:
    numbers(environment, ["x", PAUSE(5)] * LONG).key_by(lambda x: x).process(Count()).print()


def completed(job: ManagedJob) -> int:
    return job.view().checkpoint_statistics().counts["completed"]


def has_printed(cluster: Cluster) -> bool:
    return len(cluster.lines) > 0


def test_the_next_leader_prepares_the_dependencies_of_a_job(leaders: Leaders, tmp_path: Path) -> None:
    """From the job store: neither the client's files nor what the first leader has extracted are there any more."""
    write_wheel(tmp_path / "wheels", "taken_package", "1.0", "NAME = 'package'\n")
    (tmp_path / "requirements.txt").write_text("taken_package\n")
    (tmp_path / "taken_module.py").write_text("NAME = 'module'\n")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("name.txt", "archive")
    settings = {
        "python.files": str(tmp_path / "taken_module.py"),
        "python.requirements": f"{tmp_path / 'requirements.txt'}#{tmp_path / 'wheels'}",
        "python.archives": f"{tmp_path / 'data.zip'}#data",
    }
    artifacts = dependency_artifacts(Configuration.from_dict(settings))
    first = leaders.next()
    submission = replace(submission_of(counting, CHECKPOINTED, "dependent"), artifacts=artifacts)
    job = first.dispatcher.job(first.dispatcher.submit(submission))
    eventually(lambda: completed(job) >= 1)
    first.dispatcher.close(60.0)
    (prepared,) = first.dependencies
    assert prepared is not None
    assert not any(directory.exists() for directory in prepared.directories)
    for name in ("requirements.txt", "taken_module.py", "data.zip"):
        (tmp_path / name).unlink()

    second = leaders.next()
    again = second.dispatcher.job(job.job_id)
    eventually(lambda: completed(again) >= 1)
    (prepared,) = second.dependencies
    assert prepared is not None
    assert prepared.working_directory is not None
    assert (Path(prepared.working_directory) / "data" / "name.txt").read_text() == "archive"
    found = {path.name for place in prepared.search_path for path in Path(place).glob("taken_*.py")}
    assert found == {"taken_module.py", "taken_package.py"}


def test_a_suspended_job_goes_on_from_its_last_checkpoint(leaders: Leaders) -> None:
    first = leaders.next()
    job = first.submit(counting, settings=CHECKPOINTED, name="counting")
    eventually(lambda: has_printed(first))
    before = completed(job)
    eventually(lambda: completed(job) >= before + 2)  # the second of them has begun with something counted
    first.dispatcher.close(60.0)
    assert job.status is JobStatus.SUSPENDED
    assert not leaders.store.ended
    number, path = leaders.store.registered[job.job_id][-1]
    assert Path(path).is_dir()

    second = leaders.next()
    again = second.dispatcher.job(job.job_id)
    assert (again.name, again.submitted_at) == ("counting", job.submitted_at)
    eventually(lambda: completed(again) >= 1 and has_printed(second))
    restored = again.view().checkpoint_statistics().restored
    assert restored is not None
    assert restored["id"] == number
    assert leaders.store.registered[job.job_id][-1][0] >= number + 10
    counts = [int(line.partition(":")[2]) for line in second.lines]
    assert counts[0] > 1
    assert counts == list(range(counts[0], counts[0] + len(counts)))
    assert job.runner is not None
    assert again.runner is not None
    assert again.runner.job_graph.run_id != job.runner.job_graph.run_id
    eventually(lambda: not Path(path).exists())  # subsumed: the new leader looks after what the old one has left


def test_the_last_checkpoint_is_gone_once_a_recovered_job_is_cancelled(leaders: Leaders) -> None:
    first = leaders.next()
    job = first.submit(counting, settings=CHECKPOINTED)
    eventually(lambda: completed(job) >= 1)
    first.dispatcher.close(60.0)
    assert job.runner is not None
    job.runner._job.storage.probe_token()  # type: ignore[union-attr]  # as if it had been killed
    second = leaders.next()
    again = second.dispatcher.job(job.job_id)
    eventually(lambda: is_running(again))
    again.cancel().result(60)
    assert not list((first.directory / "checkpoints").iterdir())
    assert [ended.status for ended in leaders.store.ended] == [JobStatus.CANCELED]


def test_jobs_without_checkpoints_begin_anew(leaders: Leaders) -> None:
    first = leaders.next()
    job = first.submit(endless)
    eventually(lambda: len(first.lines) == 3)
    first.dispatcher.close(60.0)
    second = leaders.next()
    eventually(lambda: second.lines == ["2", "3", "4"])
    assert is_running(second.dispatcher.job(job.job_id))


def test_a_job_that_waits_in_the_store_is_run_by_whoever_leads_next(leaders: Leaders) -> None:
    """As after a SIGKILL right behind the submission."""
    first = leaders.next()
    first.dispatcher._start = lambda *_: None  # type: ignore[method-assign]
    first.dispatcher.submit(submission_of(bounded))
    second = leaders.next()
    (job,) = second.dispatcher.jobs()
    job.result_future().result(60)
    assert second.lines == ["10", "20", "30"]


def test_jobs_are_recovered_in_the_order_of_their_submission(leaders: Leaders) -> None:
    first = leaders.next()
    for n in range(10):
        first.submit(endless, name=f"job {n}")
    first.dispatcher.close(60.0)
    second = leaders.next()
    eventually(lambda: len(second.started) == 10)
    assert second.started == [f"job {n}" for n in range(10)]


def test_ended_jobs_are_known_to_the_next_leader(leaders: Leaders) -> None:
    first = leaders.next()
    good = first.submit(bounded, name="good")
    good.result_future().result(60)
    bad = first.submit(endless, settings={"execution.state-recovery.path": "/no/such"}, name="bad")
    with pytest.raises(JobExecutionError):
        bad.result_future().result(60)
    first.dispatcher.close(60.0)

    second = leaders.next()
    shown = {job.name: job for job in second.dispatcher.jobs()}
    assert shown["good"].status is JobStatus.FINISHED
    assert shown["good"].view().vertices() == []
    assert shown["good"].view().end_time > 0
    assert shown["bad"].status is JobStatus.FAILED
    assert "/no/such" in shown["bad"].view().exceptions()[0].failure.message
    with pytest.raises(JobExecutionError, match="/no/such"):
        shown["bad"].result_future().result(0)
    with pytest.raises(DuplicateJobSubmissionError):
        second.submit(bounded, job_id=good.job_id)
    assert second.started == []


def test_a_job_starts_from_its_savepoint_again_until_it_has_a_checkpoint(leaders: Leaders, tmp_path: Path) -> None:
    first = leaders.next()
    job = first.submit(counting, settings=CHECKPOINTED)
    eventually(lambda: len(first.lines) > 5)
    savepoint = job.running().stop_with_savepoint(False, str(tmp_path / "savepoints")).result(60)
    job.result_future().result(60)

    settings = {"execution.state-recovery.path": savepoint, "execution.checkpointing.interval": "1 h"}
    second = leaders.next()
    resumed = second.submit(counting, settings=settings)
    eventually(lambda: len(second.lines) > 0)
    second.dispatcher.close(60.0)
    third = leaders.next()
    eventually(lambda: len(third.lines) > 0)
    assert third.lines[0] == second.lines[0]
    assert third.lines[0] != "x:1"
    assert leaders.store.registered[resumed.job_id] == []


def test_a_checkpoint_that_is_gone_is_replaced_by_an_older_one(
    leaders: Leaders, caplog: pytest.LogCaptureFixture
) -> None:
    first = leaders.next()
    job = first.submit(counting, settings={**CHECKPOINTED, "execution.checkpointing.num-retained": "3"})
    eventually(lambda: completed(job) >= 3)
    first.dispatcher.close(60.0)
    (older, _), (newest, path) = leaders.store.registered[job.job_id][-2:]
    shutil.rmtree(path)

    second = leaders.next()
    again = second.dispatcher.job(job.job_id)
    eventually(lambda: len(second.lines) > 0)
    restored = again.view().checkpoint_statistics().restored
    assert restored is not None
    assert restored["id"] == older
    assert f"Checkpoint {newest} of job" in caplog.text
    assert f"falls back to checkpoint {older}" in caplog.text


def test_a_job_with_no_checkpoint_left_fails_instead_of_beginning_anew(leaders: Leaders) -> None:
    first = leaders.next()
    job = first.submit(counting, settings=CHECKPOINTED)
    eventually(lambda: completed(job) >= 1)
    first.dispatcher.close(60.0)
    for _, path in leaders.store.registered[job.job_id]:
        shutil.rmtree(path, ignore_errors=True)
    second = leaders.next()
    with pytest.raises(JobExecutionError, match="cannot be restored"):
        second.dispatcher.job(job.job_id).result_future().result(60)


def test_a_job_that_commits_does_not_go_back_to_an_older_checkpoint(leaders: Leaders, tmp_path: Path) -> None:
    def writing(environment: Any) -> None:
        numbers(environment, ["x", PAUSE(5)] * LONG).sink_to(
            FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
        )

    first = leaders.next()
    job = first.submit(writing, settings={**CHECKPOINTED, "execution.checkpointing.num-retained": "3"})
    eventually(lambda: completed(job) >= 3)
    first.dispatcher.close(60.0)
    shutil.rmtree(leaders.store.registered[job.job_id][-1][1])
    second = leaders.next()
    with pytest.raises(JobExecutionError, match="cannot be restored"):
        second.dispatcher.job(job.job_id).result_future().result(60)


def test_one_job_that_cannot_be_read_does_not_keep_others_from_recovery(leaders: Leaders) -> None:
    first = leaders.next()
    bad, good = first.submit(endless, name="bad"), first.submit(endless, name="good")
    first.dispatcher.close(60.0)
    load = leaders.store.load

    def fail(job_id: str) -> JobSubmission:
        if job_id == bad.job_id:
            raise OSError("a bad disk")
        return load(job_id)

    leaders.store.load = fail  # type: ignore[method-assign]
    second = leaders.next()
    eventually(lambda: is_running(second.dispatcher.job(good.job_id)))
    lost = second.dispatcher.job(bad.job_id)
    assert lost.status is JobStatus.RESTARTING
    assert "a bad disk" in lost.view().exceptions()[0].failure.message
    assert bad.job_id in leaders.store.submissions
    leaders.store.load = load  # type: ignore[method-assign]
    eventually(lambda: is_running(lost))
    assert lost.name == "bad"


def test_a_fenced_leader_completes_no_checkpoint_and_deletes_nothing(leaders: Leaders) -> None:
    first = leaders.next()
    job = first.submit(counting, settings=CHECKPOINTED)
    eventually(lambda: completed(job) >= 1)
    fenced = leaders.store
    leaders.store = MemoryStore()
    fenced.is_fenced = True
    eventually(lambda: len(first.fenced) == 1)
    registered = list(fenced.registered[job.job_id])
    # what the next leader has
    leaders.store.submissions, leaders.store.registered = dict(fenced.submissions), dict(fenced.registered)
    second = leaders.next()
    again = second.dispatcher.job(job.job_id)
    eventually(lambda: completed(again) >= 2)
    newest = Path(leaders.store.registered[job.job_id][-1][1])

    job.cancel().result(60)
    assert job.status is JobStatus.SUSPENDED or not job.status.is_globally_terminal_state()
    assert fenced.registered[job.job_id] == registered
    assert not fenced.ended
    assert newest.is_dir() or completed(again) > 2
    assert is_running(again)
    assert len(first.fenced) == 1
    with pytest.raises(FencedError):
        fenced.put(replace(fenced.submissions[job.job_id]))


def test_a_job_that_is_being_cancelled_when_its_leader_ends_stays_cancelled(leaders: Leaders) -> None:
    first = leaders.next()
    job = first.submit(endless)
    eventually(lambda: is_running(job))
    job.cancel()
    eventually(lambda: job.status is not JobStatus.RUNNING)
    first.dispatcher.close(60.0)
    assert job.status is JobStatus.CANCELED
    assert leaders.next().started == []


def test_the_end_is_recorded_before_checkpoints_go(leaders: Leaders) -> None:
    first = leaders.next()
    job = first.submit(counting, settings=CHECKPOINTED)
    eventually(lambda: completed(job) >= 1)
    seen: list[bool] = []
    end = leaders.store.end

    def look(result: Any) -> None:
        seen.append(Path(leaders.store.registered[job.job_id][-1][1]).is_dir())
        assert not job.status.is_globally_terminal_state()
        end(result)

    leaders.store.end = look  # type: ignore[method-assign]
    job.cancel().result(60)
    assert seen == [True]


def test_a_store_that_fails_for_a_moment_does_not_lose_the_end_of_a_job(leaders: Leaders) -> None:
    first = leaders.next()
    end, failures = leaders.store.end, [OSError("busy"), OSError("busy")]

    def flaky(result: Any) -> None:
        if failures:
            raise failures.pop()
        end(result)

    leaders.store.end = flaky  # type: ignore[method-assign]
    first.submit(bounded).result_future().result(60)
    assert [ended.status for ended in leaders.store.ended] == [JobStatus.FINISHED]


def test_a_checkpoint_that_was_registered_and_given_up_is_forgotten(leaders: Leaders) -> None:
    """The job is suspended between the two: what is deleted must not be what the next leader looks for."""
    first = leaders.next()
    job = first.submit(counting, settings=CHECKPOINTED)
    eventually(lambda: completed(job) >= 1)
    add = leaders.store.add_checkpoint
    suspended = threading.Event()

    def suspend(job_id: str, checkpoint_id: int, path: str) -> None:
        add(job_id, checkpoint_id, path)
        if not suspended.is_set():
            runner = job.running()
            runner.suspend()
            eventually(lambda: runner.status() is not JobStatus.RUNNING)
            suspended.set()

    leaders.store.add_checkpoint = suspend  # type: ignore[method-assign]
    assert suspended.wait(60)
    first.dispatcher.close(60.0)
    assert job.status is JobStatus.SUSPENDED
    newest = leaders.store.registered[job.job_id][-1]
    assert Path(newest[1], "_metadata").is_file()


def test_a_job_that_was_stopped_with_a_savepoint_goes_back_to_nothing_older(leaders: Leaders, tmp_path: Path) -> None:
    """Its sinks have committed with the savepoint; the leader dies before the end of the job is recorded."""
    first = leaders.next()
    job = first.submit(counting, settings=CHECKPOINTED)
    eventually(lambda: completed(job) >= 1)
    savepoint = job.running().stop_with_savepoint(False, str(tmp_path / "savepoints"))
    path = savepoint.result(60)
    assert "savepoint-" in path
    job.result_future().result(60)

    leaders.store.submissions[job.job_id] = submission_of(counting, settings=CHECKPOINTED, job_id=job.job_id)
    leaders.store.registered[job.job_id] = [(7, path)]
    leaders.store.ended.clear()
    second = leaders.next()
    again = second.dispatcher.job(job.job_id)
    eventually(lambda: completed(again) >= 1 and has_printed(second))
    counts = [int(line.partition(":")[2]) for line in first.lines]
    assert second.lines[0] == f"x:{counts[-1] + 1}"
    again.cancel().result(60)
    assert Path(path, "_metadata").is_file()  # it belongs to the user


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_new_run_does_not_overtake_one_that_cannot_be_loaded_for_a_moment(
    leaders: Leaders, tmp_path: Path, is_kept: bool
) -> None:
    """Both would go on from the same place: the one that was there first does, and the other one is refused."""
    settings = {
        "execution.exchange": "spark",
        "execution.epoch.resume": "true",
        "execution.checkpointing.dir": str(tmp_path / "runs"),
    }

    def start(job: PreparedJob, services: JobServices) -> JobMasterRunner:
        return JobMasterRunner(job, EpochHost(InProcessStageRunner()), services)

    first = leaders.next()
    first.dispatcher._start_job = start
    job = first.submit(endless, settings=settings, name="nightly")
    eventually(lambda: is_running(job))
    first.dispatcher.close(60.0)
    load, failures = leaders.store.load, iter(range(2))

    def flaky(job_id: str) -> JobSubmission:
        if job_id == job.job_id and next(failures, None) is not None:
            raise OSError("not mounted")
        return load(job_id)

    leaders.store.load = flaky  # type: ignore[method-assign]
    second = Cluster(leaders.store, tmp_path)
    second.dispatcher._start_job = start
    leaders.all.append(second)
    if is_kept:  # the leader before was lost when it had taken the job, but not refused it
        kept = submission_of(endless, settings, "nightly")
        leaders.store.put(kept)
    second.dispatcher.recover()
    another = (
        second.dispatcher.job(kept.job_id) if is_kept else second.submit(endless, settings=settings, name="nightly")
    )
    recovered = second.dispatcher.job(job.job_id)
    eventually(lambda: another.status is JobStatus.FAILED)
    eventually(lambda: is_running(recovered))
    assert another.failure is not None
    assert "Another run of job 'nightly'" in another.failure.message
