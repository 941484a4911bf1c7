"""``firesteel status``: how a job is doing."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "status",
        help="show how a job is doing",
        description="Shows a job's state, its vertices with what they read and write, its last checkpoint and what "
        "slows it down. Exit codes: 0, 1 if there is no such job, 3 if no cluster answers.",
    )
    parser.add_argument("job", metavar="JOB", help="the job's id, how it begins, or its name")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the job's status."""
    from firesteel.cli.job_reports import show_status

    return show_status(options)
