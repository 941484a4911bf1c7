"""``firesteel cluster status``: shows the status of a cluster: JobManagers, slots and jobs."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import cluster_settings, find_cluster
from firesteel.cli.terminal.output import count, indented, print_result, table
from firesteel.cli.terminal.settings import add_local_cluster_options

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterAddress

__all__ = ["register", "run"]

RUNNING, NOT_RUNNING = 0, 3
_PROBE_TIMEOUT_S = 5.0


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel cluster``."""
    parser = commands.add_parser(
        "status",
        help="show the status of a cluster",
        description="Shows JobManagers, leader, slots and jobs. Exit codes: 0 if the cluster is running, 3 if it is "
        "not.",
    )
    add_local_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the cluster's status; 3 if it does not run."""
    from firesteel.client.jobs import ENDED
    from firesteel.client.local_clusters import local_cluster
    from firesteel.rest.cluster import CLUSTER_OVERVIEW
    from firesteel.rest.jobs import JOBS_OVERVIEW

    cluster = find_cluster(options)
    if cluster is None:
        named = local_cluster(cluster_settings(options))
        text = f"Cluster '{named.cluster_id}' is not running ({named.directory})."
        print_result({"running": False}, text, as_json=options.json)
        return NOT_RUNNING
    managers = _job_managers(cluster)
    if not any(manager["answers"] for manager in managers):
        if cluster.local is None:
            with cluster.client(_PROBE_TIMEOUT_S) as client:
                client.call(CLUSTER_OVERVIEW)  # raises the reason
        lines = ["The JobManager does not respond, or no leader has been elected yet:", *_managers_table(managers)]
        print_result({"running": False, "job-managers": managers}, "\n".join(lines), as_json=options.json)
        return NOT_RUNNING
    with cluster.client(_PROBE_TIMEOUT_S) as client:
        overview = client.call(CLUSTER_OVERVIEW)
        jobs = client.call(JOBS_OVERVIEW).jobs
        url = client.leader_url
    said = {
        "running": True,
        "cluster-id": None if cluster.local is None else cluster.local.cluster_id,
        "directory": None if cluster.local is None else str(cluster.local.directory),
        "url": url,
        "slots-total": overview.slots_total,
        "slots-available": overview.slots_available,
        "task-managers": overview.taskmanagers,
        "version": overview.flink_commit,
        "jobs": dict(Counter(job.state for job in jobs)),
        "job-managers": managers,
    }
    name = "The cluster" if cluster.local is None else f"Cluster '{cluster.local.cluster_id}'"
    live = [job for job in jobs if job.state not in ENDED]
    states = ", ".join(f"{number} {state}" for state, number in Counter(job.state for job in jobs).items())
    managed = count(overview.taskmanagers, "TaskManager")
    lines = [
        f"{name} is running: {url}",
        f"  slots   {overview.slots_available} of {overview.slots_total} free, in {managed}",
        f"  jobs    {len(live)} not ended{f' ({states})' if states else ''}",
    ]
    if cluster.local is not None:
        lines += [f"  files   {cluster.local.directory}"]
    print_result(said, "\n".join([*lines, "", *_managers_table(managers)]), as_json=options.json)
    return RUNNING


def _job_managers(cluster: ClusterAddress) -> list[dict[str, Any]]:
    """The JobManagers that are known, and which of them leads."""
    from firesteel.rest.client import ConnectionFailedError, RestClientError
    from firesteel.rest.cluster import CLUSTER_OVERVIEW

    found: list[dict[str, Any]] = []
    entries = [] if cluster.local is None else cluster.local.job_managers()
    known = {entry.url: entry for entry in entries}
    for url in known or cluster.urls:
        client = cluster.rest_client(url, _PROBE_TIMEOUT_S)
        role, problem = "unknown", None
        try:
            client.call(CLUSTER_OVERVIEW)
            role = "leader" if client.leader_url == url else "standby"
        except (ConnectionFailedError, RestClientError) as error:
            problem = error.message
        finally:
            client.close()
        entry = known.get(url)
        now = time.time() * 1000
        found.append(
            {
                "url": url,
                "answers": problem is None,
                "role": role,
                "problem": problem,
                "pid": None if entry is None else entry.pid,
                "mode": None if entry is None else entry.mode,
                "uptime-ms": None if entry is None else int(now - entry.started_at),
            }
        )
    return found


def _managers_table(managers: list[dict[str, Any]]) -> list[str]:
    from firesteel.client.progress import duration_text

    rows = [
        [
            each["url"],
            each["problem"] or each["role"],
            each["mode"],
            each["pid"],
            None if each["uptime-ms"] is None else duration_text(each["uptime-ms"]),
        ]
        for each in managers
    ]
    return indented(table(["JobManager", "role", "mode", "pid", "up for"], rows))
