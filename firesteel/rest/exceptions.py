"""REST endpoint: failures of a job."""

from __future__ import annotations

import msgspec

from firesteel.rest.endpoint import Endpoint, Parameter

__all__ = ["ENDPOINTS", "ExceptionHistory", "ExceptionInfo", "JobExceptions", "RootException"]


class ExceptionInfo(msgspec.Struct, rename="camel"):
    """A failure; without ``taskName`` if it was not the failure of a task."""

    exception_name: str
    stacktrace: str
    """Error, location, line of user code, and traceback."""
    timestamp: int
    failure_labels: dict[str, str] = {}
    task_name: str | msgspec.UnsetType = msgspec.UNSET
    endpoint: str | msgspec.UnsetType = msgspec.UNSET
    task_manager_id: str | msgspec.UnsetType = msgspec.UNSET


class RootException(ExceptionInfo, kw_only=True, rename="camel"):
    """A failure that ended an attempt, with concurrent failures."""

    concurrent_exceptions: list[ExceptionInfo]


class ExceptionHistory(msgspec.Struct):
    """The last failures, newest first."""

    entries: list[RootException]
    truncated: bool


class JobExceptions(msgspec.Struct, rename="camel"):
    """The failures of a job."""

    exception_history: ExceptionHistory


JOB_EXCEPTIONS = Endpoint(
    "GET",
    "/jobs/:jobid/exceptions",
    "Returns the failures of a job, including those after which it was restarted.",
    JobExceptions,
    query=(
        Parameter("maxExceptions", "Maximum number of failures to return.", int, 20),
        Parameter("failureLabelFilter", "Failure label filter, key:value. Accepted for compatibility and ignored."),
    ),
    errors={404: "The job does not exist."},
)

ENDPOINTS = (JOB_EXCEPTIONS,)
