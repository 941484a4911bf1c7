"""``firesteel cancel``: ends a job."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "cancel",
        help="cancel a job",
        description="Cancels a job and waits until it is over. Exit codes: 0, 1 if it cannot be cancelled, 3 if no "
        "cluster answers.",
    )
    parser.add_argument("job", metavar="JOB", help="the job's id, how it begins, or its name")
    parser.add_argument(
        "-s",
        "--withSavepoint",
        "--with-savepoint",
        dest="savepoint",
        metavar="DIRECTORY",
        nargs="?",
        const="",
        help="take a savepoint first, there or in execution.checkpointing.savepoint-dir; firesteel stop is better, as "
        "it loses and repeats nothing",
    )
    parser.add_argument("-d", "--detached", action="store_true", help="do not wait until the job is over")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Cancels the job."""
    from firesteel.cli.ending import cancel_job

    return cancel_job(options)
