"""Job lookup for REST handlers: resolves the job, vertex and subtask of a path."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any, Protocol

from firesteel.cluster.rest.request import RestError, RestRequest
from firesteel.common.errors import FiresteelError
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.view.job import JobView
from firesteel.jobmaster.view.vertices import SubtaskView, VertexView

__all__ = ["KnownJob", "KnownJobs", "find_job", "find_number", "find_subtask", "find_vertex", "now_ms"]

_ID = re.compile("[0-9a-f]{32}", re.IGNORECASE)
_MAX_INT64 = 2**63 - 1


class KnownJob(Protocol):
    """A job, as handlers that read see it."""

    @property
    def job_id(self) -> str:
        """Its id."""
        ...

    @property
    def status(self) -> JobStatus:
        """Its present status."""
        ...

    def view(self) -> JobView:
        """The view of the job."""
        ...


class KnownJobs(Protocol):
    """All jobs: the Dispatcher."""

    def jobs(self) -> Sequence[KnownJob]:
        """Running, waiting and ended ones, in the order of their submission."""
        ...

    def job(self, job_id: str) -> KnownJob:
        """One job; raises a FiresteelError if there is none of that id."""
        ...


def now_ms() -> int:
    """The time, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def _id(request: RestRequest[Any], name: str) -> str:
    text = request.path[name]
    if not _ID.fullmatch(text):
        raise RestError(
            400,
            f"Cannot resolve path parameter ({name}) from value '{text[:100]}'.",
            hint="An id is 32 hexadecimal digits.",
        )
    return text.lower()


def find_job(jobs: KnownJobs, request: RestRequest[Any], parameter: str = "jobid", kind: str = "Job") -> JobView:
    """The job that ``:jobid`` names, or another parameter of the path."""
    job_id = _id(request, parameter)
    try:
        job = jobs.job(job_id)
    except FiresteelError as error:
        raise RestError(404, f"{kind} {job_id} not found") from error
    return job.view()


def find_vertex(view: JobView, request: RestRequest[Any]) -> VertexView:
    """The vertex that ``:vertexid`` names."""
    vertex_id = _id(request, "vertexid")
    vertex = view.vertex(vertex_id)
    if vertex is None:
        raise RestError(404, f"No vertex with ID '{vertex_id}' exists.")
    return vertex


def find_number(request: RestRequest[Any], name: str) -> int:
    """The number that a part of the path is."""
    text = request.path[name]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not 0 <= number <= _MAX_INT64:
        raise RestError(
            400,
            f"Cannot resolve path parameter ({name}) from value '{text[:100]}'.",
            hint="It is a number, 0 or greater.",
        )
    return number


def find_subtask(vertex: VertexView, request: RestRequest[Any]) -> SubtaskView:
    """The current attempt of the subtask that ``:subtaskindex`` names."""
    index = find_number(request, "subtaskindex")
    subtask = vertex.subtask(index)
    if subtask is None:
        raise RestError(404, f"Invalid subtask index for vertex {vertex.id}: {index} (it has {vertex.parallelism}).")
    return subtask
