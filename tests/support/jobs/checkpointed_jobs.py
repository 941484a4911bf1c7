"""Runs a golden job with checkpoints, whole or in two parts with a savepoint in between.

The jobs are over in milliseconds, so their sources are slowed down: a reader gives one record at a time.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from firesteel.common.errors import CheckpointError
from firesteel.common.job_client import JobClient
from firesteel.config.configuration import Configuration
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.operators.source import SourceSpec
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput, Source, SourceReader
from firesteel.testing.eventually import eventually
from tests.support.jobs.golden_jobs import _in_order, load_job

__all__ = ["checkpointed", "run_in_two_parts", "run_with_checkpoints"]

DEADLINE_S = 240
PACE_S = 0.004


class SlowSource(Source[Any]):
    """Another source, one record every few milliseconds."""

    def __init__(self, source: Source[Any]):
        self.source = source
        self.emits_columns = source.emits_columns

    def get_boundedness(self) -> Any:
        return self.source.get_boundedness()

    def create_enumerator(self, context: Any) -> Any:
        return self.source.create_enumerator(context)

    def restore_enumerator(self, context: Any, state: Any) -> Any:
        return self.source.restore_enumerator(context, state)

    def create_reader(self, context: ReaderContext) -> Any:
        return SlowReader(self.source.create_reader(context))


class SlowReader(SourceReader[Any]):
    """Never says that there is more at once."""

    def __init__(self, reader: SourceReader[Any]):
        self._reader = reader
        self._next = 0.0
        self._polls = 0

    def start(self) -> None:
        self._reader.start()

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        # one by one at first; a job with many records must come to its end, too
        self._polls += 1
        status = self._reader.poll_next(output, max(1, (self._polls - 50) * 10))
        if status is InputStatus.MORE_AVAILABLE:
            self._next = time.monotonic() + PACE_S
            return InputStatus.NOTHING_AVAILABLE
        self._next = 0.0
        return status

    def available_at(self) -> float | None:
        return self._next or self._reader.available_at()

    def add_splits(self, splits: Sequence[Any]) -> None:
        self._next = 0.0
        self._reader.add_splits(splits)

    def notify_no_more_splits(self) -> None:
        self._next = 0.0
        self._reader.notify_no_more_splits()

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return self._reader.snapshot_state(checkpoint_id)

    def close(self) -> None:
        self._reader.close()


class SlowExecutor:
    """Runs jobs on another executor, with slow sources."""

    def __init__(self, executor: Any):
        self._executor = executor

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        vertices = []
        for vertex in job_graph.vertices:
            operators = []
            for operator in vertex.operators:
                spec = operator.node.spec
                if isinstance(spec, SourceSpec):
                    slow = replace(spec, source=SlowSource(spec.source))
                    operator = replace(operator, node=replace(operator.node, spec=slow))
                operators.append(operator)
            vertices.append(replace(vertex, operators=tuple(operators)))
        client: JobClient = self._executor.execute(replace(job_graph, vertices=tuple(vertices)), configuration)
        return client


def checkpointed(env: StreamExecutionEnvironment, directory: Path, **settings: str) -> StreamExecutionEnvironment:
    """The environment with frequent checkpoints and slow sources."""
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.interval": "15 ms",
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        # a job that takes longer than it is meant to must not see watermarks it was not meant to see
        "pipeline.auto-watermark-interval": "1 h",
        "execution.checkpointing.tolerable-failed-checkpoints": "1000",
        **{key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()},
    }.items():
        configuration.set_string(key, value)
    env.configure(configuration)
    if env._executor is None:
        from firesteel.datastream.executor import resolve_executor

        env._executor = resolve_executor(configuration)
    env._executor = SlowExecutor(env._executor)
    return env


def run_with_checkpoints(name: str, env: StreamExecutionEnvironment, directory: Path) -> tuple[list[str], int]:
    """The job's results as the golden file has them, and how many checkpoints were completed."""
    job = load_job(name)
    client, channel = _start(job, env, directory)
    collected = list(client._handle.collect_iterator(channel))  # type: ignore[attr-defined]
    client.get_job_execution_result().result(DEADLINE_S)
    completed = client._handle.checkpoint_statistics()["counts"]["completed"]  # type: ignore[attr-defined]
    return _lines(job, collected, directory), completed


def run_in_two_parts(
    name: str,
    first: StreamExecutionEnvironment,
    second: Callable[[str], StreamExecutionEnvironment],
    directory: Path,
) -> tuple[list[str], bool]:
    """The results of a job that is stopped with a savepoint, its third checkpoint, and goes on in another environment.

    Also tells whether it was stopped before its end; a very short job may be over by then.
    """
    job = load_job(name)
    client, channel = _start(job, first, directory)
    handle: Any = client._handle
    eventually(lambda: handle.checkpoint_statistics()["counts"]["completed"] >= 2 or client_is_over(client), DEADLINE_S)
    stopped = client.stop_with_savepoint(False, str(directory / "savepoints"))
    collected = list(handle.collect_iterator(channel))
    client.get_job_execution_result().result(DEADLINE_S)
    try:
        path = stopped.result(DEADLINE_S)
    except CheckpointError:  # the job ended by itself
        return _lines(job, collected, directory), False
    client, channel = _start(job, second(path), directory)
    collected += client._handle.collect_iterator(channel)  # type: ignore[attr-defined]
    client.get_job_execution_result().result(DEADLINE_S)
    return _lines(job, collected, directory), True


def client_is_over(client: JobClient) -> bool:
    return bool(client.get_job_status().result().is_globally_terminal_state())


def _start(job: Any, env: StreamExecutionEnvironment, directory: Path) -> tuple[JobClient, str]:
    env.get_config().set_global_job_parameters({"directory": str(directory / "out")})
    stream = job.build(env)
    channel = f"collect-{uuid.uuid4().hex}"
    if stream is not None:
        stream.sink_to(CollectSink(channel))
    return env.execute_async(job.__name__), channel


def _lines(job: Any, collected: list[Any], directory: Path) -> list[str]:
    values = list(job.results(directory / "out")) if hasattr(job, "results") else collected
    return _in_order(values, getattr(job, "key_of", None))
