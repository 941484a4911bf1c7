"""``firesteel cluster link``: prints a login link for the web UI."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import on_cluster
from firesteel.cli.terminal.output import print_result
from firesteel.cli.terminal.settings import add_local_cluster_options

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterClient

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel cluster``."""
    parser = commands.add_parser(
        "link",
        help="print a login link for the web UI",
        description="Prints a link to the web UI that gives a browser the cluster's token. The link can be used once, "
        "within 15 minutes. Exit codes: 0, 1 if the cluster rejects the request, 3 if no cluster responds.",
    )
    add_local_cluster_options(parser)
    parser.set_defaults(run=run)


@on_cluster
def run(options: argparse.Namespace, client: ClusterClient) -> int:
    link = client.login_link()
    print_result({"url": link}, link, as_json=options.json)
    return 0
