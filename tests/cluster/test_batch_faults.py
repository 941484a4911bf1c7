"""An executor of a standalone cluster is killed in each stage of a batch job."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.testing import eventually
from tests.support.jobs.batch_faults import STAGES, expected, hidden_files, lines, who_waits
from tests.support.processes import is_alive
from tests.support.services.standalone_cluster import Driver, StandaloneCluster

pytestmark = pytest.mark.cluster

RETRIES = {"spark.task.maxFailures": "4", "spark.stage.maxConsecutiveAttempts": "4"}


@pytest.fixture(scope="module")
def cluster(cluster_of_two: StandaloneCluster) -> StandaloneCluster:
    return cluster_of_two


@pytest.fixture(scope="module", params=["the host", "Spark"])
def driver(
    request: pytest.FixtureRequest, cluster: StandaloneCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Driver]:
    """Two of them: who runs a task again that was lost?"""
    driver = Driver(cluster, RETRIES if request.param == "Spark" else {})
    try:
        # executors and the driver's JVM are there once the first job has run
        directory = tmp_path_factory.mktemp("undisturbed")
        job = driver("batch", directory=str(directory), parallelism=2, held="none")
        assert driver("wait", job=job)["status"] == "FINISHED"
        assert lines(directory) == expected()
        yield driver
    finally:
        driver.close()


@pytest.mark.parametrize("stage", STAGES)
def test_the_result_is_the_same_and_every_file_there_once(
    stage: str, tmp_path: Path, driver: Driver, cluster: StandaloneCluster
) -> None:
    job = driver("batch", directory=str(tmp_path), parallelism=2, held=stage)
    worker = who_waits(tmp_path)
    executor = cluster.executor_of(worker)
    os.kill(executor, signal.SIGKILL)
    end = driver("wait", job=job)
    assert end["status"] == "FINISHED", end
    assert lines(tmp_path) == expected()
    assert hidden_files(tmp_path) == []
    eventually(lambda: not is_alive(worker) and not is_alive(executor), timeout=60)
