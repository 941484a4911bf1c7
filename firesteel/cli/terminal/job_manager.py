"""Starting a JobManager: the options for it, and what is printed about it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.cli.terminal.connection import cluster_settings
from firesteel.cli.terminal.output import print_json
from firesteel.cli.terminal.progress import TerminalProgress, say
from firesteel.cli.terminal.settings import add_settings_option, check_settings, positive
from firesteel.client.errors import UsageError

if TYPE_CHECKING:
    from firesteel.client.local_clusters import JobManagerEntry, LocalCluster

__all__ = ["add_jobmanager_options", "jobmanager_settings", "report", "start_and_report"]

_PORTS = re.compile(r"\d{1,5}(-\d{1,5})?")
_LAST_PORT = 65535
_WILDCARDS = ("0.0.0.0", "::", "[::]")  # noqa: S104 - not bound to, but recognised
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")
_SHUTDOWN_TIMEOUT_S = 60.0
_PROBE_TIMEOUT_S = 10.0


def add_jobmanager_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a JobManager that is to be started, and ``-D``."""
    parser.add_argument("--master", metavar="URL", help="Spark master URL; default: an embedded Spark")
    parser.add_argument("--slots", metavar="N", type=positive, help="number of slots of an embedded Spark")
    parser.add_argument(
        "--port", metavar="PORT", help="REST port (default: 8081); a range such as 8081-8090, or 0 for any free port"
    )
    parser.add_argument(
        "--host", metavar="ADDRESS", help="address to listen on; by default only reachable from this machine"
    )
    parser.add_argument("--id", "-z", dest="cluster_id", metavar="ID", help="cluster id (default: default)")
    parser.add_argument(
        "--directory",
        dest="cluster_directory",
        metavar="DIR",
        help="directory for the logs, token and jobs of the cluster",
    )
    parser.add_argument(
        "--foreground", action="store_true", help="run the JobManager in the foreground; Ctrl-C stops it"
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=120.0,
        help="seconds to wait until the cluster is ready (default: 120)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_settings_option(parser)


def jobmanager_settings(options: argparse.Namespace) -> dict[str, str]:
    """The settings given by the options of a JobManager; dedicated options take precedence over ``-D``."""
    from pathlib import Path

    from firesteel.config import cluster_options

    settings = cluster_settings(options)
    if options.master is not None:
        settings["spark.master"] = options.master
    if options.slots is not None:
        settings[cluster_options.TASK_SLOTS.key] = str(options.slots)
    if options.port is not None:
        if not _PORTS.fullmatch(options.port) or max(map(int, options.port.split("-"))) > _LAST_PORT:
            raise UsageError(
                f"--port must be a number from 0 to {_LAST_PORT}, or a range such as 8081-8090, got {options.port!r}."
            )
        key = cluster_options.REST_BIND_PORT if "-" in options.port else cluster_options.REST_PORT
        settings[key.key] = options.port
    if options.host is not None:
        settings[cluster_options.REST_BIND_ADDRESS.key] = options.host
        if options.host not in _WILDCARDS:
            settings.setdefault(cluster_options.REST_ADDRESS.key, options.host)
    if options.cluster_directory is not None:
        settings[cluster_options.CLUSTER_DIRECTORY.key] = str(Path(options.cluster_directory).absolute())
    check_settings(settings)
    return settings


def start_and_report(
    options: argparse.Namespace,
    cluster: LocalCluster,
    told: Mapping[str, Any],
    search_path: Sequence[str] = (),
) -> int:
    """Starts a JobManager in the background or in the foreground, and prints its address; returns the exit code."""
    from firesteel.client.cluster_processes import start_job_manager

    if options.foreground:
        return _stay(options, cluster, told, search_path)
    with TerminalProgress(quiet=options.json) as progress:
        entry = start_job_manager(
            cluster,
            told,
            search_path=search_path,
            standby=getattr(options, "standby", False),
            seconds=options.timeout,
            waiting=lambda: progress.show(f"starting cluster '{cluster.cluster_id}' …"),
        )
    report(options, cluster, entry, told["configuration"], already=False)
    return 0


def _stay(
    options: argparse.Namespace, cluster: LocalCluster, told: Mapping[str, Any], search_path: Sequence[str]
) -> int:
    """Runs a JobManager in the foreground; returns its exit code."""
    from firesteel.client import cluster_processes

    process = cluster_processes.launch(cluster, told, search_path=search_path, foreground=True)
    log = cluster.log_directory / "jobmanager.log"
    try:
        log_from = log.stat().st_size
    except OSError:
        log_from = 0

    def watch() -> bool:
        entry = next((entry for entry in cluster.job_managers() if entry.pid == process.pid), None)
        if entry is not None and options.json:
            print_json({"cluster-id": cluster.cluster_id, "url": entry.url, "pid": entry.pid})
        elif entry is not None:
            say(f"the JobManager of cluster '{cluster.cluster_id}' is running at {entry.url}; Ctrl-C stops it")
        return entry is not None

    code = cluster_processes.run_in_foreground(process, _SHUTDOWN_TIMEOUT_S, watch)
    if code not in (0, cluster_processes.EXIT_CODE_INTERRUPTED):
        said = cluster_processes.log_tail(log, log_from)
        raise cluster_processes.ClusterStartError(
            f"The JobManager exited with code {code}.\n{said}".rstrip(), hint=f"The logs are in {log.parent}."
        )
    return code


def report(
    options: argparse.Namespace,
    cluster: LocalCluster,
    entry: JobManagerEntry,
    settings: Mapping[str, str],
    *,
    already: bool,
) -> None:
    """Prints where a JobManager is, and how it is used and stopped."""
    from firesteel.client.connection import ClusterAddress
    from firesteel.config import cluster_options
    from firesteel.process.config_file import find_config_file
    from firesteel.rest.client import ConnectionFailedError, RestClientError
    from firesteel.rest.cluster import CLUSTER_OVERVIEW

    slots: int | None = None
    link: str | None = None
    try:
        with ClusterAddress.of_entry(entry, settings).client(_PROBE_TIMEOUT_S) as client:
            slots = client.call(CLUSTER_OVERVIEW).slots_total
            link = client.login_link()
    except (RestClientError, ConnectionFailedError):
        pass  # a standby, or one that is just being stopped
    said = {
        "cluster-id": cluster.cluster_id,
        "url": entry.url,
        "pid": entry.pid,
        "slots": slots,
        "token-file": entry.token_file,
        "directory": str(cluster.directory),
        "already-running": already,
        "web": link,
        "warnings": _warnings(settings),
    }
    if options.json:
        print_json(said)
        return
    config_file = find_config_file()
    what = "a standby of cluster" if getattr(options, "standby", False) else "cluster"
    verb = "was already running" if already else "is running"
    which = "" if cluster.cluster_id == cluster_options.CLUSTER_ID.default else f" --id {cluster.cluster_id}"
    if options.cluster_directory is not None:
        which = f" --directory {options.cluster_directory}"
    lines = [
        f"{what.capitalize()} '{cluster.cluster_id}' {verb}: {entry.url}",
        *(
            []
            if link is None
            else [f"  web     {link}  (can be used once; for a new one: firesteel cluster link{which})"]
        ),
        f"  slots   {'-' if slots is None else slots}",
        f"  token   {entry.token_file}",
        f"  logs    {cluster.log_directory}",
        *([] if config_file is None else [f"  config  {config_file}"]),
        f"  stop    firesteel cluster stop{which}",
    ]
    print("\n".join(lines))  # noqa: T201
    for warning in _warnings(settings):
        say(f"warning: {warning}")


def _warnings(settings: Mapping[str, str]) -> list[str]:
    """Warnings about a REST port that is reachable from other machines."""
    from firesteel.config import cluster_options
    from firesteel.config.configuration import Configuration

    configuration = Configuration.from_dict(settings)
    address = configuration.get(cluster_options.REST_BIND_ADDRESS)
    if address in _LOOPBACK:
        return []
    found = []
    if not configuration.get(cluster_options.SSL_REST_ENABLED):
        found.append(
            f"the REST port listens on {address} without TLS: anyone who can observe the network traffic can "
            "read the token and execute code (security.ssl.rest.enabled)."
        )
    if configuration.get(cluster_options.REST_AUTHENTICATE_READS) is False:
        found.append(
            f"anyone who can connect to {address} can read jobs, logs, configuration and state without a "
            "token (rest.authentication.reads is false)."
        )
    return found
