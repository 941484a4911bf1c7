"""Whole JobManagers that share a directory: killed, stopped and started again under running jobs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from job_managers import JobManagerProcess, check_counts, submit_counting

from firesteel.testing import eventually

pytestmark = pytest.mark.cluster
DEADLINE_S = 120.0
JOBS = 3


class HighlyAvailableCluster:
    """JobManagers that come and go, and three jobs that count."""

    def __init__(self, directory: Path):
        self.directory = directory
        self._settings = {
            "taskmanager.numberOfTaskSlots": str(JOBS),
            "high-availability.storageDir": str(directory / "shared"),
            "high-availability.filesystem.lease-duration": "3 s",
            "execution.checkpointing.savepoint-dir": str(directory / "savepoints"),
        }
        self.managers: list[JobManagerProcess] = []
        self.jobs: dict[str, Path] = {}

    def start(self) -> JobManagerProcess:
        self.managers.append(JobManagerProcess(self.directory, self._settings))
        return self.managers[-1]

    def submit_jobs(self, leader: JobManagerProcess) -> None:
        for number in range(JOBS):
            output = self.directory / f"output-{number}"
            self.jobs[submit_counting(leader, f"counting {number}", output)] = output

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


def await_progress(cluster: HighlyAvailableCluster, leader: JobManagerProcess) -> dict[str, int]:
    """Waits until all jobs run and have taken a checkpoint under this leader; the numbers of those restored from."""

    def look() -> dict[str, int]:
        restored = {}
        for job_id in cluster.jobs:
            job = leader.get(f"/jobs/{job_id}")
            assert job is not None, "it does not lead"
            assert job["state"] == "RUNNING", (job["state"], leader.get(f"/jobs/{job_id}/exceptions"))
            checkpoints: Any = leader.get(f"/jobs/{job_id}/checkpoints")
            assert checkpoints["counts"]["completed"] >= 2
            latest = checkpoints["latest"]["restored"]
            restored[job_id] = 0 if latest is None else latest["id"]
        return restored

    return eventually(look, timeout=DEADLINE_S, interval=0.1)


def stop_and_check(cluster: HighlyAvailableCluster, leader: JobManagerProcess) -> None:
    """Ends all jobs with what they have read, and nothing is missing or there twice."""
    for job_id in cluster.jobs:
        leader.post(f"/jobs/{job_id}/stop", {"drain": True})
    for job_id, output in cluster.jobs.items():

        def ended(job_id: str = job_id) -> None:
            assert leader.get(f"/jobs/{job_id}")["state"] == "FINISHED"

        eventually(ended, timeout=DEADLINE_S, interval=0.1)
        assert check_counts(output) > 0


def test_jobs_survive_the_death_of_every_leader(cluster: HighlyAvailableCluster) -> None:
    first = cluster.start()
    await_leader(first)
    second = cluster.start()
    cluster.submit_jobs(first)
    assert set(await_progress(cluster, first).values()) == {0}
    assert not second.leads()

    first.kill()
    await_leader(second)
    restored = await_progress(cluster, second)
    assert all(number > 0 for number in restored.values()), "they began again instead of going on"
    eventually(first.has_left_nothing, timeout=DEADLINE_S)

    # alone, and no standby
    second.kill()
    third = cluster.start()
    await_leader(third)
    again = await_progress(cluster, third)
    assert all(again[job_id] > number for job_id, number in restored.items())
    stop_and_check(cluster, third)


def test_a_leader_that_was_stopped_and_goes_on_does_no_harm(cluster: HighlyAvailableCluster) -> None:
    first = cluster.start()
    await_leader(first)
    second = cluster.start()
    cluster.submit_jobs(first)
    await_progress(cluster, first)

    first.signal(signal.SIGSTOP)
    await_leader(second)
    restored = await_progress(cluster, second)
    assert all(number > 0 for number in restored.values())
    first.signal(signal.SIGCONT)
    # a standby again
    eventually(lambda: not first.leads(), timeout=DEADLINE_S)
    assert await_progress(cluster, second) == restored, "the second goes on undisturbed"
    stop_and_check(cluster, second)
