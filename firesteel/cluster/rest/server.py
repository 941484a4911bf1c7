"""The REST server: binds the port, and serves it in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from firesteel.cluster.rest.application import RestApplication
from firesteel.cluster.rest.authentication import AccessControl
from firesteel.cluster.rest.connection import HttpConnection
from firesteel.cluster.rest.request import Route
from firesteel.cluster.rest.standby import StandbyRoutes
from firesteel.cluster.rest.static_files import StaticFiles
from firesteel.cluster.rest.tls import server_context
from firesteel.common.errors import FiresteelError
from firesteel.config.cluster_options import (
    REST_ADDRESS,
    REST_AUTHENTICATE_READS,
    REST_BIND_ADDRESS,
    REST_BIND_PORT,
    REST_MAX_CONTENT_LENGTH,
    REST_PATH,
    REST_PORT,
    SSL_REST_AUTHENTICATION,
    WEB_ALLOW_ORIGIN,
)
from firesteel.config.configuration import Configuration
from firesteel.config.option import InvalidConfigurationError
from firesteel.rest.openapi import OPENAPI, openapi_document

__all__ = ["RestBindError", "RestServer", "StandbyRoutes"]

WEB_DIRECTORY = Path(__file__).parents[1] / "web"
START_TIMEOUT_S = 30.0
KEEP_ALIVE_S = 30
MAX_CONNECTIONS = 800
"""Below the number of files a process may open by default."""


class RestBindError(FiresteelError):
    """The address or port cannot be listened on."""


class RestServer:
    """Serves routes over HTTP; :meth:`start` returns once requests are answered, :meth:`close` once nothing is left.

    ``token`` is required for requests that are not open to all. A standby passes StandbyRoutes, and replaces them
    when it leads.
    """

    def __init__(
        self,
        routes: Sequence[Route] | StandbyRoutes,
        configuration: Configuration,
        *,
        token: str,
        static_directory: str | Path | None = WEB_DIRECTORY,
    ):
        self._routes = routes
        self._configuration = configuration
        self._token = token
        self._static_files = None if static_directory is None else StaticFiles(static_directory)
        self._tls = server_context(configuration)
        self._application: RestApplication | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._address: tuple[str, int] | None = None
        self._started = threading.Event()

    @property
    def address(self) -> tuple[str, int]:
        """The address and the port that are listened on."""
        if self._address is None:
            raise RuntimeError("The REST server has not been started")
        return self._address

    @property
    def public_address(self) -> str:
        """Where clients find it, as ``host:port``: ``rest.address``, and the port that is listened on."""
        host = self._configuration.get(REST_ADDRESS)
        return f"[{host}]:{self.address[1]}" if ":" in host else f"{host}:{self.address[1]}"

    @property
    def url(self) -> str:
        """Where clients find it, as a URL without a slash at its end."""
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{self.public_address}"

    def start(self) -> None:
        """Binds the port and answers requests; raises RestBindError if no port can be had."""
        listening = _bind(self._configuration)
        try:
            host, port = listening.getsockname()[:2]
            self._address = (host, port)
            self._application = self._make_application(host)
            config = uvicorn.Config(
                self._application,
                loop="asyncio",
                http=HttpConnection,
                ws="none",
                interface="asgi3",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                limit_concurrency=MAX_CONNECTIONS,
            )
            config.load()
            config.ssl = self._tls
            self._server = uvicorn.Server(config)
        except BaseException:
            listening.close()
            raise
        self._thread = threading.Thread(
            target=self._run, args=(self._server, listening), name=f"firesteel-rest-{port}", daemon=True
        )
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            raise FiresteelError(f"The REST server did not start within {START_TIMEOUT_S:.0f} s.")

    def serve_standby(self, standby: StandbyRoutes) -> None:
        """Redirects all requests to the leader from now on."""
        self.replace_routes(standby)

    def replace_routes(self, routes: Sequence[Route] | StandbyRoutes) -> None:
        """Answers with other routes from now on."""
        self._routes = routes
        if self._application is not None:
            self._application.replace_routes(_with_description(routes))

    def close(self, timeout: float = 5.0) -> None:
        """Stops listening, lets requests that are being answered end, and closes all connections."""
        server, thread, application = self._server, self._thread, self._application
        if server is None or thread is None or application is None:
            return
        server.config.timeout_graceful_shutdown = timeout  # type: ignore[assignment]
        server.should_exit = True
        thread.join(timeout + 5.0)
        application.close(timeout)
        self._server = self._thread = None

    def _make_application(self, bound_host: str) -> RestApplication:
        configuration = self._configuration
        access_control = AccessControl(
            self._token,
            bound_host=bound_host,
            public_host=configuration.get(REST_ADDRESS),
            has_client_certificates=configuration.get(SSL_REST_AUTHENTICATION),
            authenticates_reads=configuration.get(REST_AUTHENTICATE_READS),
        )
        return RestApplication(
            _with_description(self._routes),
            access_control,
            max_content_length=configuration.get(REST_MAX_CONTENT_LENGTH).bytes,
            own_addresses=(self.public_address, f"{bound_host}:{self.address[1]}"),
            prefix=configuration.get(REST_PATH),
            static_files=self._static_files,
            allowed_origin=configuration.get(WEB_ALLOW_ORIGIN),
        )

    def _run(self, server: uvicorn.Server, listening: socket.socket) -> None:
        with contextlib.closing(listening):
            asyncio.run(self._serve(server, listening))

    async def _serve(self, server: uvicorn.Server, listening: socket.socket) -> None:
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.001)
        self._started.set()
        try:
            await serving
        finally:
            # requests that have not ended in time get an error
            if server.server_state.tasks:
                await asyncio.wait(list(server.server_state.tasks), timeout=1.0)
            for connection in list(server.server_state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)
            await asyncio.sleep(0)


def _with_description(routes: Sequence[Route] | StandbyRoutes) -> Sequence[Route] | StandbyRoutes:
    """The routes, and one more that describes them."""
    if isinstance(routes, StandbyRoutes):
        return routes
    endpoints = [*(route.endpoint for route in routes), OPENAPI]
    document = openapi_document(endpoints)
    return [*routes, Route(OPENAPI, lambda _: document, cache_ms=3_600_000)]


def _bind(configuration: Configuration) -> socket.socket:
    """A socket that listens on the first port that is free, of those that may be taken."""
    name = configuration.get(REST_BIND_ADDRESS)
    family, host = _resolve(name)
    wanted = configuration.get(REST_BIND_PORT) or str(configuration.get(REST_PORT))
    for port in _ports(wanted):
        # with an explicit protocol, asyncio turns off waiting for more to send, which costs each answer 40 ms
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, port))
            # at once: of two that have bound the same port, only one can listen
            listening.listen(1024)
        except OSError as error:
            listening.close()
            if error.errno == errno.EADDRINUSE:
                continue
            raise RestBindError(
                f"Cannot listen on {name}:{port}: {error.strerror}.",
                hint="rest.bind-address must be an address of this machine, rest.bind-port one that you may use.",
            ) from None
        else:
            return listening
    raise RestBindError(
        f"Port {wanted} of {name} is taken." if wanted.isdigit() else f"Ports {wanted} of {name} are all taken.",
        hint="Another cluster may be running. Set rest.bind-port (--port) to another port, to several such as "
        "8081-8090, or to 0 for any that is free.",
    )


def _resolve(name: str) -> tuple[socket.AddressFamily, str]:
    try:
        found = socket.getaddrinfo(name or "0.0.0.0", None, type=socket.SOCK_STREAM)  # noqa: S104 - if configured
    except (OSError, UnicodeError) as error:
        raise RestBindError(
            f"Cannot listen on {name!r}: {error}.", hint="rest.bind-address must be a name or address of this machine."
        ) from None
    # most clients try IPv4 first, or only
    family, _, _, _, sockaddr = min(found, key=lambda info: info[0] != socket.AF_INET)
    host = str(sockaddr[0])
    ipaddress.ip_address(host.partition("%")[0])
    return family, host


def _ports(text: str) -> list[int]:
    """The ports of ``8081``, ``8081-8090`` or ``8081,9000-9010``, in that order."""
    ports: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            some = range(int(first), int(last if dash else first) + 1)
            if not some or some[0] < 0 or some[-1] > 65535:
                raise ValueError(part)
            ports.extend(some)
    except ValueError:
        raise InvalidConfigurationError(
            REST_BIND_PORT.key, text, "not a port from 0 to 65535, or a range such as 8081-8090", "string"
        ) from None
    return ports
