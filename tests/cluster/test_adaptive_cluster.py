"""The adaptive scheduler on a real Spark standalone cluster whose workers die and return."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from firesteel.testing import eventually
from tests.support.processes import descendants
from tests.support.services.standalone_cluster import Driver, StandaloneCluster
from tests.support.visible_files import visible_lines

pytestmark = pytest.mark.cluster

SETTINGS = {
    "jobmanager.scheduler": "adaptive",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "1 s",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "1 s",
    "jobmanager.adaptive-scheduler.rescale-trigger.max-delay": "60 s",
    "execution.checkpointing.interval": "500 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "100 ms",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    cluster = StandaloneCluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def driver(cluster: StandaloneCluster) -> Iterator[Driver]:
    driver = Driver(cluster)
    try:
        yield driver
    finally:
        driver.close()


def kill_with_executor(worker: subprocess.Popen[bytes]) -> None:
    """What becomes of a machine whose power fails."""
    for pid in [worker.pid, *descendants(worker.pid)]:
        with suppress(ProcessLookupError):  # the executor ends when its worker does
            os.kill(pid, signal.SIGKILL)
    worker.wait(120)


def written(directory: Path) -> list[tuple[int, int, int]]:
    """Key, count and parallelism of every line that a reader of the sink's files sees."""
    return [tuple(map(int, line.split())) for line in visible_lines(directory)]  # type: ignore[misc]


def test_a_job_survives_the_loss_of_a_worker_on_the_other_and_uses_the_next_one(
    cluster: StandaloneCluster, driver: Driver, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    first, _second = cluster.add_workers(2)
    settings = {**SETTINGS, "execution.checkpointing.dir": str(tmp_path / "checkpoints")}
    job = driver("count", directory=str(output), parallelism=2, settings=settings)

    def counted_at(parallelism: int, after: int = 0) -> int:
        counts = [count for _, count, each in written(output) if each == parallelism]
        assert max(counts, default=0) > after
        return max(counts)

    both = eventually(lambda: counted_at(2), timeout=240, interval=0.2)
    kill_with_executor(first)
    alone = eventually(lambda: counted_at(1, after=both), timeout=240, interval=0.2)
    cluster.add_workers(1)
    eventually(lambda: counted_at(2, after=alone), timeout=240, interval=0.2)
    driver("stop", job=job, directory=str(tmp_path))
    assert driver("wait", job=job)["status"] == "FINISHED"

    by_key: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for key, count, parallelism in written(output):
        by_key[key].append((count, parallelism))
    assert set(by_key) == set(range(20))
    for key, counted in by_key.items():
        counted.sort()
        assert [count for count, _ in counted] == list(range(1, len(counted) + 1)), f"key {key}"
        # it may have begun on the worker that was there first, and a key may have none of what was committed on both
        changes = [parallelism for parallelism, _ in itertools.groupby(each for _, each in counted)]
        assert changes in ([2, 1, 2], [1, 2, 1, 2], [1, 2])
