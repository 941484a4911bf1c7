"""``firesteel cluster start``: starts a JobManager for many jobs."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_jobmanager_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel cluster``."""
    parser = commands.add_parser(
        "start",
        help="start a session cluster on this machine",
        description="Starts a JobManager that goes on by itself, and waits until it takes jobs. One that runs already"
        " is left alone. Exit codes: 0 if the cluster runs, 1 if it cannot be started.",
    )
    add_jobmanager_options(parser)
    parser.add_argument(
        "--standby",
        action="store_true",
        help="start one more JobManager of a cluster that runs: it takes over when the leader is gone",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Starts the cluster."""
    from firesteel.cli.starting import start_session

    return start_session(options)
