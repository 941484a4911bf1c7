"""``firesteel rescale``: rescales a running job."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.progress import TerminalProgress
from firesteel.cli.terminal.settings import add_cluster_options, positive
from firesteel.common.errors import FiresteelError

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient

__all__ = ["RescaleError", "register", "run"]

_POLL_S = 0.2
_RETRY_TIMEOUT_S = 30.0


class RescaleError(FiresteelError):
    """The job does not run with the requested parallelism."""


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "rescale",
        help="change a job's parallelism",
        description="Rescales a running job: takes a checkpoint and restarts the job from it with the new parallelism. "
        "Exit codes: 0 if the job runs with the new parallelism, 1 if it cannot be rescaled, 3 if no cluster "
        "responds.",
    )
    parser.add_argument("job", metavar="JOB", help="job id, id prefix, or name")
    parser.add_argument(
        "-p", "--parallelism", metavar="N", type=positive, required=True, help="new parallelism of each vertex"
    )
    parser.add_argument(
        "--vertex", metavar="ID", action="append", default=[], help="only this vertex: id, or part of its name"
    )
    parser.add_argument(
        "-d", "--detached", action="store_true", help="do not wait until the job runs with the new parallelism"
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, default=120.0, help="seconds to wait (default: 120)"
    )
    add_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    """Requests the new parallelism and waits until the job runs with it."""
    from firesteel.client.jobs import ENDED, find_job, find_vertices
    from firesteel.rest.jobs import JOB, JOB_RESOURCE_REQUIREMENTS, ParallelismBounds, VertexRequirements
    from firesteel.rest.rescaling import UPDATE_RESOURCE_REQUIREMENTS

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
        print(f"Job {job.jid} is being rescaled to parallelism {options.parallelism}.")  # noqa: T201
        return 0
    deadline = time.monotonic() + options.timeout
    with TerminalProgress() as progress:
        while True:
            details = client.call(JOB, path, patience=_RETRY_TIMEOUT_S)
            present = {vertex.id: vertex for vertex in details.vertices}
            if details.state == "RUNNING" and all(
                present[vertex_id].parallelism == options.parallelism and present[vertex_id].status == "RUNNING"
                for vertex_id in chosen
                if vertex_id in present
            ):
                break
            if details.state in ENDED:
                raise RescaleError(
                    f"Job '{job.name}' is {details.state}.",
                    hint=f"Run firesteel exceptions {job.jid} to see the cause.",
                )
            if time.monotonic() > deadline:
                now = ", ".join(f"{vertex.name}: {vertex.parallelism}" for vertex in details.vertices)
                raise RescaleError(
                    f"Job '{job.name}' does not run with parallelism {options.parallelism} "
                    f"after {options.timeout:g} s; its state is {details.state} ({now}).",
                    hint="Check with firesteel cluster status whether there are enough free slots.",
                )
            progress.show(f"job '{job.name}' is {details.state} …")
            time.sleep(_POLL_S)
    print(f"Job {job.jid} runs with parallelism {options.parallelism}.")  # noqa: T201
    return 0
