"""A few endpoints with handlers, a server that has them, and HTTP by hand."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.cluster.rest.server import RestServer
from firesteel.common import Configuration
from firesteel.common.errors import FiresteelError
from firesteel.rest.client import RestClient
from firesteel.rest.endpoint import Access, Endpoint, Parameter, Text

TOKEN = "a-token-that-only-this-cluster-knows"
JOB = "0123456789abcdef0123456789abcdef"


class Note(msgspec.Struct):
    text: str
    times: int = 1
    target_directory: str | None = msgspec.field(default=None, name="target-directory")


class Seen(msgspec.Struct):
    path: dict[str, str] = {}
    query: dict[str, Any] = {}
    note: Note | None = None
    files: dict[str, str] = {}
    base_url: str = ""


READ: Endpoint[None, Seen] = Endpoint(
    "GET",
    "/jobs/:jobid/vertices/:vertexid/subtasks/:subtaskindex",
    "Reads.",
    Seen,
    query=(
        Parameter("get", "Names.", is_list=True),
        Parameter("limit", "How many.", type=int, default=10),
        Parameter("all", "Whether all.", type=bool, default=False),
    ),
)
OVERVIEW: Endpoint[None, dict[str, int]] = Endpoint(
    "GET", "/jobs/overview", "Counts how often it was asked.", dict[str, int]
)
ANY_JOB: Endpoint[None, Seen] = Endpoint("GET", "/jobs/:jobid", "A job.", Seen)
CHANGE: Endpoint[Note, Seen] = Endpoint("POST", "/jobs/:jobid/notes", "Changes.", Seen, request=Note, status=202)
CANCEL: Endpoint[None, Seen] = Endpoint("PATCH", "/jobs/:jobid", "Changes, without a body.", Seen, status=202)
CANCEL_BY_LINK: Endpoint[None, Seen] = Endpoint(
    "GET", "/jobs/:jobid/yarn-cancel", "A GET that changes.", Seen, status=202, access=Access.CHANGE
)
SUBMIT: Endpoint[Note, Seen] = Endpoint(
    "POST", "/submit", "Takes code.", Seen, request=Note, is_upload=True, access=Access.CODE
)
PICKLED: Endpoint[bytes, bytes] = Endpoint(
    "PUT", "/pickled", "Bytes, both ways.", bytes, request=bytes, access=Access.CODE
)
LOG: Endpoint[None, Text] = Endpoint("GET", "/log", "Text.", Text)
SLOW: Endpoint[None, Seen] = Endpoint("GET", "/slow/:name", "Runs in a thread.", Seen)
FAILING: Endpoint[None, Seen] = Endpoint(
    "GET", "/failing/:how", "Fails.", Seen, errors={404: "Always.", 409: "Sometimes."}
)

ENDPOINTS = (READ, OVERVIEW, ANY_JOB, CHANGE, CANCEL, CANCEL_BY_LINK, SUBMIT, PICKLED, LOG, SLOW, FAILING)


class Handlers:
    """Answers; remembers what reached it."""

    def __init__(self) -> None:
        self.seen: list[RestRequest[Any]] = []
        self.asked = 0
        self.release = threading.Event()

    def echo(self, request: RestRequest[Any]) -> Seen:
        self.seen.append(request)
        files = {name: f"{upload.filename}: {len(upload.content)}" for name, upload in request.uploads.items()}
        body = request.body if isinstance(request.body, Note) else None
        return Seen(dict(request.path), dict(request.query), body, files, request.base_url)

    def count(self, request: RestRequest[Any]) -> dict[str, int]:
        self.asked += 1
        return {"asked": self.asked}

    def unpickle(self, request: RestRequest[bytes]) -> bytes:
        import pickle

        pickle.loads(request.body)
        return request.body

    def wait(self, request: RestRequest[Any]) -> Seen:
        self.seen.append(request)
        if request.path["name"] == "wait":
            assert self.release.wait(120)
        return Seen(dict(request.path))

    def fail(self, request: RestRequest[Any]) -> Seen:
        how = request.path["how"]
        if how == "conflict":
            raise RestError(409, "It has ended.", hint="Start it again.")
        if how == "user":
            raise FiresteelError("That cannot be.", hint="Try something else.")
        if how == "us":
            raise KeyError("nobody expected this")
        raise RestError(404, f"Nothing is named {how}.")

    def routes(self) -> list[Route]:
        return [
            Route(READ, self.echo),
            Route(OVERVIEW, self.count, cache_ms=3_600_000),
            Route(ANY_JOB, self.echo),
            Route(CHANGE, self.echo),
            Route(CANCEL, self.echo),
            Route(CANCEL_BY_LINK, self.echo),
            Route(SUBMIT, self.echo),
            Route(PICKLED, self.unpickle),
            Route(LOG, lambda request: "line ü\n"),
            Route(SLOW, self.wait, blocking=True),
            Route(FAILING, self.fail),
        ]


@contextlib.contextmanager
def serving(routes: Sequence[Route], settings: Mapping[str, str] | None = None, **options: Any) -> Iterator[RestServer]:
    """A server on a free port."""
    configuration = Configuration.from_dict({"rest.bind-port": "0", **(settings or {})})
    server = RestServer(routes, configuration, token=TOKEN, **options)
    server.start()
    try:
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def client_of(server: RestServer, token: str | None = None, **options: Any) -> Iterator[RestClient]:
    """A client of a server."""
    with RestClient(server.url, token=token, **options) as client:
        yield client


class Answer:
    """An answer to a request by hand."""

    def __init__(self, response: http.client.HTTPResponse):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def errors(self) -> list[str]:
        answer = self.json
        assert list(answer) == ["errors"]
        return list(answer["errors"])


def ask(
    server: RestServer,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request on a connection of its own; a Host given replaces the right one."""
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        given = {"Host": f"localhost:{server.address[1]}", **(headers or {})}
        if body is not None and "Transfer-Encoding" not in given:
            given.setdefault("Content-Length", str(len(body)))
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def connect(server: RestServer) -> socket.socket:
    """A bare connection."""
    return socket.create_connection(server.address, timeout=60)


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def form(*parts: tuple[str, str | None, bytes], boundary: str = "xyz") -> tuple[bytes, dict[str, str]]:
    """A multipart body: names, file names if they are files, contents."""
    body = b""
    for name, filename, content in parts:
        where = f'name="{name}"' + ("" if filename is None else f'; filename="{filename}"')
        body += f"--{boundary}\r\nContent-Disposition: form-data; {where}\r\n\r\n".encode() + content + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}
