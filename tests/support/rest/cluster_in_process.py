"""A cluster without Spark: the real Dispatcher and REST API, with jobs that run in threads of this process."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.ha.services import JobResult, JobSubmission
from firesteel.cluster.rest.handlers import (
    checkpoints,
    exceptions,
    jobs,
    metrics,
    savepoints,
    sql_routes,
    submission,
    vertices,
)
from firesteel.cluster.rest.request import RestRequest, Route
from firesteel.cluster.rest.server import RestServer
from firesteel.cluster.sql_gateway import LazyGateway
from firesteel.config.configuration import Configuration
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.shell.job_preparation import PreparedJob
from firesteel.jobmaster.shell.queued_host import QueuedHost
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.jobmaster.shell.slot_allocator import SlotAllocator
from firesteel.rest import cluster as rest
from firesteel.rest.rescaling import UPDATE_RESOURCE_REQUIREMENTS
from firesteel.rest.token import make_token
from firesteel.testing.in_process import InProcessHost

if TYPE_CHECKING:
    from typing_extensions import Self


class _Store:
    """Keeps jobs in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, JobSubmission] = {}
        self.submissions: list[JobSubmission] = []

    def put(self, submission: JobSubmission) -> None:
        self.submissions.append(submission)
        self.kept[submission.job_id] = submission

    def job_ids(self) -> list[str]:
        return list(self.kept)

    def load(self, job_id: str) -> JobSubmission:
        return self.kept[job_id]

    def add_checkpoint(self, job_id: str, checkpoint_id: int, path: str) -> None:
        pass

    def remove_checkpoint(self, job_id: str, checkpoint_id: int) -> None:
        pass

    def checkpoints(self, job_id: str) -> list[tuple[int, str]]:
        return []

    def end(self, result: JobResult) -> None:
        self.kept.pop(result.job_id, None)

    def results(self) -> list[JobResult]:
        return []


class InProcessCluster:
    """Listens on any port, and is found as the clusters of this machine are: by the file in its directory."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None, pages: Path | None = None):
        self.directory = directory
        self.store = _Store()
        self.printed: list[str] = []
        self.rescaled: list[Any] = []
        self.slots: SlotAllocator | None = None
        """There are enough, unless these are set."""
        configuration = Configuration.from_dict({"rest.port": "0", **(settings or {})})
        directory.mkdir(parents=True)
        self.token_file = directory / "token"
        self.dispatcher = Dispatcher(
            self.store,
            configuration,
            self._start,
            on_fenced=lambda _: None,
            write_output=lambda _job, _stream, lines: self.printed.extend(lines),
        )
        self.gateway = LazyGateway(configuration, dispatcher=self.dispatcher)
        self.server = RestServer(
            self._routes(), configuration, token=make_token(self.token_file), static_directory=pages
        )

    def __enter__(self) -> Self:
        self.server.start()
        self.url = self.server.url
        self.address = self.server.public_address
        entries = self.directory / "jobmanagers"
        entries.mkdir()
        self.entry = entries / f"{os.getpid()}.json"
        content = {
            "pid": os.getpid(),
            "address": self.address,
            "url": self.url,
            "started_at": int(time.time() * 1000),
            "mode": "session",
            "token_file": str(self.token_file),
        }
        self.entry.write_text(json.dumps(content))
        return self

    def __exit__(self, *_: object) -> None:
        self.entry.unlink(missing_ok=True)
        self.gateway.close()
        for job in self.dispatcher.jobs():
            job.cancel().result(120)
        self.dispatcher.close()
        self.server.close()
        # stays for the next job that brings files
        shutil.rmtree(Path(tempfile.gettempdir()) / f"firesteel-artifacts-{os.getuid()}", ignore_errors=True)

    def _start(self, job: PreparedJob, services: JobServices) -> JobMasterRunner:
        host = InProcessHost()
        if self.slots is None:
            return JobMasterRunner(job, host, services)
        return JobMasterRunner(job, QueuedHost(host, self.slots, job.job_graph.job_id), services)

    def _routes(self) -> list[Route]:
        def overview(_: RestRequest[Any]) -> rest.ClusterOverview:
            return rest.ClusterOverview(1, 4, 4, 0, 0, 0, 0, rest.FLINK_VERSION, "firesteel")

        def config(_: RestRequest[Any]) -> rest.DashboardConfig:
            features = rest.DashboardFeatures(web_submit=True, web_cancel=True)
            return rest.DashboardConfig(1000, "UTC", 0, rest.FLINK_VERSION, "firesteel", features)

        def rescale(request: RestRequest[Any]) -> dict[str, Any]:
            self.rescaled.append(request.body)
            return {}

        found = [
            Route(rest.CLUSTER_OVERVIEW, overview),
            Route(rest.DASHBOARD_CONFIG, config),
            Route(UPDATE_RESOURCE_REQUIREMENTS, rescale),
            *jobs.routes(self.dispatcher),
            *vertices.routes(self.dispatcher),
            *checkpoints.routes(self.dispatcher),
            *exceptions.routes(self.dispatcher),
            *metrics.routes(self.dispatcher),
            *submission.routes(self.dispatcher),
            *sql_routes.routes(self.gateway.handlers),
            *savepoints.routes(self.dispatcher),
        ]
        return [replace(route, cache_ms=0) for route in found]  # a test looks at once
