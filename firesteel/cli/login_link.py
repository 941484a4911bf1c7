"""Links to a cluster's web pages that log a browser in."""

from __future__ import annotations

import argparse

from firesteel.cli.connection import ClusterClient, on_cluster
from firesteel.cli.jobs import print_json
from firesteel.rest.login import CREATE_LOGIN_CODE

__all__ = ["login_link", "show_link"]


def login_link(client: ClusterClient) -> str:
    """A link that works once. The code is in the fragment, which a browser does not send and proxies do not log."""
    code = client.call(CREATE_LOGIN_CODE).code
    return f"{client.leader_url.rstrip('/')}/#/login/{code}"


@on_cluster
def show_link(options: argparse.Namespace, client: ClusterClient) -> int:
    """Prints a link."""
    link = login_link(client)
    if options.json:
        print_json({"url": link})
    else:
        print(link)  # noqa: T201
    return 0
