"""``firesteel cluster link``: a link to the web pages that logs a browser in."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.settings import add_cluster_options

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel cluster``."""
    parser = commands.add_parser(
        "link",
        help="print a link that logs a browser in",
        description="Prints a link to the web pages with which a browser gets the cluster's token. It works once, "
        "within 15 minutes. Exit codes: 0, 1 if the cluster refuses, 3 if no cluster answers.",
    )
    parser.add_argument("--directory", dest="cluster_directory", metavar="DIR", help="the cluster's directory")
    parser.add_argument("--id", dest="cluster_id", metavar="ID", help="the same as -z")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the link."""
    from firesteel.cli.login_link import show_link

    return show_link(options)
