"""Cluster discovery: finds the cluster to connect to, by address or on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from firesteel.client.connection import ClusterAddress
from firesteel.client.errors import ClusterNotFoundError, UsageError
from firesteel.client.local_clusters import find_local_cluster, running_clusters
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration

__all__ = ["JOB_MANAGER_VARIABLE", "TOKEN_FILE_VARIABLE", "connect", "find_cluster"]

JOB_MANAGER_VARIABLE = "FIRESTEEL_JOBMANAGER"
TOKEN_FILE_VARIABLE = "FIRESTEEL_REST_TOKEN_FILE"  # noqa: S105 - the name of a variable


def connect(
    settings: Mapping[str, str], job_manager: str | None = None, cluster_id: str | None = None
) -> ClusterAddress:
    """The cluster that :func:`find_cluster` finds; ClusterNotFoundError if there is none."""
    found = find_cluster(settings, job_manager, cluster_id)
    if found is not None:
        return found
    others = ", ".join(cluster.cluster_id for cluster in running_clusters({}))
    if cluster_id is not None:
        raise ClusterNotFoundError(
            f"No cluster {cluster_id!r} is running on this machine.",
            hint=f"Running clusters: {others}."
            if others
            else f"Start it with firesteel cluster start --id {cluster_id}.",
        )
    raise ClusterNotFoundError(
        "No cluster is running on this machine.",
        hint="Start one with firesteel cluster start, or specify a JobManager with -m HOST:PORT.",
    )


def find_cluster(
    settings: Mapping[str, str], job_manager: str | None = None, cluster_id: str | None = None
) -> ClusterAddress | None:
    """The cluster to connect to, if there is one.

    That is the one of ``job_manager``, one or more addresses; else that of the environment variable
    FIRESTEEL_JOBMANAGER; else that of rest.address and rest.port, if one of them is set; else the one that runs on this
    machine, with ``cluster_id`` if that is given.
    """
    if cluster_id is not None:
        settings = {**settings, cluster_options.CLUSTER_ID.key: cluster_id}
    configuration = Configuration.from_dict(settings)
    given = job_manager or os.environ.get(JOB_MANAGER_VARIABLE)
    if given is None and {cluster_options.REST_ADDRESS.key, cluster_options.REST_PORT.key} & set(settings):
        given = f"{configuration.get(cluster_options.REST_ADDRESS)}:{configuration.get(cluster_options.REST_PORT)}"
    named_file = configuration.get(cluster_options.REST_TOKEN_FILE) or os.environ.get(TOKEN_FILE_VARIABLE)
    if given is not None:
        urls = tuple(_url(text.strip(), configuration) for text in given.split(","))
        return ClusterAddress(urls, configuration, named_file or _token_of_this_machine(urls, settings))
    local = find_local_cluster(settings)
    if local is None:
        return None
    entries = local.job_managers()
    if not entries:
        return None  # it has gone meanwhile
    urls = tuple(entry.url for entry in entries)
    return ClusterAddress(urls, configuration, named_file or entries[0].token_file, local)


def _url(given: str, configuration: Configuration) -> str:
    scheme = "https" if configuration.get(cluster_options.SSL_REST_ENABLED) else "http"
    url = given if "://" in given else f"{scheme}://{given}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{given!r} is not a valid JobManager address: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"{given!r} is not a valid JobManager address.",
            hint="Use HOST:PORT, http://HOST:PORT or https://HOST:PORT.",
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if port is None and "://" not in given:
        port = configuration.get(cluster_options.REST_PORT)
    path = parts.path.rstrip("/") or _prefix(configuration)
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}"


def _prefix(configuration: Configuration) -> str:
    path = (configuration.get(cluster_options.REST_PATH) or "").strip("/")
    return f"/{path}" if path else ""


def _token_of_this_machine(urls: Sequence[str], settings: Mapping[str, str]) -> str | None:
    """The token of the cluster at an address, if it is one of this machine."""
    wanted = {_place(url) for url in urls}
    for cluster in running_clusters(settings):
        for entry in cluster.job_managers():
            if _place(entry.url) in wanted:
                return entry.token_file
    return None


def _place(url: str) -> tuple[str | None, int | None]:
    parts = urlsplit(url)
    host = "localhost" if parts.hostname in ("127.0.0.1", "::1") else parts.hostname
    return host, parts.port
