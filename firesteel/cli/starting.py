"""Starts JobManagers on this machine, for a session or for one program."""

from __future__ import annotations

import argparse
import re
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from firesteel.cli import cluster_processes
from firesteel.cli.connection import ClusterAddress, ClusterClient, cluster_settings
from firesteel.cli.errors import CommandError
from firesteel.cli.jobs import print_json
from firesteel.cli.local_clusters import JobManagerEntry, LocalCluster, local_cluster
from firesteel.cli.login_link import login_link
from firesteel.cli.program import find_program
from firesteel.cli.program_files import program_files
from firesteel.cli.progress import Progress, say
from firesteel.cli.settings import check_settings, program_settings
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration
from firesteel.rest.client import ConnectionFailedError, RestClientError
from firesteel.rest.cluster import CLUSTER_OVERVIEW

__all__ = ["start_application", "start_session"]

_PORTS = re.compile(r"\d{1,5}(-\d{1,5})?")
_LAST_PORT = 65535
_WILDCARDS = ("0.0.0.0", "::", "[::]")  # noqa: S104 - not bound to, but recognised
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")
_GRACE_S = 60.0
_PROBE_S = 10.0


def start_session(options: argparse.Namespace) -> int:
    """Starts a session cluster, or a standby for one; 0 if it runs."""
    settings = jobmanager_settings(options)
    cluster = local_cluster(settings)
    with cluster_processes.starting(cluster):
        running = cluster.job_managers()
        if running and not options.standby:
            _report(options, cluster, running[0], settings, already=True)
            return 0
        if options.standby and not running:
            raise CommandError(
                f"The cluster '{cluster.cluster_id}' does not run, so there is nothing to stand by for.",
                hint="Start it without --standby first.",
            )
        if options.standby and options.port is None:
            settings.setdefault(cluster_options.REST_PORT.key, "0")
        return start_jobmanager(options, cluster, {"mode": "session", "configuration": settings}, settings)


def start_application(options: argparse.Namespace) -> int:
    """Starts a JobManager that runs a program, or stays with one; 0 if it runs, or has ended well."""
    settings = {**program_settings(options), **jobmanager_settings(options)}
    settings.setdefault(cluster_options.CLUSTER_ID.key, _application_id(options))
    if options.module is None:
        find_program(options.program)  # before anything is made for it
    cluster = local_cluster(settings)
    kept = cluster.directory / "pyfs"
    with cluster_processes.starting(cluster), program_files(options.python_files, into=kept) as files:
        running = cluster.job_managers()
        if running:
            raise CommandError(
                f"The cluster '{cluster.cluster_id}' runs already: {running[0].url}.",
                hint="Stop it first, or give this one another id with --id.",
            )
        program = find_program(options.program, options.module, files.search_path)
        beside = str(Path.cwd() if options.module else Path(program).parent)
        told = {
            "mode": "application",
            "program": program,
            "module": options.module,
            "arguments": list(options.arguments),
            "configuration": settings,
        }
        return start_jobmanager(options, cluster, told, settings, [beside, *files.search_path])


def _application_id(options: argparse.Namespace) -> str:
    """A new one for every run: a run with the id of another one goes on with that one's jobs."""
    name = options.module or Path(options.program).stem
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '-', name).lstrip('.-') or 'application'}-{uuid.uuid4().hex[:8]}"


def start_jobmanager(
    options: argparse.Namespace,
    cluster: LocalCluster,
    told: Mapping[str, Any],
    settings: Mapping[str, str],
    search_path: Sequence[str] = (),
) -> int:
    """Starts one JobManager and says where it is, or stays with it; the command's exit code."""
    cluster.remember()
    log_from = cluster_processes.log_size(cluster)
    process = cluster_processes.launch(cluster, told, search_path=search_path, foreground=options.foreground)
    if options.foreground:
        return _stay(options, cluster, process)
    try:
        with Progress(quiet=options.json) as progress:
            entry = cluster_processes.await_entry(
                cluster,
                process,
                seconds=options.timeout,
                log_from=log_from,
                is_ready=lambda entry: _answers(entry, settings, standby=getattr(options, "standby", False)),
                waiting=lambda: progress.show(f"starting cluster '{cluster.cluster_id}' …"),
            )
    except BaseException:
        cluster_processes.end_processes([process.pid], 5)
        raise
    _report(options, cluster, entry, settings, already=False)
    return 0


def _stay(options: argparse.Namespace, cluster: LocalCluster, process: subprocess.Popen[bytes]) -> int:
    log = cluster.directory / "log" / "jobmanager.log"
    try:
        log_from = log.stat().st_size
    except OSError:
        log_from = 0

    def watch() -> bool:
        entry = next((entry for entry in cluster.job_managers() if entry.pid == process.pid), None)
        if entry is not None and options.json:
            print_json({"cluster-id": cluster.cluster_id, "url": entry.url, "pid": entry.pid})
        elif entry is not None:
            say(f"the JobManager of cluster '{cluster.cluster_id}' is at {entry.url}; Ctrl-C stops it")
        return entry is not None

    code = cluster_processes.run_in_foreground(process, _GRACE_S, watch)
    if code not in (0, cluster_processes.INTERRUPTED):
        said = cluster_processes.log_tail(log, log_from)
        raise cluster_processes.ClusterStartError(
            f"The JobManager ended with exit code {code}.\n{said}".rstrip(), hint=f"The logs are in {log.parent}."
        )
    return code


def jobmanager_settings(options: argparse.Namespace) -> dict[str, str]:
    """What the options of a JobManager say; those with a name of their own win over ``-D``."""
    settings = cluster_settings(options)
    if options.master is not None:
        settings["spark.master"] = options.master
    if options.slots is not None:
        settings[cluster_options.TASK_SLOTS.key] = str(options.slots)
    if options.port is not None:
        if not _PORTS.fullmatch(options.port) or max(map(int, options.port.split("-"))) > _LAST_PORT:
            raise CommandError(
                f"--port needs a number from 0 to {_LAST_PORT}, or a range such as 8081-8090, got {options.port!r}."
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


def _answers(entry: JobManagerEntry, settings: Mapping[str, str], *, standby: bool) -> bool:
    if standby:
        return True  # it listens; the leader is another
    try:
        with _client(entry, settings) as client:
            client.call(CLUSTER_OVERVIEW)
    except (RestClientError, ConnectionFailedError):
        return False
    return True


def _client(entry: JobManagerEntry, settings: Mapping[str, str]) -> ClusterClient:
    configuration = Configuration.from_dict(settings)
    token_file = configuration.get(cluster_options.REST_TOKEN_FILE) or entry.token_file
    return ClusterAddress((entry.url,), configuration, token_file).client(_PROBE_S)


def _report(
    options: argparse.Namespace,
    cluster: LocalCluster,
    entry: JobManagerEntry,
    settings: Mapping[str, str],
    *,
    already: bool,
) -> None:
    slots: int | None = None
    link: str | None = None
    try:
        with _client(entry, settings) as client:
            slots = client.call(CLUSTER_OVERVIEW).slots_total
            link = login_link(client)
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
    what = "a standby of cluster" if getattr(options, "standby", False) else "cluster"
    verb = "was running already" if already else "is running"
    which = "" if cluster.cluster_id == cluster_options.CLUSTER_ID.default else f" --id {cluster.cluster_id}"
    if options.cluster_directory is not None:
        which = f" --directory {options.cluster_directory}"
    lines = [
        f"{what.capitalize()} '{cluster.cluster_id}' {verb}: {entry.url}",
        *([] if link is None else [f"  web     {link}  (works once; then: firesteel cluster link{which})"]),
        f"  slots   {'-' if slots is None else slots}",
        f"  token   {entry.token_file}",
        f"  logs    {cluster.directory / 'log'}",
        f"  stop    firesteel cluster stop{which}",
    ]
    print("\n".join(lines))  # noqa: T201
    for warning in _warnings(settings):
        say(f"warning: {warning}")


def _warnings(settings: Mapping[str, str]) -> list[str]:
    """What a user should know of a port that others than this machine reach."""
    configuration = Configuration.from_dict(settings)
    address = configuration.get(cluster_options.REST_BIND_ADDRESS)
    if address in _LOOPBACK:
        return []
    found = []
    if not configuration.get(cluster_options.SSL_REST_ENABLED):
        found.append(
            f"the REST port listens on {address} without TLS: whoever sees the network traffic can read the token and "
            "run code (security.ssl.rest.enabled)."
        )
    if configuration.get(cluster_options.REST_AUTHENTICATE_READS) is False:
        found.append(
            f"whoever reaches {address} can read jobs, logs, configuration and state without a token "
            "(rest.authentication.reads is false)."
        )
    return found
