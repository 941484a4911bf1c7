"""An endless stream and what tests ask of the jobs that read it."""

from __future__ import annotations

import os
from typing import Any

from firesteel.common import JobClient, JobStatus, WatermarkStrategy
from firesteel.common.errors import FiresteelError
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.testing import eventually

__all__ = ["collecting", "ended", "endless", "running", "status", "with_pid"]

DEADLINE_S = 120.0
_CHANNEL = "results"


def endless(env: StreamExecutionEnvironment, per_second: float = 200) -> DataStream:
    """0, 1, 2, … without end."""
    source = DataGeneratorSource(lambda index: index, None, RateLimiterStrategy.per_second(per_second))
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "endless")


def with_pid(value: Any) -> Any:
    """The value and the process that saw it."""
    return value, os.getpid()


def collecting(stream: DataStream, name: str = "job") -> tuple[JobClient, Any]:
    """Starts the job; its client, and the stream's records as they come."""
    stream.sink_to(CollectSink(_CHANNEL))
    client = stream.get_execution_environment().execute_async(name)
    return client, client._handle.collect_iterator(_CHANNEL)  # type: ignore[attr-defined]


def status(client: JobClient) -> JobStatus:
    """The job's present status."""
    return client.get_job_status().result()  # type: ignore[no-any-return]


def running(client: JobClient) -> None:
    """Waits until the job runs."""
    eventually(lambda: status(client) is JobStatus.RUNNING, timeout=DEADLINE_S)


def ended(client: JobClient, timeout: float = DEADLINE_S) -> FiresteelError | None:
    """Waits for the end of the job: the error it ended with, if any."""
    try:
        client.get_job_execution_result().result(timeout)
    except FiresteelError as error:
        return error
    return None
