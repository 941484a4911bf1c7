"""REST client, generated from the endpoint declarations; also works with Flink's JobManager."""

from __future__ import annotations

import http.client
import secrets
import ssl
import time
from collections.abc import Mapping
from threading import Lock
from types import TracebackType
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from firesteel.common.errors import FiresteelError
from firesteel.config.cluster_options import SSL_REST_CA, SSL_REST_CERTIFICATE, SSL_REST_ENABLED, SSL_REST_KEY
from firesteel.config.configuration import Configuration
from firesteel.rest.endpoint import Endpoint, Text

__all__ = ["ConnectionFailedError", "RestClient", "RestClientError", "client_context"]

ResponseT = TypeVar("ResponseT")

LEADER_HEADER = "x-firesteel-leader"
MAX_IDLE_S = 2.0
"""Maximum idle time of a connection that is reused; much shorter than the keep-alive time of servers."""
RETRY_INTERVAL_S = 0.1


class RestClientError(FiresteelError):
    """The JobManager returned an error; ``messages`` are those of the JobManager, ``status`` is the HTTP status."""

    def __init__(self, status: int, messages: list[str], *, hint: str | None = None):
        super().__init__("\n".join(messages), hint=hint)
        self.status = status
        self.messages = messages


class ConnectionFailedError(FiresteelError):
    """No valid response: the connection failed, timed out, or the server is not a JobManager."""


def client_context(configuration: Configuration) -> ssl.SSLContext | None:
    """The TLS context of a client as configured; None for plain HTTP."""
    if not configuration.get(SSL_REST_ENABLED):
        return None
    try:
        context = ssl.create_default_context(cafile=configuration.get(SSL_REST_CA))
        certificate = configuration.get(SSL_REST_CERTIFICATE)
        if certificate:
            context.load_cert_chain(certificate, configuration.get(SSL_REST_KEY))
    except OSError as error:
        # also ssl.SSLError
        raise FiresteelError(
            f"TLS cannot be set up as configured: {error}",
            hint="security.ssl.rest.ca, .certificate and .key are PEM files.",
        ) from None
    return context


class RestClient:
    """A client of one JobManager; can be used by several threads.

    ``url`` is ``http://host:port``, with a path if ``rest.path`` is set. A call fails after ``timeout`` seconds; a
    JobManager that does not listen yet is retried for ``connect_timeout`` seconds. The ``configuration`` has the TLS
    settings.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        configuration: Configuration | None = None,
        timeout: float = 60.0,
        connect_timeout: float = 0.0,
    ):
        tls = None if configuration is None else client_context(configuration)
        parts = urlsplit(url if "://" in url else f"{'http' if tls is None else 'https'}://{url}")
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise FiresteelError(
                f"{url!r} is not a valid JobManager address.",
                hint="Use an address such as http://localhost:8081 or localhost:8081.",
            )
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._scheme = parts.scheme
        self._place = (parts.hostname, port or (443 if parts.scheme == "https" else 80))
        self._prefix = parts.path.rstrip("/")
        self._token = token
        self._configuration = configuration
        self._tls = tls if tls is not None or parts.scheme == "http" else ssl.create_default_context()
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._lock = Lock()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._leader: RestClient | None = None

    def call(
        self,
        endpoint: Endpoint[Any, ResponseT],
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        uploads: Mapping[str, tuple[str, bytes]] | None = None,
        *,
        timeout: float | None = None,
    ) -> ResponseT:
        """Calls an endpoint and returns its decoded response.

        ``uploads`` are files by field name: each a file name and its content. Raises RestClientError if the JobManager
        returns an error, and ConnectionFailedError if there is no response.
        """
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        target = _target(endpoint, path or {}, query or {})
        content, content_type = _content(endpoint, body, uploads or {})
        status, leader, answer = self._exchange(endpoint.method, target, content, content_type, deadline)
        if leader is not None and status in (307, 503):
            client = self._leader_client(leader)
            status, _, answer = client._exchange(endpoint.method, target, content, content_type, deadline)
        return self._decode(endpoint, status, answer)

    @property
    def leader_url(self) -> str:
        """The address of the leader: this JobManager, unless it has redirected a call to another."""
        return self.url if self._leader is None else self._leader.url

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            idle, self._idle = self._idle, []
            leader, self._leader = self._leader, None
        for _, connection in idle:
            connection.close()
        if leader is not None:
            leader.close()

    def __enter__(self) -> RestClient:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- one exchange ---------------------------------------------------------------------------------------------

    def _exchange(
        self, method: str, target: str, content: bytes | None, content_type: str, deadline: float
    ) -> tuple[int, str | None, bytes]:
        """Status, leader and body of the answer."""
        headers = {"Accept": "*/*"}
        if content is not None:
            headers["Content-Type"] = content_type
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = self._connection(deadline)
        is_kept = False
        try:
            _set_timeout(connection, deadline)
            try:
                connection.request(method, self._prefix + target, body=content, headers=headers)
            except (BrokenPipeError, ConnectionResetError):
                # refused before it had all: the reason may be there nevertheless
                pass
            response = connection.getresponse()
            parts = []
            while True:
                _set_timeout(connection, deadline)
                if not (part := response.read1(1 << 20)):
                    break
                parts.append(part)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            is_kept = not response.will_close
            response.close()
        except TimeoutError:
            raise self._failed("did not respond in time") from None
        except ssl.SSLError as error:
            raise self._failed(f"TLS failed: {error}", hint=_TLS_HINT) from None
        except (http.client.HTTPException, OSError) as error:
            raise self._failed(
                f"invalid response ({type(error).__name__}: {error})",
                hint="Check whether the address belongs to another service, or requires TLS (https://…).",
            ) from None
        finally:
            if not is_kept:
                connection.close()
        if is_kept:
            with self._lock:
                self._idle.append((time.monotonic(), connection))
        return response.status, response.headers.get(LEADER_HEADER), b"".join(parts)

    def _connection(self, deadline: float) -> http.client.HTTPConnection:
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < MAX_IDLE_S:
                    return connection
                connection.close()
        host, port = self._place
        end = min(deadline, time.monotonic() + self._connect_timeout)
        while True:
            remaining = max(deadline - time.monotonic(), 0.001)
            connection = (
                http.client.HTTPSConnection(host, port, timeout=remaining, context=self._tls)
                if self._scheme == "https"
                else http.client.HTTPConnection(host, port, timeout=remaining)
            )
            try:
                connection.connect()
            except ConnectionRefusedError:
                if time.monotonic() + RETRY_INTERVAL_S >= end:
                    raise self._failed(
                        "the connection was refused",
                        hint="Check with 'firesteel cluster status' whether the cluster is running.",
                    ) from None
            except TimeoutError:
                raise self._failed("it did not respond in time") from None
            except ssl.SSLError as error:
                raise self._failed(f"TLS failed: {error}", hint=_TLS_HINT) from None
            except OSError as error:
                raise self._failed(str(error)) from None
            else:
                return connection
            time.sleep(RETRY_INTERVAL_S)

    def _failed(self, reason: str, hint: str | None = None) -> ConnectionFailedError:
        return ConnectionFailedError(f"The JobManager at {self.url} cannot be reached: {reason}.", hint=hint)

    def _leader_client(self, leader: str) -> RestClient:
        with self._lock:
            url = f"{self._scheme}://{leader}{self._prefix}"
            if self._leader is None or self._leader.url != url:
                if self._leader is not None:
                    self._leader.close()
                self._leader = RestClient(
                    url, token=self._token, configuration=self._configuration, timeout=self._timeout
                )
            return self._leader

    def _decode(self, endpoint: Endpoint[Any, ResponseT], status: int, answer: bytes) -> ResponseT:
        if not 200 <= status < 300:
            raise self._error(status, answer)
        kind: Any = endpoint.response
        if kind is Text:
            return cast("ResponseT", Text(answer.decode("utf-8", "replace")))
        if kind is bytes:
            return cast("ResponseT", answer)
        try:
            return cast("ResponseT", msgspec.json.decode(answer, type=kind))
        except ValueError as error:
            raise RestClientError(
                status,
                [f"Unexpected response of {self.url} to {endpoint.method} {endpoint.path}: {error}"],
                hint="Check that the address is a JobManager of the same Firesteel version.",
            ) from None

    def _error(self, status: int, answer: bytes) -> RestClientError:
        try:
            messages = msgspec.json.decode(answer, type=dict[str, Any])["errors"]
            return RestClientError(status, [str(message) for message in messages])
        except (ValueError, KeyError, TypeError):
            return RestClientError(
                status,
                [f"{self.url} returned status {status} and is not a JobManager."],
                hint="Check the address of the JobManager.",
            )


_TLS_HINT = (
    "The JobManager's certificate must be issued by security.ssl.rest.ca. If the JobManager requires a client "
    "certificate, set security.ssl.rest.certificate and security.ssl.rest.key."
)


def _set_timeout(connection: http.client.HTTPConnection, deadline: float) -> None:
    if connection.sock is not None:
        connection.sock.settimeout(max(deadline - time.monotonic(), 0.001))


def _target(endpoint: Endpoint[Any, Any], path: Mapping[str, str | int], query: Mapping[str, Any]) -> str:
    """The path and query of a call.

    >>> _target(Endpoint("GET", "/jobs/:jobid/metrics", "", dict), {"jobid": "ab/c"}, {"get": ["x", "y"]})
    '/jobs/ab%2Fc/metrics?get=x,y'
    """
    segments = [
        quote(str(path[part[1:]]), safe="") if part.startswith(":") else part for part in endpoint.path.split("/")
    ]
    given = {name: _text(value) for name, value in query.items() if value is not None}
    return "/".join(segments) + (f"?{urlencode(given, safe=',', quote_via=quote)}" if given else "")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    return str(msgspec.to_builtins(value))


def _content(
    endpoint: Endpoint[Any, Any], body: Any, uploads: Mapping[str, tuple[str, bytes]]
) -> tuple[bytes | None, str]:
    """The body of a call and its type."""
    if endpoint.is_upload:
        return _form(body, uploads)
    if endpoint.request is bytes:
        return body, "application/octet-stream"
    if endpoint.request is None:
        return None if endpoint.method == "GET" else b"", "application/json; charset=UTF-8"
    return b"{}" if body is None else msgspec.json.encode(body), "application/json; charset=UTF-8"


def _form(body: Any, uploads: Mapping[str, tuple[str, bytes]]) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)
    parts = []
    if body is not None:
        parts.append(_part(boundary, "request", None, "application/json", msgspec.json.encode(body)))
    for name, (filename, content) in uploads.items():
        parts.append(_part(boundary, name, filename, "application/octet-stream", content))
    return b"".join([*parts, f"--{boundary}--\r\n".encode()]), f"multipart/form-data; boundary={boundary}"


def _part(boundary: str, name: str, filename: str | None, content_type: str, content: bytes) -> bytes:
    where = f'name="{_quoted(name)}"' + (f'; filename="{_quoted(filename)}"' if filename is not None else "")
    head = f"--{boundary}\r\nContent-Disposition: form-data; {where}\r\nContent-Type: {content_type}\r\n\r\n"
    return head.encode() + content + b"\r\n"


def _quoted(text: str) -> str:
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
