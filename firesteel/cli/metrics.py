"""``firesteel metrics``: what a job measures."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "metrics",
        help="show a job's metrics",
        description="Shows the latest metrics of a job's vertices: the names there are, or the values of those that "
        "are named, per subtask. Exit codes: 0, 1 if there is no such job or metric, 3 if no cluster "
        "answers.",
    )
    parser.add_argument("job", metavar="JOB", help="the job's id, how it begins, or its name")
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="metrics, such as numRecordsInPerSecond; * stands for anything"
    )
    parser.add_argument("--vertex", metavar="ID", help="only this vertex: its id, how it begins, or a part of its name")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the metrics."""
    from firesteel.cli.job_metrics import show_metrics

    return show_metrics(options)
