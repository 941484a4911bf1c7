"""Jobs from outside: submitting and cancelling them, and reading what they collect."""

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

_NO_JOB = {404: "There is no such job."}
_ENDED = {**_NO_JOB, 409: "The job has ended, and was not cancelled."}


class Empty(msgspec.Struct):
    """Nothing: ``{}``."""


class JobArtifact(msgspec.Struct, rename="camel"):
    """A file that travels with a job."""

    file_name: str
    """As the form names it."""
    entry_name: str | None = None
    """As the job knows it; the same name, unless said otherwise."""


class JobSubmitRequest(msgspec.Struct, rename="camel"):
    """The field ``request`` of the form a job is submitted with; the files are further fields of any name."""

    job_graph_file_name: str = ""
    """The file with the JobGraph, cloudpickled."""
    job_jar_file_names: list[str] = []
    """Files that functions of the job import: Python files and zip archives."""
    job_artifact_file_names: list[JobArtifact] = []
    """The same, as Flink names files that are no jars."""
    job_id: str | None = None
    """32 hexadecimal digits; drawn if not given. Not in Flink, whose JobManager reads it from the graph."""
    job_name: str | None = None
    """Not in Flink either."""


class JobSubmitted(msgspec.Struct, rename="camel"):
    """Where the job is found."""

    job_url: str


class ClientHeartbeat(msgspec.Struct, rename="camel"):
    """Until when a client promises to be heard of again."""

    expired_timestamp: int
    """Epoch milliseconds."""
    timeout: int | None = None
    """The same as milliseconds from now. It counts if it is given: the clocks of two machines may differ."""


class ChannelResults(msgspec.Struct):
    """What a collect sink has sent, in order."""

    first: int
    """The number of the first payload; payloads are counted from 0."""
    payloads: list[bytes]
    """Each a serialized batch of records, in base64."""
    end: bool
    """Whether nothing follows: the job is over."""
    run: str
    """Another one once another JobManager runs the job: what was on its way then is lost."""


SUBMIT_JOB: Endpoint[JobSubmitRequest, JobSubmitted] = Endpoint(
    "POST",
    "/jobs",
    "Submits a job: a form with the field request (JSON) and files. The job graph is cloudpickled, as firesteel run "
    "sends it.",
    JobSubmitted,
    request=JobSubmitRequest,
    status=202,
    errors={
        400: "A file is missing, an id is none, or the job graph is one of Flink's own (Java-serialized).",
        409: "A job of that id was submitted before.",
        503: "The JobManager is being shut down.",
    },
    access=Access.CODE,
    is_upload=True,
)
CANCEL_JOB: Endpoint[Any, Empty] = Endpoint(
    "PATCH",
    "/jobs/:jobid",
    "Cancels a job. One that is cancelled already stays so.",
    Empty,
    query=(Parameter("mode", "Only cancel; Flink had stop once.", default="cancel"),),
    status=202,
    errors=_ENDED,
)
YARN_CANCEL: Endpoint[Any, Empty] = Endpoint(
    "GET",
    "/jobs/:jobid/yarn-cancel",
    "Cancels a job: for those who can only GET, as Flink's web pages.",
    Empty,
    status=202,
    errors=_ENDED,
    access=Access.CHANGE,
)
YARN_STOP: Endpoint[Any, Empty] = Endpoint(
    "GET",
    "/jobs/:jobid/yarn-stop",
    "Says that there is no such thing any more.",
    Empty,
    status=202,
    errors={308: "Always: POST /jobs/:jobid/stop takes a savepoint and stops."},
    access=Access.CHANGE,
)
CANCEL_APPLICATION: Endpoint[Any, Empty] = Endpoint(
    "POST",
    "/applications/:applicationid/cancel",
    "Cancels the job that the application is.",
    Empty,
    status=202,
    errors=_ENDED,
)
CLIENT_HEARTBEAT: Endpoint[ClientHeartbeat, Empty] = Endpoint(
    "PATCH",
    "/jobs/:jobid/clientHeartbeat",
    "Tells that the job's client is still there. A job whose client has sent one, and then no more in time, is "
    "cancelled.",
    Empty,
    request=ClientHeartbeat,
    status=202,
    errors=_NO_JOB,
)
JOB_CHANNEL: Endpoint[Any, ChannelResults] = Endpoint(
    "GET",
    "/jobs/:jobid/channels/:channel",
    "Reads what execute_and_collect() collects. Waits for results, if there are none yet. The reader says how many "
    "payloads it has; what it does not have it is given, again if need be, so that no record is lost or comes twice.",
    ChannelResults,
    query=(
        Parameter("received", "How many payloads the reader has.", type=int, default=0),
        Parameter("timeout", "How long to wait for results, in milliseconds; 10000 at most.", type=int, default=5000),
    ),
    errors={404: "There is no such job.", 409: "The reader has more, or fewer, than it said before."},
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
