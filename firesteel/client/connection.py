"""The connection to a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from firesteel.client.local_clusters import JobManagerEntry, LocalCluster
from firesteel.common.errors import FiresteelError
from firesteel.config import cluster_options
from firesteel.config.configuration import Configuration
from firesteel.rest.client import ConnectionFailedError, RestClient, RestClientError
from firesteel.rest.endpoint import Endpoint
from firesteel.rest.login import CREATE_LOGIN_CODE
from firesteel.rest.token import read_token

__all__ = ["PATIENCE_S", "ClusterAddress", "ClusterClient"]

ResponseT = TypeVar("ResponseT")

PATIENCE_S = 60.0
"""How long a cluster may fail to respond while a command waits."""
_RETRY_INTERVAL_S = 0.2


@dataclass(frozen=True)
class ClusterAddress:
    """The addresses of the JobManagers of a cluster, with the token and settings to connect."""

    urls: tuple[str, ...]
    configuration: Configuration = field(repr=False)
    token_file: str | None = None
    local: LocalCluster | None = None
    """The cluster's directory, if it is one of this machine."""

    @classmethod
    def of_entry(cls, entry: JobManagerEntry, settings: Mapping[str, str]) -> ClusterAddress:
        """A JobManager of this machine, with the settings that it was started with."""
        configuration = Configuration.from_dict(settings)
        return cls((entry.url,), configuration, configuration.get(cluster_options.REST_TOKEN_FILE) or entry.token_file)

    def client(self, timeout: float = 60.0) -> ClusterClient:
        return ClusterClient(self, timeout)

    def current_urls(self) -> tuple[str, ...]:
        """The current addresses of the JobManagers; those on this machine may have changed."""
        entries = () if self.local is None else self.local.job_managers()
        return tuple(entry.url for entry in entries) or self.urls

    def rest_client(self, url: str, timeout: float) -> RestClient:
        configuration = Configuration(self.configuration)
        if url.startswith("https:"):
            configuration.set(cluster_options.SSL_REST_ENABLED, True)
        token = None if self.token_file is None else read_token(self.token_file)
        return RestClient(url, token=token, configuration=configuration, timeout=timeout)


class ClusterClient(AbstractContextManager["ClusterClient"]):
    """Calls the REST API of the leading JobManager of a cluster; can be used by several threads."""

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
        """Calls an endpoint and returns its decoded response; see RestClient.

        If the JobManagers do not respond, or there is no leader, the call is repeated for ``patience`` seconds.
        Requests that change something are sent only once.
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
            time.sleep(_RETRY_INTERVAL_S)

    def login_link(self) -> str:
        """A link to the web UI that logs a browser in, once.

        The code is in the fragment, which a browser does not send and proxies do not log.
        """
        return f"{self.leader_url.rstrip('/')}/#/login/{self.call(CREATE_LOGIN_CODE).code}"

    def _candidates(self) -> Iterator[RestClient]:
        """The JobManager that responded last, then the others."""
        tried = self._client.url
        yield self._client
        for url in self.address.current_urls():
            if url != tried:
                yield self.address.rest_client(url, self._timeout)

    def close(self) -> None:
        self._client.close()

    def __exit__(self, *_: object) -> None:
        self.close()
