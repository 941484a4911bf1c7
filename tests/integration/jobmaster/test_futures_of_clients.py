"""Futures that a client gives up on: the job and its other clients do not notice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.errors import CheckpointError
from firesteel.common.job_client import JobClient
from firesteel.common.job_status import JobStatus
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.configuration import Configuration
from firesteel.jobmaster.shell.snapshot_requests import SnapshotRequests
from firesteel.testing import TestingSource, eventually, test_environment

SECONDS = 60


@pytest.fixture
def client() -> Iterator[JobClient]:
    """The client of a job that runs without end."""
    environment = test_environment(configuration=Configuration.from_dict({"execution.checkpointing.interval": "1 h"}))
    source = TestingSource([1, 2, 3], bounded=False)
    environment.from_source(source, WatermarkStrategy.no_watermarks(), "n").map(lambda x: x).print()
    client = environment.execute_async("endless")
    eventually(lambda: status(client) is JobStatus.RUNNING and client._handle._master.checkpoints.is_running, SECONDS)  # type: ignore[attr-defined]
    yield client
    client.cancel().result(SECONDS)


def status(client: JobClient) -> JobStatus:
    found: JobStatus = client.get_job_status().result()
    return found


@pytest.mark.parametrize("give_up", ["cancel", "set_result"])
def test_a_savepoint_whose_client_gives_up_is_taken_and_the_job_goes_on(
    client: JobClient, tmp_path: Path, give_up: str
) -> None:
    given_up = client.trigger_savepoint(str(tmp_path / "given-up"))
    given_up.cancel() if give_up == "cancel" else given_up.set_result("nowhere")
    eventually(lambda: list(tmp_path.glob("given-up/savepoint-*/_metadata")), SECONDS)
    assert client.trigger_savepoint(str(tmp_path / "next")).result(SECONDS).startswith(str(tmp_path / "next"))
    assert status(client) is JobStatus.RUNNING
    assert not client.get_job_execution_result().done()


def test_a_client_that_waits_with_asyncio_for_too_short_a_time(client: JobClient, tmp_path: Path) -> None:
    async def impatient() -> None:
        future = client._handle.trigger_savepoint(str(tmp_path))  # type: ignore[attr-defined]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(future), 0)

    asyncio.run(impatient())
    eventually(lambda: list(tmp_path.glob("savepoint-*/_metadata")), SECONDS)
    assert client.trigger_savepoint(str(tmp_path)).result(SECONDS)
    assert status(client) is JobStatus.RUNNING


def test_the_end_of_a_job_is_told_to_all_others_if_one_does_not_want_to_know(client: JobClient, tmp_path: Path) -> None:
    given_up = client.get_job_execution_result()
    assert given_up.cancel()
    assert not client.get_job_execution_result().cancelled()
    stopped = client.stop_with_savepoint(False, str(tmp_path))
    assert stopped.result(SECONDS).startswith(str(tmp_path))
    client.get_job_execution_result().result(SECONDS)
    assert status(client) is JobStatus.FINISHED


def test_the_result_asked_for_again_is_the_same_future(client: JobClient) -> None:
    assert client.get_job_execution_result() is client.get_job_execution_result()


def test_a_stop_and_a_cancel_that_their_client_gives_up_on_happen(client: JobClient, tmp_path: Path) -> None:
    client.stop_with_savepoint(False, str(tmp_path)).cancel()
    client.cancel().cancel()
    eventually(lambda: status(client).is_globally_terminal_state(), SECONDS)
    eventually(lambda: client.get_job_execution_result().done(), SECONDS)


def _outcome(future: Any) -> Any:
    assert future.done()
    return future.exception() or future.result()


def test_requests_are_answered_once_whatever_comes_twice() -> None:
    requests = SnapshotRequests("a job")
    (first, one), (second, two) = requests.add(stops=False), requests.add(stops=True)
    requests.done(str(first), "/one")
    requests.done(str(first), "/one again")
    requests.failed(str(first), CheckpointError("after all"))
    assert _outcome(one) == "/one"
    requests.done(str(second), "/two")
    assert not two.done()
    requests.end_stops(None)
    requests.end_stops("the job failed")
    assert _outcome(two) == "/two"


def test_requests_end_with_the_job() -> None:
    requests = SnapshotRequests("a job")
    (_, open_one), (stopping, stopped) = requests.add(stops=True), requests.add(stops=True)
    requests.done(str(stopping), "/two")
    requests.end_stops("the job failed")
    requests.close()
    assert "The savepoint is at /two, but the job failed." in str(_outcome(stopped))
    assert "ended before" in str(_outcome(open_one))
    assert "ended before" in str(_outcome(requests.add(stops=False)[1]))
