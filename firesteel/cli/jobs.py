"""Jobs of a cluster as commands name and show them."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import msgspec

from firesteel.cli.connection import ClusterClient
from firesteel.cli.errors import CommandError
from firesteel.common.errors import FiresteelError
from firesteel.rest.jobs import JOB, JOBS_OVERVIEW, JobOverview, JobVertex

__all__ = [
    "ENDED",
    "SCHEDULED",
    "JobNotFoundError",
    "duration_text",
    "find_job",
    "find_vertices",
    "local_time",
    "print_json",
]

ENDED = ("FINISHED", "FAILED", "CANCELED")
SCHEDULED = ("CREATED", "INITIALIZING")
_LIST_AGE_S = 0.2
_ID = re.compile(r"[0-9a-f]{32}")


class JobNotFoundError(FiresteelError):
    """No job, or more than one, is called that."""


def find_job(client: ClusterClient, named: str) -> JobOverview:
    """The job with that id, else the only one whose id begins so, else the only one with that name.

    Of jobs with the same name, one that has not ended is meant.
    """
    if not named:
        raise CommandError("A job is named by its id, by how that begins, or by its name.")
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
            raise JobNotFoundError(
                f"{len(found)} jobs are meant by {named!r}:\n{several}", hint="Name one of them by its id."
            )
    raise JobNotFoundError(
        f"The cluster has no job {named!r}.",
        hint="firesteel list -a shows all jobs. Those that have ended are forgotten after a while."
        if jobs or _ID.fullmatch(lowered)
        else "It has no jobs at all.",
    )


def find_vertices(client: ClusterClient, job_id: str, named: str | None) -> list[JobVertex]:
    """A job's vertices: all, or those that are meant by an id, how it begins, or a part of the name."""
    vertices = client.call(JOB, {"jobid": job_id}).vertices
    if named is None:
        return vertices
    found = [vertex for vertex in vertices if vertex.id.startswith(named.lower())]
    found = found or [vertex for vertex in vertices if named.lower() in vertex.name.lower()]
    if not found:
        known = "\n".join(f"  {vertex.id}  {vertex.name}" for vertex in vertices)
        raise JobNotFoundError(f"The job has no vertex {named!r}. It has:\n{known}")
    return found


def print_json(value: Any) -> None:
    """Prints what was asked for as JSON."""
    print(json.dumps(msgspec.to_builtins(value), indent=2))  # noqa: T201


def duration_text(milliseconds: float) -> str:
    """A length of time as people read it.

    >>> duration_text(2400), duration_text(3_725_000), duration_text(200_000_000)
    ('2 s', '1 h 02 min', '2 d 07 h')
    """
    seconds = int(milliseconds / 1000)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours:02} h"


def local_time(timestamp: int) -> str:
    """Milliseconds since 1970 as this machine's date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(timestamp / 1000))
