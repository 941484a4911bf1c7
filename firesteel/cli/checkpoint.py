"""``firesteel checkpoint``: takes a checkpoint now."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "checkpoint",
        help="take a checkpoint of a job",
        description="Takes a checkpoint of a running job and waits for it. Exit codes: 0, 1 if it fails, 3 if no "
        "cluster answers.",
    )
    parser.add_argument("job", metavar="JOB", help="the job's id, how it begins, or its name")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("-full", "--full", action="store_true", help="write all state anew, also what earlier ones hold")
    kind.add_argument(
        "-incremental", "--incremental", action="store_true", help="write what has changed, if the job does"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Takes the checkpoint."""
    from firesteel.cli.snapshots import take_checkpoint

    return take_checkpoint(options)
