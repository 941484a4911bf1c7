"""``firesteel list``: the jobs of a cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.output import fitted_table, local_time, print_json
from firesteel.cli.terminal.settings import add_cluster_options

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "list",
        help="list the jobs of a cluster",
        description="Lists the jobs that are running or waiting. Exit codes: 0, 3 if no cluster responds.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-r", "--running", action="store_true", help="only jobs that are running or restarting")
    which.add_argument("-s", "--scheduled", action="store_true", help="only jobs that are waiting to be scheduled")
    which.add_argument("-a", "--all", action="store_true", help="also jobs that have ended")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    from firesteel.client.jobs import ENDED, SCHEDULED
    from firesteel.client.progress import duration_text
    from firesteel.rest.jobs import JOBS_OVERVIEW

    jobs = client.call(JOBS_OVERVIEW).jobs
    if options.running:
        jobs = [job for job in jobs if job.state not in (*ENDED, *SCHEDULED)]
    elif options.scheduled:
        jobs = [job for job in jobs if job.state in SCHEDULED]
    elif not options.all:
        jobs = [job for job in jobs if job.state not in ENDED]
    if options.json:
        print_json({"jobs": jobs})
        return 0
    if not jobs:
        kind = "running " if options.running else "scheduled " if options.scheduled else ""
        more = "" if options.all else " firesteel list -a also shows jobs that have ended."
        print(f"There are no {kind}jobs.{more}")  # noqa: T201
        return 0
    rows = [
        [
            job.jid,
            job.state,
            local_time(job.start_time),
            duration_text(job.duration),
            f"{job.tasks.running}/{job.tasks.total}",
            job.name,
        ]
        for job in jobs
    ]
    headers = ["JobID", "state", "started", "duration", "tasks", "name"]
    print("\n".join(fitted_table(headers, rows, shrink="name")))  # noqa: T201
    return 0
