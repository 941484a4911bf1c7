"""``firesteel stop``: ends a job with a savepoint."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "stop",
        help="stop a job with a savepoint",
        description="Stops the sources, takes a savepoint, commits what the job has written and ends it; prints the "
        "savepoint's path. Exit codes: 0, 1 if the savepoint fails, in which case the job goes on, 3 if "
        "no cluster answers.",
    )
    parser.add_argument("job", metavar="JOB", help="the job's id, how it begins, or its name")
    parser.add_argument(
        "-p",
        "--savepointPath",
        "--savepoint-path",
        dest="savepoint",
        metavar="DIRECTORY",
        help="where the savepoint goes; by default to execution.checkpointing.savepoint-dir",
    )
    parser.add_argument(
        "-d", "--drain", action="store_true", help="have all windows and timers fire, for a job that will not go on"
    )
    parser.add_argument(
        "-type", "--type", dest="format", choices=("canonical", "native"), default="canonical", help="its format"
    )
    parser.add_argument("-detached", "--detached", action="store_true", help="do not wait: print the request's id")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Stops the job."""
    from firesteel.cli.ending import stop_job

    return stop_job(options)
