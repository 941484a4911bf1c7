"""What made a job fail, or start again."""

from __future__ import annotations

import msgspec

from firesteel.rest.endpoint import Endpoint, Parameter

__all__ = ["ENDPOINTS", "ExceptionHistory", "ExceptionInfo", "JobExceptions", "RootException"]


class ExceptionInfo(msgspec.Struct, rename="camel"):
    """A failure; without a ``taskName``, it was not one of a task."""

    exception_name: str
    stacktrace: str
    """What happened, where, the user's own line, and the traceback."""
    timestamp: int
    failure_labels: dict[str, str] = {}
    task_name: str | msgspec.UnsetType = msgspec.UNSET
    endpoint: str | msgspec.UnsetType = msgspec.UNSET
    task_manager_id: str | msgspec.UnsetType = msgspec.UNSET


class RootException(ExceptionInfo, kw_only=True, rename="camel"):
    """A failure that ended an attempt, and those that came with it."""

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
    "Shows what made a job fail, or start again.",
    JobExceptions,
    query=(
        Parameter("maxExceptions", "How many are shown at most.", int, 20),
        Parameter(
            "failureLabelFilter", "Only failures with a label, key:value. There are no labels: it changes nothing."
        ),
    ),
    errors={404: "There is no such job."},
)

ENDPOINTS = (JOB_EXCEPTIONS,)
