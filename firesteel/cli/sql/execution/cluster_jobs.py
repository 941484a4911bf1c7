"""The jobs of a cluster, for SHOW JOBS and STOP JOB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from firesteel.client.savepoints import trigger_stop
from firesteel.rest.jobs import JOBS_OVERVIEW
from firesteel.rest.submission import CANCEL_JOB
from firesteel.table.environment.planning.jobs import JobSummary

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient

__all__ = ["ClusterJobs"]


class ClusterJobs:
    """All jobs of a cluster."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def jobs(self) -> Sequence[JobSummary]:
        """The jobs, the latest first."""
        found = self._client.call(JOBS_OVERVIEW).jobs
        found = sorted(found, key=lambda job: job.start_time, reverse=True)
        return [JobSummary(job.jid, job.name, job.state, job.start_time) for job in found]

    def stop(self, job_id: str, *, with_savepoint: bool, with_drain: bool, directory: str | None) -> str | None:
        """Ends a job; returns the path of the savepoint, if there is to be one."""
        if with_savepoint:
            return trigger_stop(self._client, job_id, directory, drain=with_drain)
        self._client.call(CANCEL_JOB, {"jobid": job_id})
        return None
