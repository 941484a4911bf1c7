"""Whole JobManagers that share a directory, or a ZooKeeper: killed, stopped and started again under running jobs."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from firesteel.testing import eventually
from firesteel.testing.services.processes import ServiceUnavailable
from firesteel.testing.services.zookeeper_server import ZooKeeperServer
from tests.support.processes import command_line, descendants
from tests.support.services.job_managers import JobManagerProcess, check_counts, submit_counting, submit_sql_counting

pytestmark = pytest.mark.cluster
DEADLINE_S = 240.0
JOBS = 3


class HighlyAvailableCluster:
    """JobManagers that come and go, and some jobs that count, as programs and as queries."""

    def __init__(self, directory: Path, **settings: str):
        self.directory = directory
        self._settings = {
            "taskmanager.numberOfTaskSlots": str(JOBS),
            "high-availability.storageDir": str(directory / "shared"),
            # so long that a leader on a busy machine keeps it
            "high-availability.filesystem.lease-duration": "10 s",
            "execution.checkpointing.savepoint-dir": str(directory / "savepoints"),
            **{f"high-availability.{key.replace('__', '.')}": value for key, value in settings.items()},
        }
        self.managers: list[JobManagerProcess] = []
        self.jobs: dict[str, Path] = {}

    def start(self) -> JobManagerProcess:
        self.managers.append(JobManagerProcess(self.directory, self._settings))
        return self.managers[-1]

    def submit_jobs(self, leader: JobManagerProcess, jobs: int = JOBS) -> None:
        for number in range(jobs):
            output = self.directory / f"output-{number}"
            # two of three are queries
            submit = submit_sql_counting if number % 3 else submit_counting
            self.jobs[submit(leader, f"counting {number}", output)] = output

    def close(self) -> None:
        for manager in self.managers:
            manager.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[HighlyAvailableCluster]:
    cluster = HighlyAvailableCluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.close()


def await_leader(manager: JobManagerProcess) -> None:
    eventually(manager.leads, timeout=DEADLINE_S, interval=0.05)


def await_progress(cluster: HighlyAvailableCluster, leader: JobManagerProcess, checkpoints: int) -> dict[str, int]:
    """Waits until all jobs run and have taken checkpoints under this leader; the numbers of those restored from."""

    def look() -> dict[str, int]:
        restored = {}
        for job_id in cluster.jobs:
            job = leader.get(f"/jobs/{job_id}")
            assert job is not None, "it does not lead"
            assert job["state"] == "RUNNING", (job["state"], leader.get(f"/jobs/{job_id}/exceptions"))
            statistics: Any = leader.get(f"/jobs/{job_id}/checkpoints")
            assert statistics is not None, "it does not lead"
            assert statistics["counts"]["completed"] >= checkpoints, "no checkpoint yet"
            latest = statistics["latest"]["restored"]
            restored[job_id] = 0 if latest is None else latest["id"]
        return restored

    return eventually(look, timeout=DEADLINE_S, interval=0.1)


def stop_and_check(cluster: HighlyAvailableCluster, leader: JobManagerProcess) -> None:
    """Ends all jobs with what they have read, and nothing is missing or there twice."""
    for job_id in cluster.jobs:
        leader.post(f"/jobs/{job_id}/stop", {"drain": True})

    def ended() -> None:
        jobs = [leader.get(f"/jobs/{job_id}") for job_id in cluster.jobs]
        assert {job and job["state"] for job in jobs} == {"FINISHED"}

    eventually(ended, timeout=DEADLINE_S, interval=0.1)
    for output in cluster.jobs.values():
        assert check_counts(output) > 0


def test_jobs_survive_whatever_happens_to_their_leaders(cluster: HighlyAvailableCluster) -> None:
    """Stopped and woken up, killed with a standby, killed without one: after each, all jobs go on from checkpoints."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)

    def progress(leader: JobManagerProcess) -> dict[str, int]:
        return await_progress(cluster, leader, dice.randint(1, 4))

    first = cluster.start()
    await_leader(first)
    second = cluster.start()
    cluster.submit_jobs(first)
    assert set(progress(first).values()) == {0}
    assert not second.leads()

    first.signal(signal.SIGSTOP)
    await_leader(second)
    restored = progress(second)
    assert all(number > 0 for number in restored.values()), "they began again instead of going on"
    first.signal(signal.SIGCONT)
    # it does not believe that it leads, and becomes a standby whose slots are gone
    eventually(lambda: not first.leads(), timeout=DEADLINE_S, interval=0.05)
    eventually(first.has_left_nothing, timeout=DEADLINE_S)
    assert progress(second) == restored, "the second goes on undisturbed"

    second.kill()
    await_leader(first)
    again = progress(first)
    assert all(again[job_id] > number for job_id, number in restored.items())
    eventually(second.has_left_nothing, timeout=DEADLINE_S)

    # nobody stands by
    first.kill()
    third = cluster.start()
    await_leader(third)
    last = progress(third)
    assert all(last[job_id] > number for job_id, number in again.items())
    stop_and_check(cluster, third)


def test_job_managers_outlive_a_directory_that_is_away_for_a_while(cluster: HighlyAvailableCluster) -> None:
    """Until the leader has lost its lease. Neither it nor the standby ends, and one of them goes on with the jobs."""
    leader = cluster.start()
    await_leader(leader)
    standby = cluster.start()
    standby.url()
    cluster.submit_jobs(leader, 1)
    await_progress(cluster, leader, 1)

    shared, away = cluster.directory / "shared", cluster.directory / "away"
    shared.rename(away)
    shared.write_text("a file where the directory was")
    eventually(leader.begins_anew, timeout=DEADLINE_S, interval=0.05)
    shared.unlink()
    away.rename(shared)

    restored = await_progress(cluster, next_leader(cluster), 1)
    assert all(number > 0 for number in restored.values()), "they began again instead of going on"
    assert {manager.pid for manager in cluster.managers} == {leader.pid, standby.pid}
    stop_and_check(cluster, next_leader(cluster))


def test_a_standby_whose_jvm_was_killed_begins_anew(cluster: HighlyAvailableCluster) -> None:
    """Before it has to take over, when there would be no Spark for the jobs."""
    leader = cluster.start()
    await_leader(leader)
    standby = cluster.start()
    standby.url()
    (jvm,) = (pid for pid in descendants(standby.pid) if "SparkSubmit" in command_line(pid))
    os.kill(jvm, signal.SIGKILL)
    eventually(standby.begins_anew, timeout=DEADLINE_S, interval=0.05)
    eventually(lambda: not standby.leads(), timeout=DEADLINE_S, interval=0.05)
    assert leader.leads()


def next_leader(cluster: HighlyAvailableCluster) -> JobManagerProcess:
    """Whoever leads first."""

    def look() -> JobManagerProcess:
        for manager in cluster.managers:
            with suppress(AssertionError):  # it does not listen any more, or not yet
                if manager.is_up() and manager.leads():
                    return manager
        raise AssertionError("nobody leads")

    return eventually(look, timeout=DEADLINE_S, interval=0.1)


@pytest.fixture
def zookeeper() -> Iterator[ZooKeeperServer]:
    try:
        server = ZooKeeperServer()
    except ServiceUnavailable as error:
        pytest.skip(str(error))
    with server:
        yield server


def test_a_standby_takes_over_by_way_of_zookeeper(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    cluster = HighlyAvailableCluster(tmp_path, type="zookeeper", zookeeper__quorum=zookeeper.address)
    try:
        leader = cluster.start()
        await_leader(leader)
        standby = cluster.start()
        cluster.submit_jobs(leader, 1)
        assert set(await_progress(cluster, leader, 1).values()) == {0}
        assert not standby.leads()

        leader.kill()
        await_leader(standby)
        restored = await_progress(cluster, standby, 1)
        assert all(number > 0 for number in restored.values()), "it began again instead of going on"
        stop_and_check(cluster, standby)
        # who leads, and what there is to do, ZooKeeper knows: nobody fell back on the directory
        assert not (tmp_path / "shared" / "default" / "epochs").exists()
    finally:
        cluster.close()
        # the next one to start Spark would remove what a killed one has left; there is none
        for manager in cluster.managers:
            for left in Path(tempfile.gettempdir()).glob(f"firesteel-spark-{manager.pid}-*"):
                shutil.rmtree(left)
