"""``firesteel cluster stop``: stops a cluster, and leaves nothing of it running."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel cluster``."""
    parser = commands.add_parser(
        "stop",
        help="stop a cluster",
        description="Asks the JobManagers to stop and waits until they and all their processes are gone; those that "
        "do not go in time are killed. Jobs are suspended: they go on from their last checkpoint when the"
        " cluster is started again. Exit codes: 0, 1 if something is left, 3 if no cluster runs.",
    )
    parser.add_argument("--cancel-jobs", action="store_true", help="cancel all jobs first, so that none goes on")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, default=60.0, help="how long to wait until what is left is killed"
    )
    parser.add_argument("--directory", dest="cluster_directory", metavar="DIR", help="the cluster's directory")
    parser.add_argument("--id", dest="cluster_id", metavar="ID", help="the same as -z")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Stops the cluster."""
    from firesteel.cli.stopping import stop_cluster

    return stop_cluster(options)
