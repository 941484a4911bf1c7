"""Archive of finished jobs: which of them are still shown."""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.cluster.dispatcher.managed_job import ManagedJob
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration

__all__ = ["JobArchive"]


class JobArchive:
    """Selects the jobs to remove: those that ended too long ago, and the oldest if there are too many."""

    def __init__(self, configuration: Configuration):
        self._capacity = configuration.get(cluster_options.JOB_STORE_CAPACITY)
        self._expiration_s = configuration.get(cluster_options.JOB_STORE_EXPIRATION)

    def expired(self, jobs: Iterable[ManagedJob]) -> list[str]:
        """The ids of the jobs that are not shown any more."""
        over = [(job.over_for_s, job.job_id) for job in jobs]
        ended = sorted(((age, job_id) for age, job_id in over if age is not None), reverse=True)
        too_old = [job_id for age, job_id in ended if age >= self._expiration_s]
        left = [job_id for _, job_id in ended[len(too_old) :]]
        return too_old + left[: max(0, len(left) - self._capacity)]
