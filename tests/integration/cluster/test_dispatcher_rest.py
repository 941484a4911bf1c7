"""Submitting, cancelling, savepoints and results over HTTP: Flink's paths and status codes."""

from __future__ import annotations

import http.client
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import cloudpickle
import pytest

from firesteel.cluster.dispatcher.managed_job import ManagedJob
from firesteel.cluster.rest.handlers import savepoints as savepoint_handlers
from firesteel.cluster.rest.handlers import submission as submission_handlers
from firesteel.cluster.rest.server import RestServer
from firesteel.common.errors import JobExecutionError
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.filesystem.local_filesystem import LocalFileSystem
from firesteel.filesystem.stores import current_stores, registered_scheme
from firesteel.graph.execution_graph import ExecutionState
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.rest import savepoints, submission
from firesteel.rest.client import RestClient, RestClientError
from firesteel.rest.submission import JobArtifact, JobSubmitRequest
from firesteel.runtime.checkpoint import storage
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.serialization import deserialize_batch
from firesteel.testing import eventually
from firesteel.testing.source import PAUSE
from tests.support.jobs.dispatched_jobs import Cluster, MemoryStore, bounded, endless, is_running, job_graph_of, numbers

TOKEN = "0123456789abcdef-token"
UNKNOWN = "f" * 32
CHECKPOINTED = {"execution.checkpointing.interval": "20 ms"}


class Served(Cluster):
    """A Dispatcher behind its REST port."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None):
        super().__init__(MemoryStore(), directory, settings)
        routes = [*submission_handlers.routes(self.dispatcher), *savepoint_handlers.routes(self.dispatcher)]
        configuration = Configuration.from_dict({"rest.port": "0"})
        self.server = RestServer(routes, configuration, token=TOKEN, static_directory=None)
        self.server.start()
        self.client = RestClient(self.server.url, token=TOKEN)

    def post_form(self, parts: list[tuple[str, str | None, bytes]], *, token: str | None = None) -> tuple[int, Any]:
        body = b""
        for name, filename, content in parts:
            where = f'name="{name}"' + (f'; filename="{filename}"' if filename else "")
            body += f"--x\r\nContent-Disposition: form-data; {where}\r\n\r\n".encode() + content + b"\r\n"
        headers = {"content-type": "multipart/form-data; boundary=x"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection(urlsplit(self.server.url).netloc, timeout=60)
        try:
            connection.request("POST", "/v1/jobs", body + b"--x--\r\n", headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def poll(self, job_id: str, trigger_id: str) -> str:
        path = {"jobid": job_id, "triggerid": trigger_id}
        found: list[str] = []

        def is_done() -> bool:
            answer = self.client.call(savepoints.SAVEPOINT_STATUS, path)
            found[:] = [answer.operation.location] if answer.operation is not None else []
            return answer.status.id == "COMPLETED"

        eventually(is_done)
        return found[0]

    def close(self) -> None:
        for job in self.dispatcher.jobs():
            job.cancel()
        self.client.close()
        self.server.close()
        self.dispatcher.close(60.0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.close()


def running(cluster: Served, build: Any = endless, **options: Any) -> ManagedJob:
    job = cluster.submit(build, **options)
    eventually(lambda: is_running(job))
    assert job.runner is not None
    eventually(lambda: {vertex.state for vertex in job.view().vertices()} == {ExecutionState.RUNNING})
    return job


def status_of(call: Any) -> int:
    with pytest.raises(RestClientError) as raised:
        call()
    return raised.value.status


# -- submitting ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [7, 9])
def test_a_job_is_submitted_with_its_files(
    cluster: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: int
) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("sent_package/__init__.py", f"FACTOR = {factor}\n")
    module = b"from sent_package import FACTOR\ndef times(x):\n    return x * FACTOR\n"
    graph = _graph_with(tmp_path, monkeypatch, module, archive.getvalue())
    request = JobSubmitRequest("g.bin", ["sent_module.py"], [JobArtifact("a.zip")], job_id="a" * 32, job_name="sent")
    uploads = {
        "file_0": ("g.bin", graph),
        "file_1": ("sent_module.py", module),
        "file_2": ("a.zip", archive.getvalue()),
    }
    answer = cluster.client.call(submission.SUBMIT_JOB, body=request, uploads=uploads)
    assert answer.job_url == f"/jobs/{'a' * 32}"
    job = cluster.dispatcher.job("a" * 32)
    job.result_future().result(60)
    assert job.name == "sent"
    assert cluster.lines == [str(factor), str(2 * factor)]
    # nothing stays of it: the next job may bring another module of the same name
    assert not {"sent_module", "sent_package"} & set(sys.modules)
    assert not any("firesteel-artifacts" in entry for entry in sys.path)


def _graph_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: bytes, archive: bytes) -> bytes:
    """A job with a function of a module that only the client has."""
    client = tmp_path / "client"
    client.mkdir()
    (client / "sent_module.py").write_bytes(module)
    (client / "a.zip").write_bytes(archive)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(client))
        patch.syspath_prepend(str(client / "a.zip"))
        import sent_module  # type: ignore[import-not-found]

        serialized = serialize_job(
            job_graph_of(lambda env: numbers(env, [1, 2], bounded=True).map(sent_module.times).print())
        )
    del sys.modules["sent_module"], sys.modules["sent_package"]
    return serialized


def test_a_job_whose_modules_were_not_sent_says_which(
    cluster: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("sent_package/__init__.py", "")
    module = b"import sent_package\ndef times(x):\n    return x\n"
    uploads = {"f": ("g", _graph_with(tmp_path, monkeypatch, module, archive.getvalue()))}
    answer = cluster.client.call(submission.SUBMIT_JOB, body=JobSubmitRequest("g"), uploads=uploads)
    job = cluster.dispatcher.job(answer.job_url.rpartition("/")[2])
    with pytest.raises(JobExecutionError, match="no module 'sent_module'"):
        job.result_future().result(60)


def test_pickles_are_not_read_without_the_token(cluster: Served, tmp_path: Path) -> None:
    trace = tmp_path / "executed"

    class Bomb:
        def __reduce__(self) -> Any:
            return trace.write_text, ("!",)

    parts = [("request", None, b'{"jobGraphFileName": "g"}'), ("file_0", "g", cloudpickle.dumps(Bomb()))]
    status, answer = cluster.post_form(parts)
    assert status == 401
    assert "token" in answer["errors"][0]
    assert cluster.post_form(parts, token="wrong")[0] == 401
    assert cluster.dispatcher.jobs() == []
    assert not trace.exists()


@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_job_graph_of_flink_s_own_client_is_refused_with_a_hint(cluster: Served, token: str | None) -> None:
    parts = [
        ("request", None, b'{"jobGraphFileName": "flink-jobgraph.bin", "jobJarFileNames": []}'),
        ("file_0", "flink-jobgraph.bin", b"\xac\xed\x00\x05" + b"sr\x00" * 100_000),
    ]
    status, answer = cluster.post_form(parts, token=token)
    assert status == 400
    assert "Flink client" in answer["errors"][0]
    assert "firesteel run" in answer["errors"][0]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([("request", None, b'{"jobGraphFileName": "other"}'), ("f", "g", b"1")], "'other' is not in the request"),
        ([("request", None, b"{}"), ("f", "g", b"1")], "JobGraph file"),
        ([("request", None, b'{"jobGraphFileName": 3}')], "jobGraphFileName"),
        ([("request", None, b"not json")], "not JSON"),
        ([("request", None, b'{"jobGraphFileName": "g", "jobId": "../x"}'), ("f", "g", b"1")], "32 hexadecimal"),
        ([("request", None, b'{"jobGraphFileName": "g"}'), ("f", "g", b"1"), ("f2", "g", b"2")], "Two files"),
    ],
)
def test_a_bad_submission_is_refused(cluster: Served, parts: Any, text: str) -> None:
    status, answer = cluster.post_form(parts, token=TOKEN)
    assert status == 400
    assert text in answer["errors"][0]
    assert cluster.dispatcher.jobs() == []


def test_a_job_id_that_is_in_use_is_a_conflict(cluster: Served) -> None:
    job = running(cluster)
    parts = [("request", None, json.dumps({"jobGraphFileName": "g", "jobId": job.job_id}).encode()), ("f", "g", b"1")]
    assert cluster.post_form(parts, token=TOKEN)[0] == 409


# -- cancelling ------------------------------------------------------------------------------------------


def test_cancelling(cluster: Served) -> None:
    job, ended = running(cluster), cluster.submit(bounded)
    ended.result_future().result(60)

    def cancel(job_id: str, **query: Any) -> Any:
        return cluster.client.call(submission.CANCEL_JOB, {"jobid": job_id}, query)

    assert status_of(lambda: cancel(UNKNOWN)) == 404
    assert status_of(lambda: cancel(ended.job_id)) == 409
    assert status_of(lambda: cancel(job.job_id, mode="stop")) == 308
    assert status_of(lambda: cancel(job.job_id, mode="explode")) == 400
    cancel(job.job_id, mode="cancel")
    cancel(job.job_id)
    eventually(lambda: job.status is JobStatus.CANCELED)
    cancel(job.job_id)


def test_cancelling_as_flink_s_pages_do(cluster: Served) -> None:
    jobs = [running(cluster), running(cluster)]
    cluster.client.call(submission.YARN_CANCEL, {"jobid": jobs[0].job_id})
    cluster.client.call(submission.CANCEL_APPLICATION, {"applicationid": jobs[1].job_id})
    eventually(lambda: all(job.status is JobStatus.CANCELED for job in jobs))
    assert status_of(lambda: cluster.client.call(submission.YARN_STOP, {"jobid": jobs[0].job_id})) == 308


def test_a_client_that_is_heard_of_no_more(cluster: Served) -> None:
    job = running(cluster)
    path = {"jobid": job.job_id}
    cluster.client.call(submission.CLIENT_HEARTBEAT, path, body=submission.ClientHeartbeat(2**50))
    assert not job.take_client_loss()
    cluster.client.call(submission.CLIENT_HEARTBEAT, path, body=submission.ClientHeartbeat(1))
    eventually(lambda: job.status is JobStatus.CANCELED)
    bad = submission.ClientHeartbeat(-5)
    assert status_of(lambda: cluster.client.call(submission.CLIENT_HEARTBEAT, path, body=bad)) == 400


# -- savepoints ------------------------------------------------------------------------------------------


def trigger(cluster: Served, job_id: str, **options: Any) -> str:
    body = savepoints.SavepointTrigger(**options)
    return cluster.client.call(savepoints.TRIGGER_SAVEPOINT, {"jobid": job_id}, body=body).request_id


def test_a_savepoint_is_taken_once_per_trigger_id_and_deleted(cluster: Served, tmp_path: Path) -> None:
    job = running(cluster)
    directory = str(tmp_path / "savepoints")
    request_id = trigger(cluster, job.job_id, target_directory=directory, trigger_id="b" * 32)
    assert request_id == "b" * 32
    assert trigger(cluster, job.job_id, target_directory=directory, trigger_id="b" * 32) == request_id
    location = cluster.poll(job.job_id, request_id)
    assert [path.name for path in (tmp_path / "savepoints").iterdir()] == [Path(location).name]

    body = savepoints.SavepointDisposal(location)
    disposal = cluster.client.call(savepoints.DISPOSE_SAVEPOINT, body=body).request_id
    path = {"triggerid": disposal}
    eventually(lambda: cluster.client.call(savepoints.DISPOSAL_STATUS, path).status.id == "COMPLETED")
    assert not Path(location).exists()
    again = cluster.client.call(savepoints.DISPOSE_SAVEPOINT, body=body).request_id
    eventually(lambda: _fails_with(cluster, savepoints.DISPOSAL_STATUS, {"triggerid": again}, "no checkpoint or save"))


def test_a_savepoint_is_deleted_with_the_settings_of_the_cluster(tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []

    def create() -> LocalFileSystem:
        seen.append(current_stores().settings)
        return LocalFileSystem()

    served = Served(tmp_path, {"s3.secret-key": "of the cluster"})
    try:
        with registered_scheme("spied", create):
            body = savepoints.SavepointDisposal("spied://bucket/savepoint")
            disposal = served.client.call(savepoints.DISPOSE_SAVEPOINT, body=body).request_id
            eventually(
                lambda: _fails_with(served, savepoints.DISPOSAL_STATUS, {"triggerid": disposal}, "no checkpoint")
            )
    finally:
        served.close()
    assert seen == [{"s3.secret-key": "of the cluster"}]


def _fails_with(cluster: Served, endpoint: Any, path: Any, text: str) -> bool:
    try:
        cluster.client.call(endpoint, path)
    except RestClientError as error:
        if error.status != 500 or text not in error.message:
            raise
        return True
    return False


def test_a_savepoint_needs_a_directory(cluster: Served) -> None:
    job = running(cluster)
    assert status_of(lambda: trigger(cluster, job.job_id)) == 400
    assert status_of(lambda: trigger(cluster, UNKNOWN)) == 400
    with pytest.raises(RestClientError, match="targetDirectory"):
        cluster.client.call(savepoints.STOP_JOB, {"jobid": job.job_id})


def test_the_job_s_own_savepoint_directory_counts(cluster: Served, tmp_path: Path) -> None:
    job = running(cluster, settings={"execution.checkpointing.savepoint-dir": str(tmp_path / "own")})
    assert cluster.poll(job.job_id, trigger(cluster, job.job_id)).startswith(str(tmp_path / "own"))


def test_what_goes_wrong_with_a_savepoint_is_told_to_whoever_polls(cluster: Served, tmp_path: Path) -> None:
    job, ended = running(cluster), cluster.submit(bounded)
    ended.result_future().result(60)
    (tmp_path / "file").write_text("in the way")
    directory = str(tmp_path / "savepoints")
    for job_id, target, text in [
        (UNKNOWN, directory, "not found"),
        (ended.job_id, directory, "FINISHED"),
        (job.job_id, str(tmp_path / "file" / "below"), "file"),
    ]:
        path = {"jobid": job_id, "triggerid": trigger(cluster, job_id, target_directory=target)}
        eventually(lambda path=path, text=text: _fails_with(cluster, savepoints.SAVEPOINT_STATUS, path, text))  # type: ignore[misc]
    unknown = {"jobid": job.job_id, "triggerid": "c" * 32}
    assert status_of(lambda: cluster.client.call(savepoints.SAVEPOINT_STATUS, unknown)) == 404


def test_a_job_is_stopped_with_a_savepoint(cluster: Served, tmp_path: Path) -> None:
    job = running(cluster)
    body = savepoints.StopWithSavepoint(target_directory=str(tmp_path / "s"), drain=True, format_type="NATIVE")
    request_id = cluster.client.call(savepoints.STOP_JOB, {"jobid": job.job_id}, body=body).request_id
    assert Path(cluster.poll(job.job_id, request_id), "_metadata").is_file()
    eventually(lambda: job.status is JobStatus.FINISHED)
    late = cluster.client.call(savepoints.STOP_JOB, {"jobid": job.job_id}, body=body).request_id
    path = {"jobid": job.job_id, "triggerid": late}
    eventually(lambda: _fails_with(cluster, savepoints.SAVEPOINT_STATUS, path, "FINISHED"))


def test_a_job_is_cancelled_with_a_savepoint(cluster: Served, tmp_path: Path) -> None:
    job = running(cluster)
    request_id = trigger(cluster, job.job_id, target_directory=str(tmp_path / "s"), cancel_job=True)
    assert Path(cluster.poll(job.job_id, request_id), "_metadata").is_file()
    eventually(lambda: job.status is JobStatus.CANCELED)


def test_a_checkpoint_is_taken_on_demand(cluster: Served) -> None:
    job = running(cluster, settings={"execution.checkpointing.interval": "1 h"})
    request_id = cluster.client.call(savepoints.TRIGGER_CHECKPOINT, {"jobid": job.job_id}).request_id
    path = {"jobid": job.job_id, "triggerid": request_id}
    eventually(lambda: cluster.client.call(savepoints.CHECKPOINT_STATUS, path).status.id == "COMPLETED")
    answer = cluster.client.call(savepoints.CHECKPOINT_STATUS, path)
    assert answer.operation is not None
    assert answer.operation.checkpoint_id == 1
    for number, wanted in enumerate(("FULL", "INCREMENTAL", "CONFIGURED", None), 2):
        body = savepoints.CheckpointTrigger(wanted)
        request_id = cluster.client.call(savepoints.TRIGGER_CHECKPOINT, {"jobid": job.job_id}, body=body).request_id
        path = {"jobid": job.job_id, "triggerid": request_id}
        eventually(lambda path=path: cluster.client.call(savepoints.CHECKPOINT_STATUS, path).status.id == "COMPLETED")
        taken = storage.load(cluster.store.registered[job.job_id][-1][1])
        expected = SnapshotKind.FULL_CHECKPOINT if wanted == "FULL" else SnapshotKind.CHECKPOINT
        assert (taken.checkpoint_id, taken.kind) == (number, expected)

    own = cluster.store.registered[job.job_id][-1][1]
    disposal = cluster.client.call(savepoints.DISPOSE_SAVEPOINT, body=savepoints.SavepointDisposal(own)).request_id
    eventually(lambda: _fails_with(cluster, savepoints.DISPOSAL_STATUS, {"triggerid": disposal}, "which runs"))
    without = running(cluster)
    request_id = cluster.client.call(savepoints.TRIGGER_CHECKPOINT, {"jobid": without.job_id}).request_id
    failing = {"jobid": without.job_id, "triggerid": request_id}
    eventually(lambda: _fails_with(cluster, savepoints.CHECKPOINT_STATUS, failing, "takes no checkpoints"))


# -- results ---------------------------------------------------------------------------------------------


def collecting(environment: Any) -> None:
    items = [item for n in range(30) for item in (n, PAUSE(1))]
    numbers(environment, items, bounded=True).sink_to(CollectSink("results"))


def fetch(cluster: Served, job: ManagedJob, received: int, timeout: int = 5000) -> submission.ChannelResults:
    path = {"jobid": job.job_id, "channel": "results"}
    return cluster.client.call(submission.JOB_CHANNEL, path, {"received": received, "timeout": timeout})


@pytest.mark.parametrize("settings", [{}, CHECKPOINTED])
def test_results_come_once_each_although_every_second_answer_is_lost(cluster: Served, settings: dict[str, str]) -> None:
    job = cluster.submit(collecting, settings=settings)
    received: list[bytes] = []
    requests = 0
    while True:
        answer = fetch(cluster, job, len(received))
        requests += 1
        if requests % 2 == 0:
            continue  # it never came
        assert answer.first == len(received)
        received += answer.payloads
        if answer.end and not answer.payloads:
            break
    assert [value for payload in received for value in deserialize_batch(payload).values] == list(range(30))
    assert job.status is JobStatus.FINISHED


def test_a_reader_that_does_not_know_what_it_has_is_told(cluster: Served) -> None:
    job = running(cluster)
    assert fetch(cluster, job, 0, timeout=0).payloads == []
    assert status_of(lambda: fetch(cluster, job, 7)) == 409
    assert status_of(lambda: fetch(cluster, job, -1)) == 400
    unknown = {"jobid": UNKNOWN, "channel": "results"}
    assert status_of(lambda: cluster.client.call(submission.JOB_CHANNEL, unknown)) == 404
    bare = RestClient(cluster.server.url)
    with pytest.raises(RestClientError) as raised:
        bare.call(submission.JOB_CHANNEL, {"jobid": job.job_id, "channel": "results"})
    bare.close()
    assert raised.value.status == 401


def test_the_results_of_a_job_that_could_not_be_prepared_end_at_once(cluster: Served) -> None:
    job = cluster.submit(collecting, settings={"execution.state-recovery.path": "/no/such"})
    eventually(lambda: fetch(cluster, job, 0).end)
