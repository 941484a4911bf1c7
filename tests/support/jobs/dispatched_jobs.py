"""What tests of the Dispatcher share: a store in memory, jobs that run in this process, and programs to submit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.dispatcher.managed_job import ManagedJob
from firesteel.cluster.ha.services import FencedError, JobResult, JobSubmission
from firesteel.common.job_client import JobClient
from firesteel.common.job_status import JobStatus
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.configuration import Configuration
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.shell.job_preparation import PreparedJob
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.jobmaster.shell.queued_host import QueuedHost
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.jobmaster.shell.slot_allocator import SlotAllocator
from firesteel.runtime.dependencies.prepared import PreparedDependencies
from firesteel.testing.in_process import InProcessHost
from firesteel.testing.source import TestingSource


class MemoryStore:
    """A JobStore that outlives Dispatchers, but not the test."""

    def __init__(self) -> None:
        self.submissions: dict[str, JobSubmission] = {}
        self.registered: dict[str, list[tuple[int, str]]] = {}
        self.ended: list[JobResult] = []
        self.is_fenced = False

    def _check(self) -> None:
        if self.is_fenced:
            raise FencedError("Another JobManager is the leader.")

    def put(self, submission: JobSubmission) -> None:
        self._check()
        self.submissions[submission.job_id] = submission
        self.registered.setdefault(submission.job_id, [])

    def job_ids(self) -> Sequence[str]:
        return list(self.submissions)

    def load(self, job_id: str) -> JobSubmission:
        return self.submissions[job_id]

    def add_checkpoint(self, job_id: str, checkpoint_id: int, path: str) -> None:
        self._check()
        self.registered[job_id] = [*self.registered[job_id], (checkpoint_id, path)][-3:]

    def remove_checkpoint(self, job_id: str, checkpoint_id: int) -> None:
        self._check()
        self.registered[job_id] = [known for known in self.registered[job_id] if known[0] != checkpoint_id]

    def checkpoints(self, job_id: str) -> Sequence[tuple[int, str]]:
        return list(self.registered[job_id])

    def end(self, result: JobResult) -> None:
        self._check()
        self.submissions.pop(result.job_id, None)
        self.registered.pop(result.job_id, None)
        self.ended.append(result)

    def results(self) -> Sequence[JobResult]:
        return list(self.ended)


def start_in_process(job: PreparedJob, services: JobServices, slots: SlotAllocator | None = None) -> JobMasterRunner:
    """A JobStarter without Spark."""
    host = InProcessHost()
    return JobMasterRunner(job, host if slots is None else QueuedHost(host, slots, job.job_graph.job_id), services)


class _Capture:
    def __init__(self) -> None:
        self.job_graph: JobGraph | None = None

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        self.job_graph = job_graph
        raise InterruptedError


def job_graph_of(
    build: Callable[[StreamExecutionEnvironment], Any], settings: dict[str, str] | None = None, name: str = "a job"
) -> JobGraph:
    """The graph of the program that ``build`` writes into an environment."""
    environment = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings or {}))
    environment._executor = capture = _Capture()
    build(environment)
    try:
        environment.execute(name)
    except InterruptedError:
        pass
    assert capture.job_graph is not None
    return capture.job_graph


def submission_of(
    build: Callable[[StreamExecutionEnvironment], Any],
    settings: dict[str, str] | None = None,
    name: str = "a job",
    job_id: str | None = None,
) -> JobSubmission:
    """A program, ready to be submitted."""
    graph = job_graph_of(build, settings, name)
    return JobSubmission(job_id or uuid.uuid4().hex, name, serialize_job(graph))


def endless(environment: StreamExecutionEnvironment) -> None:
    """A job that runs until it is told to stop."""
    numbers(environment, [1, 2, 3]).map(lambda x: x + 1).print()


def numbers(environment: StreamExecutionEnvironment, items: Sequence[Any], *, bounded: bool = False) -> DataStream:
    """A stream of items that does not end, unless it is bounded."""
    source = TestingSource(items, bounded=bounded)
    return environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")


def bounded(environment: Any) -> None:
    numbers(environment, [1, 2, 3], bounded=True).map(lambda x: x * 10).print()


def is_running(job: ManagedJob) -> bool:
    return job.status is JobStatus.RUNNING


class Cluster:
    """A Dispatcher, and what its jobs print."""

    def __init__(
        self,
        store: MemoryStore,
        directory: Path,
        settings: dict[str, str] | None = None,
        slots: SlotAllocator | None = None,
    ):
        self.store = store
        self.slots = slots
        self.directory = directory
        self.lines: list[str] = []
        self.fenced: list[str] = []
        self.started: list[str] = []
        self.dependencies: list[PreparedDependencies | None] = []
        self.dispatcher = Dispatcher(
            store,
            Configuration.from_dict(settings or {}),
            self._start,
            on_fenced=self.fenced.append,
            checkpoint_directory=str(directory / "checkpoints"),
            write_output=lambda _job, _stream, lines: self.lines.extend(lines),
        )

    def _start(self, job: PreparedJob, services: JobServices) -> JobMasterRunner:
        self.started.append(job.job_graph.job_name)
        self.dependencies.append(job.dependencies)
        return start_in_process(job, services, self.slots)

    def submit(self, build: Callable[..., Any], **options: Any) -> ManagedJob:
        return self.dispatcher.job(self.dispatcher.submit(submission_of(build, **options)))
