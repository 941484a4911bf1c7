"""``firesteel cluster status``: whether a cluster runs, where, and what it is doing."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel cluster``."""
    parser = commands.add_parser(
        "status",
        help="show whether a cluster runs",
        description="Shows the JobManagers and which of them leads, slots and jobs. Exit codes: 0 if the cluster "
        "runs, 3 if it does not.",
    )
    parser.add_argument("--directory", dest="cluster_directory", metavar="DIR", help="the cluster's directory")
    parser.add_argument("--id", dest="cluster_id", metavar="ID", help="the same as -z")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the status; 3 if the cluster does not run."""
    from firesteel.cli.cluster_status import show_status

    return show_status(options)
