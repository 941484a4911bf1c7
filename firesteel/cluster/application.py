"""Application mode: the program runs in the JobManager, and the JobManager lives as long as the program's jobs."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.dispatcher.managed_job import ManagedJob, ManagedJobHandle
from firesteel.cluster.ha.services import JobSubmission
from firesteel.common.errors import FiresteelError
from firesteel.common.job_client import JobClient
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.jobmaster.shell.program_shipping import shipped_by_value
from firesteel.runtime.dependencies.collection import dependency_artifacts

__all__ = ["DispatcherExecutor"]

_log = logging.getLogger(__name__)


class DispatcherExecutor:
    """Submits the jobs of a program to the Dispatcher of the same process.

    The n-th job of a program has the same id in every run. So a program that runs again, because its JobManager was
    lost, finds the job that was recovered, or that has ended, instead of running it twice.
    """

    def __init__(self, dispatcher: Dispatcher, cluster_id: str, program: str):
        self._dispatcher = dispatcher
        self._cluster_id = cluster_id
        self._directory = str(Path(program).resolve().parent)
        self._jobs: list[ManagedJob] = []

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Starts the job, or finds it running."""
        job_id = hashlib.blake2b(f"{self._cluster_id}/{len(self._jobs)}".encode(), digest_size=16).hexdigest()
        known = self._dispatcher.find(job_id)
        if known is None:
            graph = replace(job_graph, job_id=job_id)
            # another JobManager, on another machine perhaps, may have to run it without the files beside the program
            with shipped_by_value([self._directory]):
                serialized = serialize_job(graph)
            artifacts = dependency_artifacts(configuration)
            self._dispatcher.submit(JobSubmission(job_id, graph.job_name, serialized, artifacts))
            known = self._dispatcher.job(job_id)
        else:
            _log.info("Job '%s' (%s) is %s already.", known.name, job_id, known.status.name)
        self._jobs.append(known)
        return JobClient(ManagedJobHandle(known))

    @property
    def jobs(self) -> Sequence[ManagedJob]:
        return tuple(self._jobs)

    def await_jobs(self) -> bool:
        """Waits until all jobs have ended; whether all of them ended well."""
        for job in self._jobs:
            try:
                job.result_future().result()
            except FiresteelError as error:
                _log.info("%s", error)
        return all(job.status is JobStatus.FINISHED for job in self._jobs)
