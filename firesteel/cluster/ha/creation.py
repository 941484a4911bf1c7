"""Creates the high-availability services that are configured."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

from firesteel.cluster.ha.filesystem_election import FileSystemHighAvailability
from firesteel.cluster.ha.job_store import Retention
from firesteel.cluster.ha.services import HighAvailabilityError, HighAvailabilityServices
from firesteel.common.time import Duration
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration
from firesteel.config.option import ConfigOption
from firesteel.filesystem.filesystem import join, normalize, scheme_of
from firesteel.filesystem.stores import configure_filesystems

__all__ = ["create_services", "storage_directory"]

_MIN_DURATION_S = 0.1
_CLUSTER_ID = re.compile(r"\w[\w.-]*")


def storage_directory(configuration: Configuration, cluster_directory: Path) -> str:
    """Where what must survive the JobManagers of a cluster is kept."""
    cluster_id = configuration.get(cluster_options.CLUSTER_ID)
    if not _CLUSTER_ID.fullmatch(cluster_id):
        raise HighAvailabilityError(
            f"high-availability.cluster-id is {cluster_id!r}, which cannot be the name of a directory.",
            hint="Use letters, digits, dots, underscores and hyphens.",
        )
    told = configuration.get(cluster_options.HA_STORAGE_DIR)
    return normalize(str(cluster_directory / "ha")) if told is None else join(normalize(told), cluster_id)


def create_services(
    configuration: Configuration, cluster_directory: Path, *, keeps_results: bool = False
) -> HighAvailabilityServices:
    """The leader election and job store of a cluster; ``keeps_results``: how a job ended is never forgotten."""
    directory = storage_directory(configuration, cluster_directory)
    retention = Retention(
        max(configuration.get(cluster_options.JOB_STORE_CAPACITY), 1),
        configuration.get(cluster_options.JOB_STORE_EXPIRATION),
    )
    if keeps_results:
        retention = Retention(sys.maxsize, math.inf)
    if configuration.get(cluster_options.HA_MODE) == "zookeeper":
        quorum = configuration.get(cluster_options.HA_ZOOKEEPER_QUORUM)
        if not quorum:
            raise HighAvailabilityError(
                "high-availability.type is zookeeper, but high-availability.zookeeper.quorum is not set.",
                hint="Set it to host:port, or to a comma-separated list.",
            )
        if configuration.get(cluster_options.HA_STORAGE_DIR) is None:
            raise HighAvailabilityError(
                "high-availability.type is zookeeper, but there is no high-availability.storageDir.",
                hint="Set it to a directory that all JobManagers share, or to s3://bucket/path. Jobs are persisted "
                "there.",
            )
        try:
            from firesteel.cluster.ha.zookeeper import ZooKeeperHighAvailability
        except ModuleNotFoundError as error:
            raise HighAvailabilityError(
                f"ZooKeeper needs the package {error.name}, which is not installed.",
                hint="pip install 'firesteel[zookeeper]', for every JobManager.",
            ) from error
        configure_filesystems(configuration)
        return ZooKeeperHighAvailability(
            quorum,
            join(configuration.get(cluster_options.HA_ZOOKEEPER_ROOT), configuration.get(cluster_options.CLUSTER_ID)),
            directory,
            _seconds(configuration, cluster_options.HA_ZOOKEEPER_SESSION_TIMEOUT),
            retention=retention,
        )
    if scheme_of(directory) != "file":
        raise HighAvailabilityError(
            f"high-availability.storageDir is {directory}, which does not support atomic renames.",
            hint="Use a directory that all JobManagers share, or set high-availability.type to zookeeper.",
        )
    duration = _seconds(configuration, cluster_options.HA_LEASE_DURATION)
    return FileSystemHighAvailability(directory, duration, retention=retention)


def _seconds(configuration: Configuration, option: ConfigOption[Duration]) -> float:
    seconds = configuration.get(option).to_millis() / 1000
    if seconds < _MIN_DURATION_S:
        raise HighAvailabilityError(
            f"{option.key} is {seconds:g} s, which is too short to renew the leader lease.",
            hint="Use a few seconds. This is the time without a renewal after which another JobManager takes over.",
        )
    return seconds
