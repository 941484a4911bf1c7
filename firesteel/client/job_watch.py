"""Watches the jobs of a program while it waits for them."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager

from firesteel.client.connection import ClusterClient
from firesteel.client.progress import Progress, duration_text
from firesteel.common.errors import FiresteelError
from firesteel.common.job_status import JobStatus
from firesteel.rest.checkpoints import CHECKPOINTS
from firesteel.rest.jobs import JOB, JOB_DIAGNOSIS, JobDetails

__all__ = ["JobWatch"]

_REFRESH_INTERVAL_S = 1.0


class JobWatch(AbstractContextManager["JobWatch"]):
    """Reports every change of state and what a job waits for; if figures are shown, also its records per second."""

    def __init__(self, client: ClusterClient, progress: Progress, *, quiet: bool = False):
        self._client = client
        self._progress = progress
        self._lock = threading.Lock()
        self._running: dict[str, str] = {}
        self._created: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        """The reasons for waiting that were reported last."""
        self._closed = threading.Event()
        self._counts: dict[str, tuple[float, int, int]] = {}
        if not quiet:
            threading.Thread(target=self._refresh, name="firesteel-job-figures", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops progress reports."""
        self._closed.set()
        with self._lock:
            self._progress.clear()

    def submitted(self, job_id: str, job_name: str) -> None:
        """The cluster has taken a job."""
        self._say(f"job '{job_name}' was submitted to {self._client.leader_url}: {job_id}")

    def status_changed(self, job_id: str, job_name: str, status: JobStatus) -> None:
        """A job has entered another state."""
        for jobs, wanted in ((self._running, JobStatus.RUNNING), (self._created, JobStatus.CREATED)):
            if status is wanted:
                jobs[job_id] = job_name
            else:
                jobs.pop(job_id, None)
        self._say(f"job '{job_name}' is {status.name}")

    def _say(self, text: str) -> None:
        with self._lock:
            if not self._closed.is_set():
                self._progress.say(text)

    def _refresh(self) -> None:
        while not self._closed.wait(_REFRESH_INTERVAL_S):
            for job_id, job_name in list(self._created.items()):
                self._say_why_it_waits(job_id, job_name)
            for job_id, job_name in list(self._running.items()) if self._progress.shows_figures else ():
                try:
                    text = self._figures(job_id)
                except FiresteelError:
                    text = "the cluster does not respond"
                with self._lock:
                    if not self._closed.is_set() and job_id in self._running:
                        self._progress.show(f"job '{job_name}' is RUNNING", text)

    def _say_why_it_waits(self, job_id: str, job_name: str) -> None:
        try:
            diagnosis = self._client.call(JOB_DIAGNOSIS, {"jobid": job_id})
        except FiresteelError:
            return  # the caller that waits for the job gets the error
        reason = diagnosis.explanation
        if diagnosis.slots is not None and job_id in self._created and self._reasons.get(job_id) != reason:
            self._reasons[job_id] = reason
            self._say(f"job '{job_name}': {reason}")

    def _figures(self, job_id: str) -> str:
        details = self._client.call(JOB, {"jobid": job_id})
        read, written = _in_and_out(details)
        now = time.monotonic()
        before = self._counts.get(job_id)
        self._counts[job_id] = (now, read, written)
        parts = []
        if before is not None:
            seconds = max(now - before[0], 0.001)
            parts.append(f"in {(read - before[1]) / seconds:,.0f}/s, out {(written - before[2]) / seconds:,.0f}/s")
        last = self._client.call(CHECKPOINTS, {"jobid": job_id}).latest.completed
        if last is not None:
            parts.append(f"checkpoint {last.id} {duration_text(details.now - last.latest_ack_timestamp)} ago")
        return ", ".join(parts)


def _in_and_out(details: JobDetails) -> tuple[int, int]:
    """The number of records emitted by the sources and received by the sinks so far."""
    targets = {node.id for node in details.plan.nodes if node.inputs}
    sources_of = {edge.id for node in details.plan.nodes for edge in (node.inputs or ())}
    read = sum(vertex.metrics.write_records for vertex in details.vertices if vertex.id not in targets)
    written = sum(vertex.metrics.read_records for vertex in details.vertices if vertex.id not in sources_of)
    return read, written
