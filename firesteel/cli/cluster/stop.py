"""``firesteel cluster stop``: stops a cluster and all its processes."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import connect
from firesteel.cli.terminal.output import count, print_json
from firesteel.cli.terminal.progress import TerminalProgress
from firesteel.cli.terminal.settings import add_local_cluster_options
from firesteel.common.errors import FiresteelError

if TYPE_CHECKING:
    from firesteel.client.connection import ClusterAddress, ClusterClient
    from firesteel.rest.jobs import JobOverview

__all__ = ["ClusterStopError", "register", "run"]

_POLL_S = 0.2
_PROBE_TIMEOUT_S = 10.0


class ClusterStopError(FiresteelError):
    """A cluster that has not stopped in time."""


def register(commands: Any) -> None:
    """Adds the verb to those of ``firesteel cluster``."""
    parser = commands.add_parser(
        "stop",
        help="stop a cluster",
        description="Stops the JobManagers and waits until they and all their processes have exited; processes that do "
        "not exit in time are killed. Jobs are suspended: they resume from their last checkpoint when the "
        "cluster is started again. Exit codes: 0, 1 if processes remain, 3 if no cluster is running.",
    )
    parser.add_argument("--cancel-jobs", action="store_true", help="cancel all jobs first instead of suspending them")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=60.0,
        help="seconds to wait before remaining processes are killed",
    )
    add_local_cluster_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Stops the cluster and prints what happened to its jobs."""
    cluster = connect(options)
    with cluster.client(_PROBE_TIMEOUT_S) as client, TerminalProgress(quiet=options.json) as progress:
        jobs = _live_jobs(client)
        cancelled: list[str] = []
        if options.cancel_jobs:
            cancelled = _cancel(client, jobs or [], options.timeout, progress)
        left = [job.jid for job in jobs or () if job.jid not in cancelled]
        killed = _stop_local(cluster, options.timeout, progress) if cluster.local else []
        if cluster.local is None:
            _stop_remote(client, options.timeout, progress)
    report: dict[str, Any] = {
        "stopped": True,
        "jobs-cancelled": cancelled,
        "jobs-suspended": left if jobs is not None else None,
        "processes-killed": killed,
    }
    if options.json:
        print_json(report)
        return 0
    name = client.url if cluster.local is None else f"'{cluster.local.cluster_id}'"
    print(f"Cluster {name} is stopped.")  # noqa: T201
    if cancelled:
        print(f"  {count(len(cancelled), 'job')} cancelled")  # noqa: T201
    if left:
        print(f"  {count(len(left), 'job')} suspended, to be resumed when the cluster is started again")  # noqa: T201
    if killed:
        print(f"  {count(len(killed), 'process', 'processes')} did not exit in time and had to be killed")  # noqa: T201
    return 0


def _live_jobs(client: ClusterClient) -> list[JobOverview] | None:
    """The jobs that have not ended; None if the cluster does not respond."""
    from firesteel.client.jobs import ENDED
    from firesteel.rest.client import ConnectionFailedError, RestClientError
    from firesteel.rest.jobs import JOBS_OVERVIEW

    try:
        return [job for job in client.call(JOBS_OVERVIEW).jobs if job.state not in ENDED]
    except (ConnectionFailedError, RestClientError):
        return None


def _cancel(client: ClusterClient, jobs: list[JobOverview], seconds: float, progress: TerminalProgress) -> list[str]:
    from firesteel.client.jobs import await_end
    from firesteel.rest.client import RestClientError
    from firesteel.rest.submission import CANCEL_JOB

    for job in jobs:
        try:
            client.call(CANCEL_JOB, {"jobid": job.jid})
        except RestClientError as error:
            if error.status not in (404, 409):  # it has ended by itself
                raise
    deadline = time.monotonic() + seconds
    for job in jobs:
        progress.show(f"cancelling job '{job.name}' …")
        await_end(client, job.jid, progress, max(1.0, deadline - time.monotonic()))
    return [job.jid for job in jobs]


def _stop_local(cluster: ClusterAddress, seconds: float, progress: TerminalProgress) -> list[int]:
    """Ends the processes, the youngest first: a standby stopped after the leader might take over for a moment."""
    from firesteel.client.cluster_processes import end_processes

    assert cluster.local is not None
    killed: list[int] = []
    while entries := cluster.local.job_managers():
        progress.show(f"stopping {', '.join(entry.url for entry in entries)} …")
        killed += end_processes([entry.pid for entry in reversed(entries)], seconds)
        for entry in entries:
            if not entry.is_running():
                entry.path.unlink(missing_ok=True)  # one that was killed could not
    return killed


def _stop_remote(client: ClusterClient, seconds: float, progress: TerminalProgress) -> None:
    from firesteel.rest.client import ConnectionFailedError, RestClientError
    from firesteel.rest.cluster import CLUSTER_OVERVIEW, CLUSTER_SHUTDOWN

    client.call(CLUSTER_SHUTDOWN)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        progress.show(f"waiting until {client.url} has shut down …")
        try:
            client.call(CLUSTER_OVERVIEW)
        except ConnectionFailedError:
            return
        except RestClientError:
            pass  # it is shutting down
        time.sleep(_POLL_S)
    raise ClusterStopError(
        f"The JobManager at {client.url} still responds {seconds:g} s after the shutdown request.",
        hint="Another JobManager may have taken over: stop it as well, or check its log.",
    )
