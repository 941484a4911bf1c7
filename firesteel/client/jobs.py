"""Jobs of a cluster: finds them by id, id prefix or name, and waits for their end."""

from __future__ import annotations

import re
import time

from firesteel.client.connection import PATIENCE_S, ClusterClient
from firesteel.client.errors import UsageError
from firesteel.client.progress import Progress
from firesteel.common.errors import FiresteelError
from firesteel.rest.jobs import JOB, JOB_STATUS, JOBS_OVERVIEW, JobOverview, JobVertex

__all__ = ["ENDED", "SCHEDULED", "JobNotFoundError", "NotEndedError", "await_end", "find_job", "find_vertices"]

ENDED = ("FINISHED", "FAILED", "CANCELED")
SCHEDULED = ("CREATED", "INITIALIZING")
_LIST_AGE_S = 0.2
_POLL_S = 0.1
_ID = re.compile(r"[0-9a-f]{32}")


class JobNotFoundError(FiresteelError):
    """No job, or more than one job, matches."""


class NotEndedError(FiresteelError):
    """A job did not end in time."""


def find_job(client: ClusterClient, named: str) -> JobOverview:
    """Finds a job by id, else by unique id prefix, else by unique name.

    Of several jobs with the same name, the one that has not ended is used.
    """
    if not named:
        raise UsageError("Give a job id, id prefix, or name.")
    try:
        return _find(client.call(JOBS_OVERVIEW).jobs, named)
    except JobNotFoundError:
        # JobManagers remember the list for a moment: the job may be younger
        time.sleep(_LIST_AGE_S)
        return _find(client.call(JOBS_OVERVIEW).jobs, named)


def _find(jobs: list[JobOverview], named: str) -> JobOverview:
    lowered = named.lower()
    by_id = [job for job in jobs if job.jid.startswith(lowered)]
    by_name = [job for job in jobs if job.name == named]
    live = [job for job in by_name if job.state not in ENDED]
    for found in (by_id, live, by_name):
        if len(found) == 1:
            return found[0]
        if found:
            several = "\n".join(f"  {job.jid}  {job.state}  {job.name}" for job in found[:20])
            raise JobNotFoundError(f"{len(found)} jobs match {named!r}:\n{several}", hint="Use the job id.")
    raise JobNotFoundError(
        f"The cluster has no job {named!r}.",
        hint="firesteel list -a shows all jobs. Jobs that have ended are removed after some time."
        if jobs or _ID.fullmatch(lowered)
        else "The cluster has no jobs.",
    )


def find_vertices(client: ClusterClient, job_id: str, named: str | None) -> list[JobVertex]:
    """The vertices of a job: all, or those that match an id, an id prefix, or a part of the name."""
    vertices = client.call(JOB, {"jobid": job_id}).vertices
    if named is None:
        return vertices
    found = [vertex for vertex in vertices if vertex.id.startswith(named.lower())]
    found = found or [vertex for vertex in vertices if named.lower() in vertex.name.lower()]
    if not found:
        known = "\n".join(f"  {vertex.id}  {vertex.name}" for vertex in vertices)
        raise JobNotFoundError(f"The job has no vertex {named!r}. It has:\n{known}")
    return found


def await_end(client: ClusterClient, job_id: str, progress: Progress, seconds: float = 300.0) -> str:
    """Waits until a job has ended and returns its final state; raises NotEndedError after the timeout."""
    deadline = time.monotonic() + seconds
    while True:
        state = client.call(JOB_STATUS, {"jobid": job_id}, patience=PATIENCE_S).status
        if state in ENDED:
            return state
        if time.monotonic() > deadline:
            raise NotEndedError(
                f"Job {job_id} is still {state} after {seconds:g} s.", hint=f"firesteel status {job_id} shows it."
            )
        progress.show(f"job {job_id} is {state} …")
        time.sleep(_POLL_S)
