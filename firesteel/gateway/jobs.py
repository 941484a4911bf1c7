"""The jobs of a cluster, for SHOW JOBS and STOP JOB in sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.job_client import JobClient
from firesteel.table.bound.errors import ValidationError
from firesteel.table.environment.planning.jobs import JobSummary

__all__ = ["ClusterJobs"]


class ClusterJobs:
    """All jobs of a cluster; ``listed`` has the jobs in the order of their submission, ``client_of`` their clients."""

    def __init__(self, listed: Callable[[], Sequence[Any]], client_of: Callable[[Any], JobClient]) -> None:
        self._listed = listed
        self._client_of = client_of

    def jobs(self) -> Sequence[JobSummary]:
        """The jobs, the latest first."""
        return [JobSummary(job.job_id, job.name, job.status.name, job.submitted_at) for job in reversed(self._listed())]

    def stop(self, job_id: str, *, with_savepoint: bool, with_drain: bool, directory: str | None) -> str | None:
        """Ends a job; returns the path of the savepoint, if there is to be one."""
        job = next((job for job in self._listed() if job.job_id == job_id), None)
        if job is None:
            raise ValidationError(f"Job {job_id} not found.", hint="SHOW JOBS lists the jobs.")
        client = self._client_of(job)
        if not with_savepoint:
            client.cancel().result()
            return None
        path: str = client.stop_with_savepoint(with_drain, directory).result()
        return path
