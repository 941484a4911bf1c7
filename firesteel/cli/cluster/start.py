"""``firesteel cluster start``: starts a JobManager for many jobs."""

from __future__ import annotations

import argparse
from typing import Any

from firesteel.cli.terminal.job_manager import add_jobmanager_options, jobmanager_settings, report, start_and_report
from firesteel.client.errors import UsageError

__all__ = ["register", "run"]


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel cluster``."""
    parser = commands.add_parser(
        "start",
        help="start a session cluster on this machine",
        description="Starts a JobManager in the background and waits until it accepts jobs. A cluster that is already "
        "running is left unchanged. Exit codes: 0 if the cluster is running, 1 if it cannot be started.",
    )
    add_jobmanager_options(parser)
    parser.add_argument(
        "--standby",
        action="store_true",
        help="start a standby JobManager for a running cluster, which takes over if the leader fails",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Starts a session cluster, or a standby for one; 0 if it runs."""
    from firesteel.client.cluster_processes import starting
    from firesteel.client.local_clusters import local_cluster
    from firesteel.config import cluster_options

    settings = jobmanager_settings(options)
    cluster = local_cluster(settings)
    with starting(cluster):
        running = cluster.job_managers()
        if running and not options.standby:
            report(options, cluster, running[0], settings, already=True)
            return 0
        if options.standby and not running:
            raise UsageError(
                f"Cannot start a standby JobManager: the cluster '{cluster.cluster_id}' is not running.",
                hint="Start the cluster without --standby first.",
            )
        if options.standby and options.port is None:
            settings.setdefault(cluster_options.REST_PORT.key, "0")
        return start_and_report(options, cluster, {"mode": "session", "configuration": settings})
