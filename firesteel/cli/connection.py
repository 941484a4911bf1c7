"""Finding the cluster that a command is meant for, and talking to it."""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from firesteel.cli.errors import ClusterNotFoundError, CommandError
from firesteel.cli.local_clusters import LocalCluster, find_local_cluster, running_clusters
from firesteel.cli.settings import settings_of
from firesteel.common.errors import FiresteelError
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration
from firesteel.rest.client import ConnectionFailedError, RestClient, RestClientError
from firesteel.rest.endpoint import Endpoint
from firesteel.rest.token import read_token

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "JOB_MANAGER_VARIABLE",
    "TOKEN_FILE_VARIABLE",
    "ClusterAddress",
    "ClusterClient",
    "cluster_settings",
    "connect",
    "find_cluster",
    "on_cluster",
]

ResponseT = TypeVar("ResponseT")

JOB_MANAGER_VARIABLE = "FIRESTEEL_JOBMANAGER"
TOKEN_FILE_VARIABLE = "FIRESTEEL_REST_TOKEN_FILE"  # noqa: S105 - the name of a variable
_RETRY_S = 0.2


@dataclass(frozen=True)
class ClusterAddress:
    """Where the JobManagers of a cluster are reached, and what they take."""

    urls: tuple[str, ...]
    configuration: Configuration = field(repr=False)
    token_file: str | None = None
    local: LocalCluster | None = None
    """The cluster's directory, if it is one of this machine."""

    def client(self, timeout: float = 60.0) -> ClusterClient:
        """A client of the cluster."""
        return ClusterClient(self, timeout)

    def current_urls(self) -> tuple[str, ...]:
        """Where the JobManagers are now: those of this machine may have changed."""
        entries = () if self.local is None else self.local.job_managers()
        return tuple(entry.url for entry in entries) or self.urls

    def rest_client(self, url: str, timeout: float) -> RestClient:
        """A client of one JobManager."""
        configuration = Configuration(self.configuration)
        if url.startswith("https:"):
            configuration.set(cluster_options.SSL_REST_ENABLED, True)
        token = None if self.token_file is None else read_token(self.token_file)
        return RestClient(url, token=token, configuration=configuration, timeout=timeout)


class ClusterClient:
    """Calls the REST API of a cluster, whichever of its JobManagers leads; can be used by several threads."""

    def __init__(self, address: ClusterAddress, timeout: float = 60.0):
        self.address = address
        self._timeout = timeout
        self._client = address.rest_client(address.urls[0], timeout)

    @property
    def url(self) -> str:
        """The JobManager that was reached last."""
        return self._client.url

    @property
    def leader_url(self) -> str:
        """The JobManager that leads."""
        return self._client.leader_url

    def call(
        self,
        endpoint: Endpoint[Any, ResponseT],
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        uploads: Mapping[str, tuple[str, bytes]] | None = None,
        *,
        timeout: float | None = None,
        patience: float = 0.0,
    ) -> ResponseT:
        """Calls an endpoint and returns its decoded answer; see RestClient.

        A cluster whose JobManagers do not answer, or have no leader, is asked again for ``patience`` seconds. What
        changes something is asked for once only.
        """
        if endpoint.method != "GET":
            return self._client.call(endpoint, path, query, body, uploads, timeout=timeout)
        deadline = time.monotonic() + patience
        while True:
            failure: FiresteelError | None = None
            for client in self._candidates():
                try:
                    answer = client.call(endpoint, path, query, body, timeout=timeout)
                except ConnectionFailedError as error:
                    failure = failure or error
                except RestClientError as error:
                    if error.status != 503:
                        raise
                    failure = failure or error
                else:
                    self._client = client
                    return answer
                client.close()
            assert failure is not None
            if time.monotonic() >= deadline:
                raise failure
            time.sleep(_RETRY_S)

    def _candidates(self) -> Iterator[RestClient]:
        """The JobManager that answered last, then the others."""
        tried = self._client.url
        yield self._client
        for url in self.address.current_urls():
            if url != tried:
                yield self.address.rest_client(url, self._timeout)

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


Command = Callable[[argparse.Namespace], int]


def on_cluster(command: Callable[[argparse.Namespace, ClusterClient], int]) -> Command:
    """Gives a command the client of the cluster that it is meant for."""

    @functools.wraps(command)
    def run(options: argparse.Namespace) -> int:
        with connect(options).client() as client:
            return command(options, client)

    return run


def connect(options: argparse.Namespace) -> ClusterAddress:
    """The cluster that a command is meant for; ClusterNotFoundError if there is none."""
    found = find_cluster(options)
    if found is not None:
        return found
    others = ", ".join(cluster.cluster_id for cluster in running_clusters({}))
    if options.cluster_id is not None:
        raise ClusterNotFoundError(
            f"No cluster {options.cluster_id!r} runs on this machine.",
            hint=f"Those that do: {others}."
            if others
            else f"Start it with firesteel cluster start --id {options.cluster_id}.",
        )
    raise ClusterNotFoundError(
        "No cluster runs on this machine.",
        hint="Start one with firesteel cluster start, or name the JobManager of another: -m HOST:PORT.",
    )


def find_cluster(options: argparse.Namespace) -> ClusterAddress | None:
    """The cluster that a command is meant for, if there is one.

    That is the one of ``-m``; else that of the environment variable FIRESTEEL_JOBMANAGER; else that of rest.address and
    rest.port, if one of them is set; else the one that runs on this machine.
    """
    settings = cluster_settings(options)
    configuration = Configuration.from_dict(settings)
    given = options.jobmanager or os.environ.get(JOB_MANAGER_VARIABLE)
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


def cluster_settings(options: argparse.Namespace) -> dict[str, str]:
    """What a command's options say of the cluster it is meant for."""
    settings = settings_of(options)
    if options.cluster_id is not None:
        settings[cluster_options.CLUSTER_ID.key] = options.cluster_id
    if getattr(options, "cluster_directory", None) is not None:
        settings[cluster_options.CLUSTER_DIRECTORY.key] = options.cluster_directory
    return settings


def _url(given: str, configuration: Configuration) -> str:
    scheme = "https" if configuration.get(cluster_options.SSL_REST_ENABLED) else "http"
    url = given if "://" in given else f"{scheme}://{given}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise CommandError(f"{given!r} is no address of a JobManager: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandError(
            f"{given!r} is no address of a JobManager.", hint="Write HOST:PORT, http://HOST:PORT or https://HOST:PORT."
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
