"""The jobs that the statements of a session can show and stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from firesteel.table.bound.errors import ValidationError

if TYPE_CHECKING:
    from firesteel.common.job_client import JobClient

__all__ = ["JobDirectory", "JobSummary", "StartedJobs"]

_ENDED = ("FINISHED", "FAILED", "CANCELED")
_MAX_JOBS = 100


@dataclass(frozen=True)
class JobSummary:
    """A line of SHOW JOBS."""

    job_id: str
    name: str
    status: str
    start_time_ms: int


class JobDirectory(Protocol):
    """Jobs by id: those of a cluster, or those that a session started."""

    def jobs(self) -> Sequence[JobSummary]:
        """All jobs, the latest first."""
        ...

    def stop(self, job_id: str, *, with_savepoint: bool, with_drain: bool, directory: str | None) -> str | None:
        """Ends a job; returns the path of the savepoint, if there is to be one."""
        ...


class StartedJobs:
    """The jobs that a session started, in this process."""

    def __init__(self, clock_ms: Callable[[], int] = lambda: int(time.time() * 1000)) -> None:
        self._clock_ms = clock_ms
        self._started: list[tuple[JobClient, str, int]] = []

    def add(self, client: JobClient, name: str) -> None:
        """Remembers a job that was started now; of those that have ended, the latest."""
        self._started.append((client, name, self._clock_ms()))
        if len(self._started) > _MAX_JOBS:
            ended = (entry for entry in self._started if entry[0].get_job_status().result().name in _ENDED)
            oldest = next(ended, None)
            if oldest is not None:
                self._started.remove(oldest)

    def jobs(self) -> Sequence[JobSummary]:
        """The jobs, the latest first."""
        return [
            JobSummary(str(client.get_job_id()), name, client.get_job_status().result().name, started)
            for client, name, started in reversed(self._started)
        ]

    def running(self) -> Sequence[JobSummary]:
        """Those that have not ended."""
        return [job for job in self.jobs() if job.status not in _ENDED]

    def stop(self, job_id: str, *, with_savepoint: bool, with_drain: bool, directory: str | None) -> str | None:
        """Ends a job; returns the path of the savepoint, if there is to be one."""
        client = next((client for client, _, _ in self._started if str(client.get_job_id()) == job_id), None)
        if client is None:
            raise ValidationError(f"Job {job_id} not found.", hint="SHOW JOBS lists the jobs.")
        if not with_savepoint:
            client.cancel().result()
            return None
        path: str = client.stop_with_savepoint(with_drain, directory).result()
        return path
