"""``firesteel rescale``: has a job go on with another parallelism."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options, positive

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "rescale",
        help="change a job's parallelism",
        description="Has a running job take a checkpoint and go on from it with another parallelism. Exit codes: 0 "
        "when it runs so, 1 if it cannot, 3 if no cluster answers.",
    )
    parser.add_argument("job", metavar="JOB", help="the job's id, how it begins, or its name")
    parser.add_argument(
        "-p", "--parallelism", metavar="N", type=positive, required=True, help="how many subtasks each vertex gets"
    )
    parser.add_argument(
        "--vertex", metavar="ID", action="append", default=[], help="only this vertex: its id, or a part of its name"
    )
    parser.add_argument("-d", "--detached", action="store_true", help="do not wait until the job runs so")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, default=120.0, help="how long to wait (default: 120)"
    )
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Rescales the job."""
    from firesteel.cli.rescaling import rescale_job

    return rescale_job(options)
