"""``firesteel sql-gateway``: starts and stops a SQL Gateway outside of a JobManager."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import cluster_settings, find_cluster
from firesteel.cli.terminal.progress import say
from firesteel.cli.terminal.settings import add_cluster_options, check_settings
from firesteel.client.errors import UsageError

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterAddress
    from firesteel.client.gateway_process import GatewayProcess

__all__ = ["register", "run"]

_START_TIMEOUT_S = 60.0


def register(commands: Any) -> None:
    """Adds the verb."""
    parser = commands.add_parser(
        "sql-gateway",
        help="start or stop a SQL Gateway",
        description="A SQL Gateway for Flink's SQL client and JDBC driver, on port 8083 "
        "(sql-gateway.endpoint.rest.port). A JobManager has one on its own port, so this one is needed only on other "
        "machines or without a cluster. Its jobs run on the given cluster or on the cluster on this machine; without a "
        "cluster, on a Spark embedded in its process. Exit codes: 0, 1 if it cannot be started, 2 if there is none to "
        "stop.",
    )
    parser.add_argument("action", choices=("start", "start-foreground", "stop"), help="what to do")
    parser.add_argument("--embedded", action="store_true", help="run jobs in its process, although there is a cluster")
    add_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Starts or stops a gateway."""
    from firesteel.client.gateway_process import GatewayProcess
    from firesteel.client.local_clusters import cluster_directory
    from firesteel.config.configuration import Configuration

    settings = cluster_settings(options)
    check_settings(settings)
    directory = cluster_directory(Configuration.from_dict(settings))
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    gateway = GatewayProcess(directory)
    if options.action == "stop":
        if not gateway.stop():
            raise UsageError("There is no SQL Gateway to stop.")
        say("The SQL Gateway has stopped.")
        return 0
    return _start(options, gateway, settings, None if options.embedded else find_cluster(options))


def _start(
    options: argparse.Namespace, gateway: GatewayProcess, settings: dict[str, str], cluster: ClusterAddress | None
) -> int:
    def started(url: str) -> None:
        place = "in its process" if cluster is None else f"on {cluster.urls[0]}"
        say(f"The SQL Gateway listens on {url}. Jobs run {place}.")

    if options.action == "start-foreground":
        return gateway.run(settings, cluster, started)
    started(gateway.start(settings, cluster, _START_TIMEOUT_S))
    return 0
