"""Jobs of a cluster that wait for slots: one that is not ready to take any keeps nobody else from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.cluster.dispatcher.resource_manager import ResourceManager
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.shell.job_preparation import PreparedJob
from firesteel.jobmaster.shell.queued_host import QueuedHost
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.testing import eventually
from firesteel.testing.in_process import InProcessHost
from firesteel.testing.source import TestingSource
from tests.support.jobs.dispatched_jobs import Cluster, MemoryStore, endless, is_running

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "60 s",
}


class SlotCluster(Cluster):
    """Its jobs get their slots as those of a real cluster do."""

    def __init__(self, store: MemoryStore, directory: Path, slots: int):
        self.resources = ResourceManager(lambda: slots, is_fixed=True)
        super().__init__(store, directory)

    def _start(self, job: PreparedJob, services: JobServices) -> JobMasterRunner:
        host = QueuedHost(InProcessHost(), self.resources, job.job_graph.job_id)
        runner = JobMasterRunner(job, host, services)
        self.resources.join(job.job_graph.job_id)
        return runner


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SlotCluster]:
    cluster = SlotCluster(MemoryStore(), tmp_path, slots=4)
    yield cluster
    cluster.dispatcher.close(60.0)


class Unreachable(TestingSource):
    """Its enumerator cannot be started, as that of a topic whose brokers are away."""

    def create_enumerator(self, context: Any) -> Any:
        raise ConnectionError("no broker answers")


def of_unreachable(environment: Any) -> None:
    environment.from_source(Unreachable([1], bounded=False), WatermarkStrategy.no_watermarks(), "topic").print()


def test_a_job_whose_source_cannot_be_reached_keeps_no_other_from_its_slots(cluster: SlotCluster) -> None:
    stuck = cluster.submit(of_unreachable, settings=RESTARTS)
    eventually(lambda: stuck.status.name == "RESTARTING")
    other = cluster.submit(endless)
    eventually(lambda: is_running(other), timeout=120)
    assert stuck.status.name == "RESTARTING"
