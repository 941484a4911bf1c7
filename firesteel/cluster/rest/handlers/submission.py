"""REST handlers that submit and cancel jobs, and return collected results."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from typing import Any

from firesteel.cluster.diagnostics.known_jobs import now_ms
from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.ha.services import JobSubmission
from firesteel.cluster.rest.request import RestError, RestRequest, Route, Upload
from firesteel.common.job_status import JobStatus
from firesteel.rest.submission import (
    CANCEL_APPLICATION,
    CANCEL_JOB,
    CLIENT_HEARTBEAT,
    JOB_CHANNEL,
    SUBMIT_JOB,
    YARN_CANCEL,
    YARN_STOP,
    ChannelResults,
    ClientHeartbeat,
    Empty,
    JobSubmitRequest,
    JobSubmitted,
)

__all__ = ["foreign_job_graph", "routes"]

JAVA_MAGIC = b"\xac\xed\x00\x05"
"""What everything begins with that Java has serialized."""
MAX_NAME_LENGTH = 10_000
MAX_WAIT_S = 10.0
SHORT_WAIT_S = 0.2
MAX_WAITING = 8
"""So many readers of results may wait at once; each has one of the server's threads meanwhile."""
_MAX_TIME_MS = 2**53


def routes(dispatcher: Dispatcher, *, is_cancel_enabled: bool = True) -> list[Route]:
    waiting = threading.BoundedSemaphore(MAX_WAITING)

    def submit(request: RestRequest[JobSubmitRequest]) -> JobSubmitted:
        body = request.body
        files = _files(request.uploads)
        if any(content.startswith(JAVA_MAGIC) for content in files.values()):
            raise _foreign()
        graph = _file(files, "JobGraph", body.job_graph_file_name)
        artifacts = {name: _file(files, "Jar", name) for name in body.job_jar_file_names}
        for artifact in body.job_artifact_file_names:
            name = artifact.entry_name or artifact.file_name
            artifacts[name] = _file(files, "Artifact", artifact.file_name)
        job_id = (body.job_id or uuid.uuid4().hex).lower()
        name = body.job_name or f"Job {job_id}"
        if len(name) > MAX_NAME_LENGTH:
            raise RestError(400, f"The job's name has {len(name)} characters; {MAX_NAME_LENGTH} are allowed.")
        dispatcher.submit(JobSubmission(job_id, name, graph, artifacts))
        return JobSubmitted(f"/jobs/{job_id}")

    def cancel(request: RestRequest[Any]) -> Empty:
        mode = request.query.get("mode", "cancel").lower()
        if mode == "stop":
            raise _no_stop()
        if mode != "cancel":
            raise RestError(400, f"{mode[:100]!r} is not a valid mode; use mode=cancel.")
        return _cancel(dispatcher, request.path["jobid"])

    def yarn_cancel(request: RestRequest[Any]) -> Empty:
        if not is_cancel_enabled:
            raise RestError(403, "Cancelling jobs in the web UI is disabled: web.cancel.enable is false.")
        return _cancel(dispatcher, request.path["jobid"])

    def yarn_stop(_request: RestRequest[Any]) -> Empty:
        raise _no_stop()

    def cancel_application(request: RestRequest[Any]) -> Empty:
        return _cancel(dispatcher, request.path["applicationid"])

    def heartbeat(request: RestRequest[ClientHeartbeat]) -> Empty:
        job = dispatcher.job(request.path["jobid"])
        until, timeout = request.body.expired_timestamp, request.body.timeout
        if not 0 <= until <= _MAX_TIME_MS:
            raise RestError(400, f"{until} is not a time in milliseconds since 1970.")
        if timeout is not None and not 0 <= timeout <= _MAX_TIME_MS:
            raise RestError(400, f"{timeout} is not a timeout in milliseconds.")
        job.client_lives_for((until - now_ms() if timeout is None else timeout) / 1000)
        return Empty()

    def channel(request: RestRequest[Any]) -> ChannelResults:
        received, timeout_ms = request.query["received"], request.query["timeout"]
        if received < 0 or timeout_ms < 0:
            raise RestError(400, "received and timeout are 0 or more.")
        job = dispatcher.job(request.path["jobid"])
        may_wait = waiting.acquire(blocking=False)
        try:
            timeout_s = min(timeout_ms / 1000, MAX_WAIT_S if may_wait else SHORT_WAIT_S)
            runner = job.await_prepared(timeout_s)
            if runner is None or job.channels is None:
                return ChannelResults(received, [], job.is_over, "")
            results = job.channels.fetch(request.path["channel"], received, timeout_s)
            return ChannelResults(results.first, list(results.payloads), results.is_end, runner.job_graph.run_id)
        finally:
            if may_wait:
                waiting.release()

    return [
        Route(SUBMIT_JOB, submit, blocking=True, refusal=foreign_job_graph),
        Route(CANCEL_JOB, cancel),
        Route(YARN_CANCEL, yarn_cancel),
        Route(YARN_STOP, yarn_stop),
        Route(CANCEL_APPLICATION, cancel_application),
        Route(CLIENT_HEARTBEAT, heartbeat),
        Route(JOB_CHANNEL, channel, blocking=True),
    ]


def foreign_job_graph(beginning: bytes) -> RestError | None:
    """A better reason to refuse a submission without a token: that it comes from one of Flink's clients.

    >>> foreign_job_graph(b'--x\\r\\nContent-Disposition: ...\\r\\n\\r\\n' + JAVA_MAGIC) is None
    False
    """
    return _foreign() if b"\r\n\r\n" + JAVA_MAGIC in beginning else None


def _foreign() -> RestError:
    return RestError(
        400,
        "The job graph was serialized by Java: it comes from a Flink client, and its functions require Flink.",
        hint="Run the program with firesteel run, and import firesteel instead of pyflink in it.",
    )


def _no_stop() -> RestError:
    return RestError(
        308,
        "This way of stopping a job is not supported.",
        hint="POST /jobs/:jobid/stop takes a savepoint and stops the job.",
    )


def _cancel(dispatcher: Dispatcher, job_id: str) -> Empty:
    job = dispatcher.job(job_id)
    status = job.status
    if status in (JobStatus.FINISHED, JobStatus.FAILED):
        raise RestError(409, f"Job {job_id} cannot be cancelled: it is {status.name} already.")
    if status is JobStatus.SUSPENDED:
        raise RestError(503, f"Job {job_id} cannot be cancelled here: this JobManager is shutting down.")
    job.cancel()
    return Empty()


def _files(uploads: Mapping[str, Upload]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for upload in uploads.values():
        if upload.filename in files:
            raise RestError(400, f"Two files are named {upload.filename!r}.")
        files[upload.filename] = upload.content
    return files


def _file(files: Mapping[str, bytes], kind: str, name: str) -> bytes:
    content = files.get(name)
    if content is None:
        there = ", ".join(sorted(files)) or "none"
        raise RestError(400, f"{kind} file {name[:200]!r} is not in the request; the files in it: {there[:1000]}.")
    return content
