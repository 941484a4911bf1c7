"""REST handler for the logs of jobs."""

from __future__ import annotations

import logging
from typing import Any

from firesteel.cluster.diagnostics.job_logs import JobLogs
from firesteel.cluster.diagnostics.known_jobs import KnownJobs, find_job
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.rest import job_logs as rest
from firesteel.rest.endpoint import Text

__all__ = ["routes"]

_LEVELS = {name: getattr(logging, name) for name in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")}


def routes(jobs: KnownJobs, logs: JobLogs) -> list[Route]:
    def log(request: RestRequest[Any]) -> Text:
        job = find_job(jobs, request)
        level = _LEVELS.get(request.query["level"].upper())
        if level is None:
            raise RestError(400, f"level must be one of {', '.join(_LEVELS)}, got {request.query['level'][:100]!r}")
        return Text(logs.last(job.job_id, level=level, task=request.query["task"]))

    return [Route(rest.JOB_LOG, log)]
