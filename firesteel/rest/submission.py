"""REST endpoints: job submission, cancellation, client heartbeats and collected results."""

from __future__ import annotations

from typing import Any

import msgspec

from firesteel.rest.endpoint import Access, Endpoint, Parameter

__all__ = [
    "CANCEL_APPLICATION",
    "CANCEL_JOB",
    "CLIENT_HEARTBEAT",
    "ENDPOINTS",
    "JOB_CHANNEL",
    "SUBMIT_JOB",
    "YARN_CANCEL",
    "YARN_STOP",
    "ChannelResults",
    "ClientHeartbeat",
    "Empty",
    "JobArtifact",
    "JobSubmitRequest",
    "JobSubmitted",
]

_NO_JOB = {404: "The job does not exist."}
_ENDED = {**_NO_JOB, 409: "The job has ended and was not cancelled."}


class Empty(msgspec.Struct):
    """An empty object: ``{}``."""


class JobArtifact(msgspec.Struct, rename="camel"):
    """A file shipped with a job."""

    file_name: str
    """The file name in the form."""
    entry_name: str | None = None
    """The file name in the job; default: the same."""


class JobSubmitRequest(msgspec.Struct, rename="camel"):
    """The form field ``request`` of a job submission; the files are further fields of any name."""

    job_graph_file_name: str = ""
    """The file with the JobGraph, cloudpickled."""
    job_jar_file_names: list[str] = []
    """Python files and zip archives that functions of the job import."""
    job_artifact_file_names: list[JobArtifact] = []
    """The same; Flink's name for files that are not jars."""
    job_id: str | None = None
    """32 hexadecimal digits; random by default. Not in Flink, whose JobManager reads it from the graph."""
    job_name: str | None = None
    """Not in Flink."""


class JobSubmitted(msgspec.Struct, rename="camel"):
    """The URL of the submitted job."""

    job_url: str


class ClientHeartbeat(msgspec.Struct, rename="camel"):
    """The time by which a client will send the next heartbeat."""

    expired_timestamp: int
    """Epoch milliseconds."""
    timeout: int | None = None
    """The same in milliseconds from now. Takes precedence, as the clocks of two machines may differ."""


class ChannelResults(msgspec.Struct):
    """Results of a collect sink, in order."""

    first: int
    """The index of the first payload, starting at 0."""
    payloads: list[bytes]
    """Each a serialized batch of records, in base64."""
    end: bool
    """Whether these are the last results."""
    run: str
    """Changes when another JobManager takes over the job; results in transit are then lost."""


SUBMIT_JOB: Endpoint[JobSubmitRequest, JobSubmitted] = Endpoint(
    "POST",
    "/jobs",
    "Submits a job: a form with the field request (JSON) and files. The job graph is cloudpickled, as firesteel run "
    "sends it.",
    JobSubmitted,
    request=JobSubmitRequest,
    status=202,
    errors={
        400: "A file is missing, an id is invalid, or the job graph is Java-serialized (from Flink's own client).",
        409: "A job with this id was already submitted.",
        503: "The JobManager is shutting down.",
    },
    access=Access.CODE,
    is_upload=True,
)
CANCEL_JOB: Endpoint[Any, Empty] = Endpoint(
    "PATCH",
    "/jobs/:jobid",
    "Cancels a job. Has no effect on a job that is already cancelled.",
    Empty,
    query=(Parameter("mode", "Only cancel is supported.", default="cancel"),),
    status=202,
    errors=_ENDED,
)
YARN_CANCEL: Endpoint[Any, Empty] = Endpoint(
    "GET",
    "/jobs/:jobid/yarn-cancel",
    "Cancels a job with a GET request, as Flink's web UI does.",
    Empty,
    status=202,
    errors=_ENDED,
    access=Access.CHANGE,
)
YARN_STOP: Endpoint[Any, Empty] = Endpoint(
    "GET",
    "/jobs/:jobid/yarn-stop",
    "Removed in Flink; always fails.",
    Empty,
    status=202,
    errors={308: "Always: POST /jobs/:jobid/stop takes a savepoint and stops."},
    access=Access.CHANGE,
)
CANCEL_APPLICATION: Endpoint[Any, Empty] = Endpoint(
    "POST",
    "/applications/:applicationid/cancel",
    "Cancels an application, that is, its job.",
    Empty,
    status=202,
    errors=_ENDED,
)
CLIENT_HEARTBEAT: Endpoint[ClientHeartbeat, Empty] = Endpoint(
    "PATCH",
    "/jobs/:jobid/clientHeartbeat",
    "Sends a heartbeat of the job's client. A job whose client has sent a heartbeat is cancelled if further "
    "heartbeats do not arrive in time.",
    Empty,
    request=ClientHeartbeat,
    status=202,
    errors=_NO_JOB,
)
JOB_CHANNEL: Endpoint[Any, ChannelResults] = Endpoint(
    "GET",
    "/jobs/:jobid/channels/:channel",
    "Returns results of execute_and_collect(). Waits if there are no results yet. The request contains the number of "
    "payloads already received; the response contains the following ones, so that no record is lost or returned "
    "twice.",
    ChannelResults,
    query=(
        Parameter("received", "Number of payloads already received.", type=int, default=0),
        Parameter(
            "timeout", "Maximum time to wait for results, in milliseconds; at most 10000.", type=int, default=5000
        ),
    ),
    errors={404: "The job does not exist.", 409: "The number of received payloads does not match earlier requests."},
    access=Access.CODE,
    is_ours=True,
)

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    SUBMIT_JOB,
    CANCEL_JOB,
    YARN_CANCEL,
    YARN_STOP,
    CANCEL_APPLICATION,
    CLIENT_HEARTBEAT,
    JOB_CHANNEL,
)
