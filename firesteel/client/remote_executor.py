"""Submits the jobs of a program that runs here to a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from firesteel.client.connection import PATIENCE_S, ClusterClient
from firesteel.client.discovery import TOKEN_FILE_VARIABLE
from firesteel.client.remote_job import RemoteJob, failure_of
from firesteel.common.errors import FiresteelError
from firesteel.common.job_client import JobClient
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.jobmaster.shell.program_shipping import program_roots, shipped_by_value
from firesteel.rest import jobs as rest
from firesteel.rest.client import RestClientError
from firesteel.rest.submission import SUBMIT_JOB, JobSubmitRequest
from firesteel.runtime.dependencies.collection import dependency_artifacts
from firesteel.runtime.state.registry import configured_backend

__all__ = ["RemoteExecutor", "SubmissionError"]

_GRAPH = "job.graph"
_JOB_ID_KEY = "$internal.pipeline.job-id"
_POLL_S = 0.02
_INITIALIZATION_TIMEOUT_S = 60.0


class SubmissionError(FiresteelError):
    """The cluster rejected a job."""


class RemoteExecutor:
    """Sends job graphs to a cluster.

    Modules in the program's directory are shipped within the graph, Python dependencies as a file. ``on_submit`` and
    ``on_status`` are called with the progress of the jobs, from the program's thread and from others.
    """

    def __init__(
        self,
        client: ClusterClient,
        *,
        search_path: Sequence[str] = (),
        detached: bool = False,
        heartbeat: bool = False,
        on_submit: Callable[[str, str], None] = lambda *_: None,
        on_status: Callable[[str, str, JobStatus], None] = lambda *_: None,
    ):
        self.client = client
        self.jobs: list[RemoteJob] = []
        self._search_path = list(search_path)
        self._detached = detached
        self._heartbeat = heartbeat
        self._on_submit = on_submit
        self._on_status = on_status

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Submits the job; returns once the cluster has initialized it."""
        # before anything is sent: errors of the program are raised at once
        configured_backend(configuration)
        with shipped_by_value(program_roots(self._search_path)):
            serialized = serialize_job(job_graph)
        job_id = self._submit(job_graph, serialized, dependency_artifacts(configuration))
        name = job_graph.job_name
        job = RemoteJob(
            self.client,
            job_id,
            name,
            detached=self._detached,
            heartbeat=self._heartbeat,
            on_status=lambda status: self._on_status(job_id, name, status),
        )
        self.jobs.append(job)  # at once: whoever interrupts the program is told about it
        self._await_initialization(job_id, name)
        self._on_submit(job_id, name)
        job.watch()  # from now on its state is reported
        return JobClient(job)

    def close(self) -> None:
        """Watches the jobs no longer."""
        for job in self.jobs:
            job.close()

    def _submit(self, job_graph: JobGraph, serialized: bytes, artifacts: Mapping[str, bytes]) -> str:
        uploads = {"jobgraph": (_GRAPH, serialized)}
        for number, (name, content) in enumerate(artifacts.items()):
            uploads[f"artifact{number}"] = (name, content)
        request = JobSubmitRequest(
            job_graph_file_name=_GRAPH,
            job_jar_file_names=list(artifacts),
            job_id=self._id_of(job_graph),
            job_name=job_graph.job_name,
        )
        try:
            answer = self.client.call(SUBMIT_JOB, body=request, uploads=uploads)
        except RestClientError as error:
            hint = error.hint
            if error.status in (401, 403) and self.client.address.token_file is None:
                hint = (
                    "Submitting a job requires the token of the cluster: set rest.token-file with -D, "
                    f"or {TOKEN_FILE_VARIABLE}, to a copy of the token file that firesteel cluster start prints."
                )
            elif error.status == 413:
                hint = "Load large data in the open() method of functions, or increase rest.server.max-content-length."
            raise SubmissionError(
                f"The cluster rejected job '{job_graph.job_name}': {error.message}", hint=hint
            ) from None
        return answer.job_url.rpartition("/")[2]

    def _id_of(self, job_graph: JobGraph) -> str:
        """The job's id; that of the first job can be given, as with Flink."""
        given = None if self.jobs else job_graph.configuration.to_dict().get(_JOB_ID_KEY)
        return given or job_graph.job_id

    def _await_initialization(self, job_id: str, job_name: str) -> None:
        """Waits until the job is initialized; raises the error if initialization fails."""
        deadline = time.monotonic() + _INITIALIZATION_TIMEOUT_S
        path = {"jobid": job_id}
        while time.monotonic() < deadline:
            status = self.client.call(rest.JOB_STATUS, path, patience=PATIENCE_S).status
            if status == "FAILED":
                ended = self.client.call(rest.JOB_EXECUTION_RESULT, path, patience=PATIENCE_S).job_execution_result
                if isinstance(ended, rest.JobExecutionResult):
                    raise failure_of(job_name, ended)
            if status != "INITIALIZING":
                return
            time.sleep(_POLL_S)
