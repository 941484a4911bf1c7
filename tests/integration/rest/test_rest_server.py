from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from firesteel.cluster.rest.request import Route
from firesteel.cluster.rest.server import RestBindError, RestServer
from firesteel.cluster.rest.standby import StandbyRoutes
from firesteel.common import Configuration
from firesteel.common.errors import FiresteelError
from firesteel.config.option import InvalidConfigurationError
from firesteel.rest.endpoint import Endpoint
from firesteel.testing import eventually
from tests.support.rest.samples import JOB, SLOW, Handlers, ask, client_of, connect, serving

VERTEX = "f" * 32
SUBTASK = f"/jobs/{JOB}/vertices/{VERTEX}/subtasks/3"


@pytest.fixture(scope="module")
def handlers() -> Handlers:
    return Handlers()


@pytest.fixture(scope="module")
def server(handlers: Handlers) -> Iterator[RestServer]:
    with serving(handlers.routes()) as a_server:
        yield a_server


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_an_answer_is_what_the_handler_returns(server: RestServer, prefix: str) -> None:
    answer = ask(server, "GET", f"{prefix}{SUBTASK}?get=a,b&get=c&limit=5&all=true&unknown=1")
    assert answer.status == 200
    assert answer.json["path"] == {"jobid": JOB, "vertexid": VERTEX, "subtaskindex": "3"}
    assert answer.json["query"] == {"get": ["a", "b", "c"], "limit": 5, "all": True}
    assert answer.headers["content-type"] == "application/json; charset=UTF-8"
    assert "access-control-allow-origin" not in answer.headers


def test_parameters_that_are_not_given_have_their_defaults(server: RestServer) -> None:
    assert ask(server, "GET", SUBTASK).json["query"] == {"get": [], "limit": 10, "all": False}


@pytest.mark.parametrize("query", ["limit=many", "limit=1.5", "all=perhaps", "limit=1&limit=2"])
def test_a_parameter_of_the_wrong_type_is_refused(server: RestServer, query: str) -> None:
    answer = ask(server, "GET", f"{SUBTASK}?{query}")
    assert answer.status == 400
    assert "Cannot resolve query parameter" in answer.errors[0]


def test_a_body_is_decoded_and_its_status_is_the_declared_one(server: RestServer) -> None:
    answer = ask(server, "POST", f"/jobs/{JOB}/notes", b'{"text":"hi","target-directory":"/x","more":[1]}')
    assert answer.status == 202
    assert answer.json["note"] == {"text": "hi", "times": 1, "target-directory": "/x"}
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "missing required field `text`"),
        (b"{}", "missing required field `text`"),
        (b'{"text":', "not JSON"),
        (b'{"text":1}', "Expected `str`, got `int`"),
        (b"[]", "Expected `object`"),
        (b'{"text":"\xff"}', "not JSON"),
        (b'{"text":"x","more":' + b"[" * 100_000, "not JSON"),
    ],
    ids=["none", "empty", "cut", "type", "array", "encoding", "deep"],
)
def test_a_body_that_does_not_fit_is_refused(server: RestServer, body: bytes, says: str) -> None:
    answer = ask(server, "POST", f"/jobs/{JOB}/notes", body)
    assert answer.status == 400
    assert says in answer.errors[0]


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_body_nobody_asked_for_is_dropped(server: RestServer, method: str) -> None:
    # as Flink's command-line client sends it
    headers = {"Content-Type": "application/json; charset=UTF-8", "Connection": "close"}
    answer = ask(server, method, f"/jobs/{JOB}", b"{}", headers)
    assert answer.status == (200 if method == "GET" else 202)


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/nothing/here", 404, "Not found: /nothing/here"),
        ("/jobs/xyz", 400, 'Cannot resolve path parameter (jobid) from value "xyz"'),
        ("/failing/gone", 404, "Nothing is named gone."),
        ("/failing/conflict", 409, "It has ended.\nHint: Start it again."),
        ("/failing/user", 400, "That cannot be.\nHint: Try something else."),
    ],
)
def test_errors(server: RestServer, path: str, status: int, says: str) -> None:
    answer = ask(server, "GET", path)
    assert answer.status == status
    assert len(answer.errors) == 1
    assert says in answer.errors[0]


def test_what_nobody_expected_is_an_internal_error_with_its_traceback(
    server: RestServer, caplog: pytest.LogCaptureFixture
) -> None:
    answer = ask(server, "GET", "/failing/us")
    assert answer.status == 500
    assert answer.errors[0] == "Internal server error."
    assert "nobody expected this" in answer.errors[1]
    assert "The request GET /failing/us failed" in caplog.text


def test_a_method_that_is_not_allowed(server: RestServer) -> None:
    answer = ask(server, "DELETE", f"/jobs/{JOB}")
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS, PATCH"
    assert f"Method DELETE is not allowed for /jobs/{JOB}" in answer.errors[0]


def test_head_and_options(server: RestServer) -> None:
    head = ask(server, "HEAD", f"/jobs/{JOB}")
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["content-length"]) > 0
    options = ask(server, "OPTIONS", f"/jobs/{JOB}")
    assert (options.status, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS, PATCH")
    assert ask(server, "OPTIONS", "/nothing").status == 404


def test_text_is_sent_as_text(server: RestServer) -> None:
    answer = ask(server, "GET", "/log")
    assert answer.body.decode() == "line ü\n"
    assert answer.headers["content-type"] == "text/plain; charset=UTF-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_answer_is_reused_as_long_as_it_may_be(server: RestServer, handlers: Handlers) -> None:
    first = ask(server, "GET", "/jobs/overview").json
    assert ask(server, "GET", "/jobs/overview").json == first
    # another query is another question
    assert ask(server, "GET", "/jobs/overview?x=1").json != first


def test_requests_on_one_connection_one_after_the_other_and_all_at_once(server: RestServer) -> None:
    request = b"GET /jobs/overview HTTP/1.1\r\nHost: localhost\r\n\r\n"
    other = b"GET /log HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connect(server) as connection, connection.makefile("rb") as answers:
        connection.sendall(request * 3 + other + request)
        seen = []
        for _ in range(5):
            status = answers.readline()
            length = 0
            while (line := answers.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            seen.append((status.split()[1], answers.read(length)))
    assert [status for status, _ in seen] == [b"200"] * 5
    assert seen[0] == seen[1] == seen[2] == seen[4]
    assert seen[3][1].decode() == "line ü\n"


def test_the_url_a_client_used_is_told(server: RestServer) -> None:
    host = f"127.0.0.1:{server.address[1]}"
    assert ask(server, "GET", f"/jobs/{JOB}", headers={"Host": host}).json["base_url"] == f"http://{host}"


def test_what_a_client_calls_the_server_is_not_where_it_is(server: RestServer, handlers: Handlers) -> None:
    """A program that is run here sends the token: not to whoever listens on the port that a header names."""
    assert ask(server, "GET", f"/jobs/{JOB}", headers={"Host": "localhost:1"}).json["base_url"] == "http://localhost:1"
    assert handlers.seen[-1].own_url == f"http://127.0.0.1:{server.address[1]}"


@pytest.mark.parametrize("path", ["/web/log", "/web/v1/log", "/log"])
def test_a_prefix(path: str) -> None:
    with serving(Handlers().routes(), {"rest.path": "/web"}) as server:
        assert ask(server, "GET", path).status == 200


def test_a_blocking_handler_does_not_keep_others_waiting() -> None:
    handlers = Handlers()
    with serving(handlers.routes()) as server, client_of(server) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.call, SLOW, {"name": "wait"})
        eventually(lambda: len(handlers.seen) == 1)
        assert ask(server, "GET", "/slow/at-once").status == 200
        handlers.release.set()
        assert waiting.result(60).path == {"name": "wait"}


def test_closing_lets_requests_end() -> None:
    handlers = Handlers()
    with ThreadPoolExecutor(1) as pool:
        with serving(handlers.routes()) as server, client_of(server) as client:
            waiting = pool.submit(client.call, SLOW, {"name": "wait"})
            eventually(lambda: len(handlers.seen) == 1)
            threading.Timer(0.2, handlers.release.set).start()
            server.close(60)
            assert waiting.result(60).path == {"name": "wait"}


def test_closing_does_not_wait_for_ever() -> None:
    handlers = Handlers()
    server = RestServer(handlers.routes(), Configuration.from_dict({"rest.bind-port": "0"}), token="t" * 16)
    server.start()
    with connect(server) as idle, connect(server) as waiting, connect(server) as half:
        half.sendall(f"POST /jobs/{JOB}/notes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n".encode())
        assert ask(server, "GET", "/log").status == 200  # by now it has read what came before
        waiting.sendall(b"GET /slow/wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
        eventually(lambda: len(handlers.seen) == 1)
        try:
            server.close(0.2)
            assert idle.recv(1) == b""
            for client in (waiting, half):
                assert b" 503 " in client.recv(1000)
        finally:
            handlers.release.set()


def test_closing_twice_and_without_a_start() -> None:
    server = RestServer([], Configuration.from_dict({"rest.bind-port": "0"}), token="t" * 16)
    server.close()
    server.start()
    server.close()
    server.close()


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        server = RestServer([], Configuration.from_dict({"rest.bind-port": port}), token="t" * 16)
        with pytest.raises(RestBindError) as caught:
            server.start()
    assert caught.value.message == f"Port {port} of localhost is taken."
    assert caught.value.hint is not None
    assert "rest.bind-port" in caught.value.hint


def test_the_first_free_port_of_a_range() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serving([], {"rest.bind-port": f"{port}-{min(port + 50, 65535)}"}) as server:
            assert port < server.address[1] <= port + 50


@pytest.mark.parametrize("ports", ["x", "1-", "8090-8081", "70000", "-1", "40000,,40001"])
def test_ports_that_are_none(ports: str) -> None:
    server = RestServer([], Configuration.from_dict({"rest.bind-port": ports}), token="t" * 16)
    with pytest.raises(InvalidConfigurationError):
        server.start()


@pytest.mark.parametrize("address", ["no.such.host.invalid", "192.0.2.1"])
def test_an_address_that_is_not_ours(address: str) -> None:
    settings = {"rest.bind-port": "0", "rest.bind-address": address}
    with pytest.raises(RestBindError) as caught:
        RestServer([], Configuration.from_dict(settings), token="t" * 16).start()
    assert address in caught.value.message


def test_a_standby_sends_everybody_to_the_leader_until_it_leads() -> None:
    leader: list[str | None] = [None]
    handlers = Handlers()
    with serving([]) as server:
        server.serve_standby(StandbyRoutes(lambda: leader[0]))
        for method in ("GET", "POST"):
            answer = ask(server, method, "/jobs/overview")
            assert answer.status == 503
            assert "there is no leader" in answer.errors[0]
        leader[0] = "other:8081"
        answer = ask(server, "GET", "/v1/jobs/overview?x=%20y")
        assert (answer.status, answer.headers["location"]) == (307, "http://other:8081/v1/jobs/overview?x=%20y")
        answer = ask(server, "POST", f"/jobs/{JOB}/notes", b"{}")
        assert (answer.status, answer.headers["x-firesteel-leader"]) == (503, "other:8081")
        assert "standby; the leader is at other:8081" in answer.errors[0]
        leader[0] = server.public_address
        assert "there is no leader" in ask(server, "GET", "/").errors[0]
        server.replace_routes(handlers.routes())
        assert ask(server, "GET", "/log").status == 200


def test_routes_may_be_a_standbys_from_the_beginning() -> None:
    configuration = Configuration.from_dict({"rest.bind-port": "0"})
    server = RestServer(StandbyRoutes(lambda: "other:1"), configuration, token="t" * 16)
    server.start()
    try:
        assert ask(server, "GET", "/").status == 307
    finally:
        server.close()


def test_a_standby_that_cannot_find_the_leader_says_why() -> None:
    def unknown() -> str | None:
        raise FiresteelError("ZooKeeper cannot be reached.")

    with serving([]) as server:
        server.serve_standby(StandbyRoutes(unknown))
        answer = ask(server, "GET", "/")
    assert (answer.status, answer.errors) == (503, ["ZooKeeper cannot be reached."])


def test_an_answer_that_does_not_fit_its_declaration_fails_the_request_alone() -> None:
    endpoint = Endpoint("GET", "/x", "", dict)
    with serving([Route(endpoint, lambda request: object())]) as server:
        answer = ask(server, "GET", "/x")
        assert answer.status == 500
        assert ask(server, "GET", "/openapi.json").status == 200


def test_the_description_is_served(server: RestServer) -> None:
    document = msgspec.json.decode(ask(server, "GET", "/openapi.json").body)
    assert "/jobs/{jobid}" in document["paths"]
