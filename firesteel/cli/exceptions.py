"""``firesteel exceptions``: what went wrong in a job."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options, positive

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "exceptions",
        help="show why a job failed or restarted",
        description="Shows the failures of a job, the latest first, with the place in the program. Exit codes: 0, 1 "
        "if there is no such job, 3 if no cluster answers.",
    )
    parser.add_argument("job", metavar="JOB", help="the job's id, how it begins, or its name")
    parser.add_argument("--limit", metavar="N", type=positive, default=10, help="how many (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the failures."""
    from firesteel.cli.job_reports import show_exceptions

    return show_exceptions(options)
