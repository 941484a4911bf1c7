"""Which of the jobs that have ended are still shown."""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.cluster.managed_job import ManagedJob
from firesteel.common import cluster_options
from firesteel.common.configuration import Configuration

__all__ = ["JobArchive"]


class JobArchive:
    """Says which jobs are to be forgotten: those that ended too long ago, and the oldest where they are too many."""

    def __init__(self, configuration: Configuration):
        self._capacity = configuration.get(cluster_options.JOB_STORE_CAPACITY)
        self._expiration_ms = configuration.get(cluster_options.JOB_STORE_EXPIRATION) * 1000

    def expired(self, jobs: Iterable[ManagedJob], now: int) -> list[str]:
        """The ids of the jobs that are not shown any more."""
        ended = sorted((at, job.job_id) for job in jobs if (at := job.ended_at) is not None and job.is_over)
        too_old = [job_id for at, job_id in ended if now - at >= self._expiration_ms]
        left = [job_id for _, job_id in ended[len(too_old) :]]
        return too_old + left[: max(0, len(left) - self._capacity)]
