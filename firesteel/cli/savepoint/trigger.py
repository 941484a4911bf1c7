"""``firesteel savepoint JOB [DIRECTORY]``: takes a savepoint of a running job."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel savepoint``."""
    parser = commands.add_parser(
        "trigger",
        help="take a savepoint of a running job; the word trigger can be left out",
        description="Takes a savepoint while the job goes on, waits for it and prints its path. With -d, a savepoint "
        "is deleted instead. Exit codes: 0, 1 if the savepoint fails, 3 if no cluster answers.",
    )
    parser.add_argument("job", metavar="JOB", nargs="?", help="the job's id, how it begins, or its name")
    parser.add_argument(
        "directory", metavar="DIRECTORY", nargs="?", help="where to; by default execution.checkpointing.savepoint-dir"
    )
    parser.add_argument("-d", "--dispose", metavar="PATH", help="have the cluster delete this savepoint")
    parser.add_argument("-detached", "--detached", action="store_true", help="do not wait: print the id of the request")
    parser.add_argument(
        "-type", "--type", dest="format", choices=("canonical", "native"), default="canonical", help="its format"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Takes the savepoint."""
    from firesteel.cli.snapshots import dispose_savepoint, take_savepoint

    return take_savepoint(options) if options.dispose is None else dispose_savepoint(options)
