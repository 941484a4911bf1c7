"""Has a running job go on with another parallelism."""

from __future__ import annotations

import argparse
import time

from firesteel.cli.connection import ClusterClient, on_cluster
from firesteel.cli.jobs import find_job, find_vertices
from firesteel.cli.progress import Progress
from firesteel.common.errors import FiresteelError
from firesteel.rest.jobs import JOB, JOB_RESOURCE_REQUIREMENTS, ParallelismBounds, VertexRequirements
from firesteel.rest.rescaling import UPDATE_RESOURCE_REQUIREMENTS

__all__ = ["RescaleError", "rescale_job"]

_POLL_S = 0.2
_PATIENCE_S = 30.0


class RescaleError(FiresteelError):
    """The job does not run with the parallelism that was asked for."""


@on_cluster
def rescale_job(options: argparse.Namespace, client: ClusterClient) -> int:
    """Asks for the parallelism, and waits until the job runs so."""
    job = find_job(client, options.job)
    path = {"jobid": job.jid}
    requirements = client.call(JOB_RESOURCE_REQUIREMENTS, path)
    chosen = set(requirements)
    if options.vertex:
        chosen = {vertex.id for text in options.vertex for vertex in find_vertices(client, job.jid, text)}
    for vertex_id in chosen:
        known = requirements.get(vertex_id)
        lower = 1 if known is None else min(known.parallelism.lower_bound, options.parallelism)
        requirements[vertex_id] = VertexRequirements(ParallelismBounds(lower, options.parallelism))
    client.call(UPDATE_RESOURCE_REQUIREMENTS, path, body=requirements)
    if options.detached:
        print(f"Job {job.jid} will go on with parallelism {options.parallelism}.")  # noqa: T201
        return 0
    deadline = time.monotonic() + options.timeout
    with Progress() as progress:
        while True:
            details = client.call(JOB, path, patience=_PATIENCE_S)
            present = {vertex.id: vertex for vertex in details.vertices}
            if details.state == "RUNNING" and all(
                present[vertex_id].parallelism == options.parallelism and present[vertex_id].status == "RUNNING"
                for vertex_id in chosen
                if vertex_id in present
            ):
                break
            if details.state in ("FAILED", "CANCELED", "FINISHED"):
                raise RescaleError(
                    f"Job '{job.name}' is {details.state}.", hint=f"firesteel exceptions {job.jid} may say why."
                )
            if time.monotonic() > deadline:
                now = ", ".join(f"{vertex.name}: {vertex.parallelism}" for vertex in details.vertices)
                raise RescaleError(
                    f"Job '{job.name}' does not run with parallelism {options.parallelism} after {options.timeout:g} s:"
                    f" it is {details.state} ({now}).",
                    hint="Are there enough slots? firesteel cluster status tells.",
                )
            progress.show(f"job '{job.name}' is {details.state} …")
            time.sleep(_POLL_S)
    print(f"Job {job.jid} runs with parallelism {options.parallelism}.")  # noqa: T201
    return 0
