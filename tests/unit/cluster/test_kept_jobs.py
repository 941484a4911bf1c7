"""What breaks around a job is not its failure: it stays in the store, says why it does not run, and runs again."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.cluster.dispatcher.managed_job import ManagedJob
from firesteel.cluster.ha.services import JobResult
from firesteel.common.errors import HostError, JobCancelledError
from firesteel.common.job_status import JobStatus
from firesteel.common.serialization import Encoder
from firesteel.connectors.files.sink import FileSink
from firesteel.filesystem import filesystem
from firesteel.jobmaster.model.events import SlotLost
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.shell.job_preparation import PreparedJob
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.runtime.checkpoint import storage as checkpoint_storage
from firesteel.runtime.checkpoint.storage import CheckpointStorage
from firesteel.testing import eventually
from firesteel.testing.in_process import InProcessHost
from firesteel.testing.source import PAUSE
from tests.support.jobs.dispatched_jobs import Cluster, MemoryStore, bounded, endless, is_running, numbers

CHECKPOINTED = {"execution.checkpointing.interval": "20 ms"}
NEVER_RESTARTED = {"restart-strategy.type": "none"}


def counting(environment: Any) -> None:
    numbers(environment, ["x", PAUSE(5)] * 20_000).key_by(lambda x: x).reduce(lambda a, _b: a).print()


class Leaders:
    """One leader after the other, with the same store and directory."""

    def __init__(self, directory: Path) -> None:
        self.store = MemoryStore()
        self.directory = directory
        self._all: list[Cluster] = []

    def next(self, kind: type[Cluster] = Cluster, store: MemoryStore | None = None) -> Any:
        cluster = kind(store or self.store, self.directory)
        self._all.append(cluster)
        cluster.dispatcher.recover()
        return cluster

    def close(self) -> None:
        for cluster in self._all:
            for job in cluster.dispatcher.jobs():
                job.cancel()
            cluster.dispatcher.close(60.0)


@pytest.fixture
def leaders(tmp_path: Path) -> Iterator[Leaders]:
    leaders = Leaders(tmp_path)
    yield leaders
    leaders.close()


@pytest.fixture
def suspended(leaders: Leaders) -> ManagedJob:
    """A job that has run, has checkpoints, and waits for the next leader."""
    first = leaders.next()
    job: ManagedJob = first.submit(counting, settings=CHECKPOINTED)
    eventually(lambda: len(leaders.store.registered[job.job_id]) >= 2)
    first.dispatcher.close(60.0)
    return job


def recovered(cluster: Cluster, job: ManagedJob) -> ManagedJob:
    return cluster.dispatcher.job(job.job_id)


def waits_because(job: ManagedJob, text: str) -> bool:
    failures = job.view().exceptions()
    return job.status is JobStatus.RESTARTING and bool(failures) and text in failures[0].failure.describe()


# -- while a leader takes over ----------------------------------------------------------------------


def test_storage_that_cannot_be_read_for_a_while(
    leaders: Leaders, suspended: ManagedJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = checkpoint_storage.load

    def fail(_path: str) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(checkpoint_storage, "load", fail)
    job = recovered(leaders.next(), suspended)
    eventually(lambda: waits_because(job, "Input/output error"))
    assert not leaders.store.ended
    monkeypatch.setattr(checkpoint_storage, "load", load)
    eventually(lambda: is_running(job))
    restored = job.view().checkpoint_statistics().restored
    assert restored is not None
    assert restored["id"] >= 2


def test_storage_that_is_not_mounted_yet(leaders: Leaders, suspended: ManagedJob) -> None:
    mounted, away = leaders.directory / "checkpoints", leaders.directory / "away"
    mounted.rename(away)
    mounted.mkdir()
    job = recovered(leaders.next(), suspended)
    eventually(lambda: waits_because(job, "Check that the file system is mounted"))
    assert not leaders.store.ended
    mounted.rmdir()
    away.rename(mounted)
    eventually(lambda: is_running(job))


def test_one_write_error_in_a_slot(leaders: Leaders, suspended: ManagedJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a job that has run before, so that its directory is good enough."""
    check, full = CheckpointStorage.check_token, threading.Event()

    def fail_once(storage: CheckpointStorage, token: str, *, keep: bool = True) -> None:
        if keep and not full.is_set():
            full.set()
            with filesystem._reported("write", storage.base_dir):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        check(storage, token, keep=keep)

    monkeypatch.setattr(CheckpointStorage, "check_token", fail_once)
    job = recovered(leaders.next(), suspended)
    eventually(lambda: full.is_set() and is_running(job))
    assert not leaders.store.ended


def test_a_spark_that_is_gone_while_jobs_are_recovered(leaders: Leaders, suspended: ManagedJob) -> None:
    class NoSpark(Cluster):
        is_gone = True

        def _start(self, job: PreparedJob, services: JobServices) -> JobMasterRunner:
            if self.is_gone:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "cannot connect to the Java server")
            return super()._start(job, services)

    leader = leaders.next(NoSpark)
    job = recovered(leader, suspended)
    eventually(lambda: waits_because(job, "Java server"))
    assert not leaders.store.ended
    leader.is_gone = False
    eventually(lambda: is_running(job))


def test_a_job_that_waits_to_be_recovered_is_cancelled_or_suspended_at_once(
    leaders: Leaders, suspended: ManagedJob
) -> None:
    load = leaders.store.load

    def fail(_job_id: str) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    leaders.store.load = fail  # type: ignore[assignment, method-assign]
    second = leaders.next()
    job = recovered(second, suspended)
    eventually(lambda: waits_because(job, "Input/output error"))
    second.dispatcher.close(60.0)
    assert job.status is JobStatus.SUSPENDED
    assert suspended.job_id in leaders.store.submissions
    third = leaders.next()
    again = recovered(third, suspended)
    eventually(lambda: waits_because(again, "Input/output error"))
    again.cancel().result(60)
    assert again.status is JobStatus.CANCELED
    assert [ended.status for ended in leaders.store.ended] == [JobStatus.CANCELED]
    leaders.store.load = load  # type: ignore[method-assign]


# -- while a job runs -------------------------------------------------------------------------------


class _Host(InProcessHost):
    """A host one of whose calls fails."""

    def __init__(self, fails: str) -> None:
        super().__init__()
        self._fails = fails

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name == self._fails:

            def fail(*_arguments: Any) -> None:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "cannot connect to the Java server")

            return fail
        return super().__getattribute__(name)


class _OnBrokenHost(Cluster):
    fails = ""
    hosts: list[_Host]

    def _start(self, job: PreparedJob, services: JobServices) -> JobMasterRunner:
        host = _Host(self.fails)
        self.hosts = [*getattr(self, "hosts", []), host]
        return JobMasterRunner(job, host, services)


@pytest.mark.parametrize("call", ["start", "send"])
def test_a_call_to_the_host_that_fails(leaders: Leaders, call: str) -> None:
    cluster = leaders.next(_OnBrokenHost)
    cluster.fails = call
    job = cluster.submit(endless, settings=NEVER_RESTARTED)
    eventually(lambda: waits_because(job, "Java server"))
    assert not leaders.store.ended
    cluster.hosts[-1]._fails = ""
    eventually(lambda: is_running(job))


def test_a_kill_that_fails(leaders: Leaders) -> None:
    """As when Spark's JVM dies: its slots are lost first, and then nobody can be told to kill the rest."""
    cluster = leaders.next(_OnBrokenHost)
    job = cluster.submit(endless, settings={"restart-strategy.type": "fixed-delay"})
    eventually(lambda: is_running(job))
    (host,) = cluster.hosts
    host._fails = "kill"
    job.running()._events.put(SlotLost(0, 0, "the connection was lost"))
    eventually(lambda: job.status is JobStatus.RESTARTING)
    InProcessHost.kill(host, 0, "it ends by itself")
    eventually(lambda: is_running(job) and job.running().snapshot.attempt == 1)
    assert not leaders.store.ended


def test_a_failure_does_not_count_while_spark_is_gone(leaders: Leaders) -> None:
    lives = threading.Event()

    class LostSpark(Cluster):
        def __init__(self, store: MemoryStore, directory: Path) -> None:
            super().__init__(store, directory)
            self.dispatcher._ends._host_lives = lives.is_set

    cluster = leaders.next(LostSpark)
    job = cluster.submit(
        lambda environment: numbers(environment, [1, 0]).map(lambda x: 1 // x).print(), settings=NEVER_RESTARTED
    )
    eventually(lambda: waits_because(job, "Spark was lost"))
    assert not leaders.store.ended
    lives.set()
    eventually(lambda: job.status is JobStatus.FAILED)
    assert [ended.status for ended in leaders.store.ended] == [JobStatus.FAILED]


def test_the_results_of_a_job_whose_job_master_broke_down_do_not_end(leaders: Leaders) -> None:
    cluster = leaders.next()
    job = cluster.submit(lambda environment: numbers(environment, [1, 2, 3]).print())
    eventually(lambda: is_running(job))
    runner = job.running()
    runner._master.handle = lambda *_: 1 // 0
    runner._events.put(SlotLost(0, 0))
    eventually(lambda: runner.is_over)
    assert runner.take_results("any", 0) is None


def test_output_that_cannot_be_written_does_not_hurt_the_job(leaders: Leaders) -> None:
    cluster = leaders.next()
    written: list[str] = []

    def write(_job: str, _stream: str, lines: list[str]) -> None:
        written.extend(lines)
        raise OSError(errno.ENOSPC, "No space left on device")

    cluster.dispatcher._write_output = write
    job = cluster.submit(bounded)
    job.result_future().result(60)
    assert written == ["10", "20", "30"]


# -- when it ends -----------------------------------------------------------------------------------


class FullStore(MemoryStore):
    """A store that cannot be written when a job ends."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = True
        self.half_way = False

    def end(self, result: JobResult) -> None:
        if self.half_way:
            super().end(result)
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().end(result)


def writing(directory: Path) -> Callable[[Any], None]:
    def build(environment: Any) -> None:
        numbers(environment, [1, 2, 3, PAUSE(100), 4, 5], bounded=True).map(str).sink_to(
            FileSink.for_row_format(str(directory), Encoder.simple_string_encoder()).build()
        )

    return build


def written(directory: Path) -> list[str]:
    files = (path for path in directory.rglob("part*") if ".inprogress" not in str(path))
    return sorted(line for path in files for line in path.read_text().split())


def test_an_end_that_cannot_be_recorded_is_tried_again_and_nothing_is_deleted_before(leaders: Leaders) -> None:
    store = FullStore()
    cluster = leaders.next(store=store)
    job = cluster.submit(writing(leaders.directory / "out"), settings={"execution.checkpointing.interval": "20 ms"})
    eventually(lambda: job.view().pending_end is not None)
    assert job.view().pending_end.startswith("FINISHED, but that is not recorded yet: OSError")
    (shown,) = job.view().exceptions()
    assert "FINISHED, but that is not recorded yet" in shown.failure.message
    assert job.status is JobStatus.RUNNING
    assert not job.is_over
    _, path = store.registered[job.job_id][-1]
    assert Path(path, "_metadata").is_file()
    store.is_full = False
    job.result_future().result(60)
    assert job.status is JobStatus.FINISHED
    assert job.view().pending_end is None
    assert [ended.status for ended in store.ended] == [JobStatus.FINISHED]
    eventually(lambda: not Path(path).exists())


def test_a_job_whose_end_was_not_recorded_ends_again_under_the_next_leader(leaders: Leaders) -> None:
    store = FullStore()
    cluster = leaders.next(store=store)
    job = cluster.submit(writing(leaders.directory / "out"), settings={"execution.checkpointing.interval": "20 ms"})
    eventually(lambda: job.view().pending_end is not None)
    cluster.dispatcher.close(60.0)
    assert job.status is JobStatus.SUSPENDED
    with pytest.raises(JobCancelledError, match="suspended"):
        job.result_future().result(0)
    assert Path(store.registered[job.job_id][-1][1], "_metadata").is_file()
    store.is_full = False
    second = leaders.next(store=store)
    again = recovered(second, job)
    again.result_future().result(60)
    assert [ended.status for ended in store.ended] == [JobStatus.FINISHED]
    assert written(leaders.directory / "out") == ["1", "2", "3", "4", "5"]


def test_an_end_that_was_recorded_although_the_store_said_otherwise_is_recorded_once(leaders: Leaders) -> None:
    store = FullStore()
    store.half_way = True
    cluster = leaders.next(store=store)
    job = cluster.submit(bounded)
    job.result_future().result(60)
    assert [ended.status for ended in store.ended] == [JobStatus.FINISHED]


def test_others_get_the_slots_of_a_job_whose_end_is_not_recorded_yet(leaders: Leaders) -> None:
    closed: list[bool] = []

    class Host(InProcessHost):
        def close(self) -> None:
            closed.append(True)
            super().close()

    class Watched(Cluster):
        def _start(self, job: PreparedJob, services: JobServices) -> JobMasterRunner:
            return JobMasterRunner(job, Host(), services)

    store = FullStore()
    cluster = leaders.next(Watched, store)
    job = cluster.submit(bounded)
    eventually(lambda: job.view().pending_end is not None and closed)
    store.is_full = False
    job.result_future().result(60)
    assert closed == [True]


def test_a_cancel_before_the_job_runs_waits_for_the_store_too(leaders: Leaders) -> None:
    class NoSpark(Cluster):
        def _start(self, job: PreparedJob, services: JobServices) -> JobMasterRunner:
            raise HostError("Spark is gone")

    store = FullStore()
    cluster = leaders.next(NoSpark, store)
    job = cluster.submit(endless)
    eventually(lambda: waits_because(job, "Spark is gone"))
    over = job.cancel()
    eventually(lambda: job.view().pending_end is not None)
    assert job.status is JobStatus.CANCELLING
    assert not over.done()
    store.is_full = False
    over.result(60)
    assert job.status is JobStatus.CANCELED
