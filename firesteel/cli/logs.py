"""``firesteel logs``: what the processes of a cluster log."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options, positive

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "logs",
        help="show the logs of a cluster",
        description="Lists the log files of the JobManager and the TaskManagers, or prints one: firesteel logs "
        "jobmanager, firesteel logs taskmanager --stdout, firesteel logs jobmanager NAME. Exit codes: 0, 1 if "
        "there is no such log, 3 if no cluster answers.",
    )
    parser.add_argument(
        "process",
        metavar="PROCESS",
        nargs="?",
        help="jobmanager; the id of a TaskManager, or taskmanager if there is one only",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="which log; by default its main one")
    parser.add_argument("--stdout", action="store_true", help="what functions have printed")
    parser.add_argument("-n", "--lines", metavar="N", type=positive, help="only the last lines")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the logs."""
    from firesteel.cli.log_files import show_logs

    return show_logs(options)
