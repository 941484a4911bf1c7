"""REST handlers for exceptions of jobs."""

from __future__ import annotations

from typing import Any

import msgspec

from firesteel.cluster.diagnostics.known_jobs import KnownJobs, find_job
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.common.errors import TaskFailure
from firesteel.jobmaster.model.failure import ExceptionHistoryEntry
from firesteel.jobmaster.slots.task_manager_id import task_endpoint, task_manager_id
from firesteel.jobmaster.view.failures import failed_task, stack_trace
from firesteel.jobmaster.view.job import JobView
from firesteel.rest import exceptions as rest

__all__ = ["routes"]


def routes(jobs: KnownJobs) -> list[Route]:
    def exceptions(request: RestRequest[Any]) -> rest.JobExceptions:
        view = find_job(jobs, request)
        most = request.query["maxExceptions"]
        if most < 0:
            raise RestError(400, f"maxExceptions cannot be negative: {most}")
        entries = view.exceptions()
        shown = [_root(view, entry) for entry in entries[:most]]
        return rest.JobExceptions(rest.ExceptionHistory(shown, truncated=len(shown) < len(entries)))

    return [Route(rest.JOB_EXCEPTIONS, exceptions)]


def _root(view: JobView, entry: ExceptionHistoryEntry) -> rest.RootException:
    concurrent = [rest.ExceptionInfo(**_fields(view, entry, failure)) for failure in entry.concurrent]
    return rest.RootException(**_fields(view, entry, entry.failure), concurrent_exceptions=concurrent)


def _fields(view: JobView, entry: ExceptionHistoryEntry, failure: TaskFailure) -> dict[str, Any]:
    task = failed_task(view, entry, failure)
    return {
        "exception_name": failure.error_type or "JobExecutionError",
        "stacktrace": stack_trace(failure),
        "timestamp": entry.at,
        "task_name": msgspec.UNSET if task is None else task.name,
        "endpoint": msgspec.UNSET if task is None else task_endpoint(task.registration),
        "task_manager_id": msgspec.UNSET if task is None else task_manager_id(task.registration),
    }
