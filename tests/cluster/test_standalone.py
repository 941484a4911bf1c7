"""The same programs on a real Spark standalone cluster: a master, two workers with one core each, a driver."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from firesteel.testing import eventually
from tests.support.jobs.golden_jobs import read_golden
from tests.support.processes import is_alive
from tests.support.services.standalone_cluster import Driver, StandaloneCluster

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster(cluster_of_two: StandaloneCluster) -> StandaloneCluster:
    return cluster_of_two


@pytest.fixture(scope="module")
def driver(cluster: StandaloneCluster) -> Iterator[Driver]:
    driver = Driver(cluster)
    try:
        # executors, Python workers and the driver's JVM are there once the first job has run
        assert driver("run", job="union_of_streams", parallelism=2) == read_golden("union_of_streams")
        yield driver
    finally:
        driver.close()


@pytest.mark.parametrize("job", ["session_windows", "keyed_co_process"])
def test_a_job_gives_the_same_as_on_embedded_spark(job: str, driver: Driver) -> None:
    assert driver("run", job=job, parallelism=2) == read_golden(job)


def test_records_cross_from_one_executors_process_to_the_others(driver: Driver, cluster: StandaloneCluster) -> None:
    records = driver("crossing", parallelism=2)
    assert len(records) == 200
    pids = {record["from"][0] for record in records}
    assert len(pids) == 2
    assert pids <= cluster.executor_workers()
    executors = {record["from"][1] for record in records}
    assert len(executors) == 2, "one executor each"
    ways = {(record["from"][0], record["to"][0]) for record in records}
    assert len(ways) == 4, "from each process to itself and to the other"
    places = {record["key"]: record["to"] for record in records}
    assert all(record["to"] == places[record["key"]] for record in records), "one place for each key"


def test_a_killed_python_worker_fails_the_job_and_the_next_one_runs(driver: Driver) -> None:
    job = driver("start", parallelism=2)
    pid = driver("next", job=job)["to"][0]
    os.kill(pid, signal.SIGKILL)
    end = driver("wait", job=job)
    assert (end["status"], end["error"]) == ("FAILED", "SlotLost")
    assert f"pid {pid}" in end["message"]
    eventually(lambda: not is_alive(pid), timeout=120)
    assert driver("run", job="word_count", parallelism=2) == read_golden("word_count")


def test_a_cancelled_job_leaves_its_slots_to_the_next(driver: Driver) -> None:
    job = driver("start", parallelism=2)
    driver("next", job=job)
    driver("cancel", job=job)
    assert driver("status", job=job) == "CANCELED"
    assert driver("run", job="word_count", parallelism=2) == read_golden("word_count")


def test_more_slots_than_the_cluster_has_says_both_numbers_after_the_wait(driver: Driver) -> None:
    started = time.monotonic()
    job = driver("start", parallelism=3, timeout="1500 ms")
    end = driver("wait", job=job)
    assert time.monotonic() - started >= 1.5
    assert (end["status"], end["error"]) == ("FAILED", "NotEnoughSlotsError")
    assert (end["needed"], end["available"]) == (3, 2)
    assert "3 slots" in end["message"]


def test_a_job_waits_for_a_worker_that_joins(driver: Driver, cluster: StandaloneCluster) -> None:
    job = driver("start", parallelism=3, timeout="600 s")
    eventually(lambda: driver("status", job=job) == "CREATED")
    with cluster.another_worker():
        eventually(lambda: driver("status", job=job) == "RUNNING", timeout=240)
        pids: set[int] = set()

        def all_three() -> None:
            pids.add(driver("next", job=job)["to"][0])
            assert len(pids) == 3

        eventually(all_three, timeout=240, interval=0)
        driver("cancel", job=job)
        assert driver("run", job="partitioning", parallelism=2) == read_golden("partitioning")
