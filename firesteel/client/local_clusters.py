"""The clusters of this user on this machine: their directories, and which of them are running."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from firesteel.client.errors import UsageError
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration
from firesteel.config.log_options import LOG_DIRECTORY

__all__ = [
    "JobManagerEntry",
    "LocalCluster",
    "cluster_directory",
    "find_local_cluster",
    "local_cluster",
    "running_clusters",
]

_START_TIME_TOLERANCE_S = 2.0
_POINTER = ".directory"
"""Ends the name of a file that has the path of a cluster's directory."""


@dataclass(frozen=True)
class JobManagerEntry:
    """A JobManager on this machine, as registered by itself."""

    pid: int
    address: str
    url: str
    started_at: int
    mode: str
    token_file: str | None
    path: Path

    def is_running(self) -> bool:
        """Whether the process is alive; a later process with the same pid does not count."""
        try:
            process = psutil.Process(self.pid)
            started_before = process.create_time() <= self.started_at / 1000 + _START_TIME_TOLERANCE_S
            return started_before and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


@dataclass(frozen=True)
class LocalCluster:
    """A cluster's directory."""

    cluster_id: str
    directory: Path
    configured_log_directory: Path | None = None

    @property
    def log_directory(self) -> Path:
        """Where its JobManagers on this machine write their logs."""
        return self.configured_log_directory or self.directory / "log"

    def job_managers(self) -> list[JobManagerEntry]:
        """Those that run, the oldest first."""
        found = []
        for path in (self.directory / "jobmanagers").glob("*.json"):
            entry = _read(path)
            if entry is not None and entry.is_running():
                found.append(entry)
        return sorted(found, key=lambda entry: entry.started_at)

    def remember(self) -> None:
        """Registers the directory of a cluster that is not in the default location."""
        pointer = _pointer(self.cluster_id)
        if self.directory == state_directory() / self.cluster_id:
            pointer.unlink(missing_ok=True)
            return
        pointer.parent.mkdir(parents=True, exist_ok=True)
        pointer.write_text(str(self.directory))


def state_directory() -> Path:
    """The default directory of clusters."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "firesteel"


def cluster_directory(configuration: Configuration) -> Path:
    """The directory of the cluster that a configuration describes."""
    given = configuration.get(cluster_options.CLUSTER_DIRECTORY)
    if given is not None:
        return Path(given).absolute()
    cluster_id = configuration.get(cluster_options.CLUSTER_ID)
    elsewhere = _remembered(cluster_id)
    return state_directory() / cluster_id if elsewhere is None else elsewhere.directory


def local_cluster(settings: Mapping[str, str]) -> LocalCluster:
    """The cluster on this machine that the settings select, running or not."""
    configuration = Configuration.from_dict(settings)
    cluster_id = configuration.get(cluster_options.CLUSTER_ID)
    if not cluster_id or cluster_id.startswith(".") or "/" in cluster_id:
        raise UsageError(f"{cluster_id!r} is not a valid cluster id: the id is used as a directory name.")
    logs = configuration.get(LOG_DIRECTORY)
    return LocalCluster(cluster_id, cluster_directory(configuration), None if logs is None else Path(logs).absolute())


def find_local_cluster(settings: Mapping[str, str]) -> LocalCluster | None:
    """The running cluster on this machine: the one that the settings select, else the only one."""
    default = local_cluster(settings)
    if default.job_managers():
        return default
    if _is_named(settings):
        return None
    running = running_clusters(settings)
    if len(running) > 1:
        ids = ", ".join(cluster.cluster_id for cluster in running)
        raise UsageError(f"Several clusters are running on this machine: {ids}.", hint="Select one with -z ID.")
    return running[0] if running else None


def running_clusters(settings: Mapping[str, str]) -> list[LocalCluster]:
    """The running clusters of this user on this machine; only the selected one if the settings select one."""
    if _is_named(settings):
        found = [local_cluster(settings)]
    else:
        base = state_directory()
        found = [LocalCluster(path.name, path) for path in sorted(base.glob("*")) if path.is_dir()]
        ids = (path.name.removesuffix(_POINTER) for path in sorted(base.glob(f"*{_POINTER}")))
        found += [cluster for cluster in map(_remembered, ids) if cluster is not None]
    return [cluster for cluster in found if cluster.job_managers()]


def _pointer(cluster_id: str) -> Path:
    return state_directory() / f"{cluster_id}{_POINTER}"


def _remembered(cluster_id: str) -> LocalCluster | None:
    """The cluster of that id that runs in a directory of its own."""
    try:
        cluster = LocalCluster(cluster_id, Path(_pointer(cluster_id).read_text()))
    except (OSError, ValueError):
        return None
    return cluster if cluster.job_managers() else None


def _is_named(settings: Mapping[str, str]) -> bool:
    return not {cluster_options.CLUSTER_ID.key, cluster_options.CLUSTER_DIRECTORY.key}.isdisjoint(settings)


def _read(path: Path) -> JobManagerEntry | None:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        return JobManagerEntry(
            pid=int(content["pid"]),
            address=str(content["address"]),
            url=str(content["url"]),
            started_at=int(content["started_at"]),
            mode=str(content.get("mode", "session")),
            token_file=content.get("token_file"),
            path=path,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None  # being written, or removed, just now
