"""What must not be possible from outside: by a stranger, by a web page in somebody's browser, by a hostile client."""

from __future__ import annotations

import os
import pickle
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.cluster.rest import bodies, connection, peers
from firesteel.cluster.rest import server as rest_server
from firesteel.cluster.rest.bodies import safe_filename
from firesteel.cluster.rest.request import RestError
from firesteel.cluster.rest.server import RestServer
from firesteel.testing import eventually
from tests.support.rest.samples import JOB, TOKEN, Handlers, ask, bearer, connect, form, serving

NOTES = f"/jobs/{JOB}/notes"
NOTE = b'{"text":"hi"}'


@pytest.fixture(scope="module")
def handlers() -> Handlers:
    return Handlers()


@pytest.fixture(scope="module")
def server(handlers: Handlers) -> Iterator[RestServer]:
    with serving(handlers.routes(), {"rest.server.max-content-length": "100 kb"}) as a_server:
        yield a_server


@pytest.fixture(scope="module")
def public_server(handlers: Handlers) -> Iterator[RestServer]:
    with serving(handlers.routes(), {"rest.bind-address": "0.0.0.0"}) as a_server:
        yield a_server


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


# ---- code ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [{}, bearer("wrong"), {"Authorization": "Bearer "}, {"Authorization": f"Basic {TOKEN}"}, {"Authorization": TOKEN}],
    ids=["none", "wrong", "empty", "basic", "bare"],
)
def test_pickles_of_strangers_are_never_unpickled(server: RestServer, tmp_path: Path, headers: dict[str, str]) -> None:
    target = tmp_path / "pwned"
    answer = ask(server, "PUT", "/pickled", pickle.dumps(Evil(target)), headers)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "token" in answer.errors[0]
    assert not target.exists()


def test_the_attack_would_work_with_the_token(server: RestServer, tmp_path: Path) -> None:
    target = tmp_path / "pwned"
    assert ask(server, "PUT", "/pickled", pickle.dumps(Evil(target)), bearer()).status == 200
    assert target.exists()


def test_a_stranger_is_refused_before_the_body_is_there(server: RestServer) -> None:
    with connect(server) as client:
        client.sendall(b"PUT /pickled HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        assert b" 401 " in client.recv(1000)


@pytest.mark.parametrize(
    ("path", "method"), [(NOTES, "POST"), (f"/jobs/{JOB}", "PATCH"), (f"/jobs/{JOB}/yarn-cancel", "GET")]
)
def test_on_a_public_address_changes_need_the_token(public_server: RestServer, path: str, method: str) -> None:
    assert ask(public_server, method, path, NOTE).status == 401
    assert ask(public_server, method, path, NOTE, bearer()).status == 202
    assert ask(public_server, "GET", f"/jobs/{JOB}").status == 401
    assert ask(public_server, "GET", f"/jobs/{JOB}", headers=bearer()).status == 200


def test_reads_can_be_opened_on_a_public_address() -> None:
    with serving(Handlers().routes(), {"rest.bind-address": "0.0.0.0", "rest.authentication.reads": "false"}) as server:
        assert ask(server, "GET", f"/jobs/{JOB}").status == 200
        assert ask(server, "POST", NOTES, NOTE).status == 401


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system does not tell whose a connection is")
def test_an_end_that_was_closed_at_once_belongs_to_nobody() -> None:
    """The system has root for it, whoever it was: a stranger must not pass for root by not waiting for the answer."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.create_connection(listening.getsockname()) as client:
            client.sendall(b"PATCH /jobs/0 HTTP/1.1\r\n\r\n")
        accepted, peer = listening.accept()
        with accepted:
            assert peers.peer_uid(peer, accepted.getsockname()) is None
            assert not peers.is_same_user(peer, accepted.getsockname())


def test_another_user_of_the_machine_needs_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "peer_uid", lambda _peer, _own: os.geteuid() + 1)
    with serving(Handlers().routes(), {}) as server:
        for method, path in (("GET", f"/jobs/{JOB}"), ("GET", "/jobs/overview"), ("POST", NOTES)):
            assert ask(server, method, path, NOTE if method == "POST" else None).status == 401
            assert ask(server, method, path, NOTE if method == "POST" else None, bearer()).status in (200, 202)
        # what is kept for those who may is not for those who may not
        assert ask(server, "GET", "/jobs/overview").status == 401


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system does not tell whose a connection is")
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_whose_a_connection_is(family: int, address: str) -> None:
    with socket.create_server((address, 0), family=family) as listening:
        with socket.create_connection(listening.getsockname()[:2]) as client:
            accepted, peer = listening.accept()
            with accepted:
                assert peers.peer_uid(peer, accepted.getsockname()) == os.geteuid()
                assert peers.peer_uid(("192.0.2.9", 1), accepted.getsockname()) is None
                assert peers.peer_uid((address, client.getsockname()[1]), (address, 1)) is None


def test_on_loopback_changes_are_open_and_code_is_not(server: RestServer) -> None:
    assert ask(server, "POST", NOTES, NOTE).status == 202
    body, headers = form(("request", None, NOTE))
    assert ask(server, "POST", "/submit", body, headers).status == 401
    assert ask(server, "POST", "/submit", body, {**headers, **bearer()}).status == 200


def test_reads_can_be_closed_too() -> None:
    with serving(Handlers().routes(), {"rest.authentication.reads": "true"}) as server:
        for path in ("/jobs/overview", "/openapi.json"):
            assert ask(server, "GET", path).status == 401
        assert ask(server, "GET", "/jobs/overview", headers=bearer()).status == 200
        # what is kept for those who may is not for those who may not
        assert ask(server, "GET", "/jobs/overview").status == 401


# ---- browsers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8081", "localhost.evil.example", "", "[", "192.0.2.9"])
def test_a_name_that_was_made_to_point_here_is_refused(server: RestServer, handlers: Handlers, host: str) -> None:
    before = len(handlers.seen)
    for method, path in (("GET", f"/jobs/{JOB}"), ("GET", "/jobs/overview"), ("GET", "/"), ("POST", NOTES)):
        answer = ask(server, method, path, NOTE, {"Host": host})
        assert answer.status == 403
    assert len(handlers.seen) == before


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8081", "[::1]:8081", "localhost."])
def test_names_of_this_machine_are_fine(server: RestServer, host: str) -> None:
    assert ask(server, "GET", f"/jobs/{JOB}", headers={"Host": host}).status == 200


def test_the_configured_name_is_fine() -> None:
    with serving(Handlers().routes(), {"rest.address": "flink.example"}) as server:
        assert ask(server, "GET", "/log", headers={"Host": "flink.example:80"}).status == 200
        assert server.url == f"http://flink.example:{server.address[1]}"


def test_on_all_addresses_any_address_is_fine_but_not_any_name(public_server: RestServer) -> None:
    assert ask(public_server, "GET", "/log", headers={"Host": "192.0.2.9:8081"}).status == 401
    assert ask(public_server, "GET", "/log", headers={"Host": "evil.example"}).status == 403
    assert ask(public_server, "GET", "/log", headers={"Host": "evil.example", **bearer()}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", NOTES), ("GET", f"/jobs/{JOB}/yarn-cancel")])
def test_a_page_of_another_site_changes_nothing(
    server: RestServer, handlers: Handlers, headers: dict[str, str], method: str, path: str
) -> None:
    before = len(handlers.seen)
    answer = ask(server, method, path, NOTE, headers)
    assert answer.status == 403
    assert "other sites" in answer.errors[0]
    assert len(handlers.seen) == before


def test_our_own_pages_change_what_they_like(server: RestServer) -> None:
    own = f"localhost:{server.address[1]}"
    for headers in ({"Origin": f"http://{own}"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        assert ask(server, "POST", NOTES, NOTE, headers).status == 202


def test_another_site_is_never_told_that_it_may(server: RestServer) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = ask(server, "OPTIONS", NOTES, headers=headers)
    assert not [name for name in answer.headers if name.startswith("access-control")]


# ---- bodies -------------------------------------------------------------------------------------------------------


def test_a_body_that_says_it_is_too_large_is_not_read(server: RestServer) -> None:
    with connect(server) as client:
        client.sendall(f"POST {NOTES} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n".encode())
        assert b" 413 " in client.recv(1000)


def test_an_oversized_body_gets_an_answer(server: RestServer) -> None:
    answer = ask(server, "POST", NOTES, b'{"text":"' + b"x" * 200_000 + b'"}')
    assert answer.status == 413
    assert "larger than 102400 bytes" in answer.errors[0]


def test_an_endless_body_is_cut_off(server: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "DISCARDED_BYTES", 1 << 20)
    with connect(server) as client:
        client.sendall(f"POST {NOTES} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            _send_on_and_on(client, chunk)
        assert b" 413 " in client.recv(1000)


def test_an_endless_body_that_nobody_reads_is_cut_off(server: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "DISCARDED_BYTES", 1 << 20)
    with connect(server) as client:
        client.sendall(b"GET /log HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            _send_on_and_on(client, b"10000\r\n" + b" " * 0x10000 + b"\r\n")


def _send_on_and_on(client: socket.socket, chunk: bytes) -> None:
    for _ in range(10_000):
        client.sendall(chunk)


def test_a_chunked_body_is_read(server: RestServer) -> None:
    with connect(server) as client:
        client.sendall(f"POST {NOTES} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for part in (NOTE[:5], NOTE[5:]):
            client.sendall(b"%x\r\n%b\r\n" % (len(part), part))
        client.sendall(b"0\r\n\r\n")
        assert b" 202 " in client.recv(1000)


def test_a_body_that_comes_too_slowly_is_given_up(server: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_GRACE_S", 0.1)
    with connect(server) as client:
        client.sendall(f"POST {NOTES} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n".encode())
        assert b" 408 " in client.recv(1000)


def test_a_client_that_goes_away_in_the_middle_hurts_nobody(
    server: RestServer, handlers: Handlers, caplog: pytest.LogCaptureFixture
) -> None:
    before = len(handlers.seen)
    with connect(server) as client:
        client.sendall(f"POST {NOTES} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nxyz".encode())
    assert ask(server, "GET", f"/jobs/{JOB}").status == 200
    assert len(handlers.seen) == before + 1
    assert not caplog.records


def test_a_client_that_never_says_what_it_wants_is_dropped(handlers: Handlers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CHECK_INTERVAL_S", 0.02)
    monkeypatch.setattr(connection, "HEADERS_TIMEOUT_S", 0.1)
    with serving(handlers.routes()) as server, connect(server) as silent, connect(server) as slow:
        slow.sendall(b"GET /log HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        for client in (silent, slow):
            assert _ends(client)


def test_connections_that_ask_for_nothing_make_place(handlers: Handlers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_server, "MAX_CONNECTIONS", 3)
    with serving(handlers.routes()) as server, connect(server) as oldest, connect(server) as second:
        second.sendall(b"GET /log HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert ask(server, "GET", "/log").status == 200
        assert _ends(oldest)
        with connect(server), connect(server):
            assert _ends(second)
            assert ask(server, "GET", "/log").status == 200


def _ends(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "head",
    [b"X-Long: " + b"x" * 200_000, b"X: y\r\n" * 40_000],
    ids=["one", "many"],
)
def test_endless_headers_are_cut_off(server: RestServer, head: bytes) -> None:
    with connect(server) as client:
        try:
            client.sendall(b"GET /log HTTP/1.1\r\nHost: localhost\r\n" + head)
            assert b" 400 " in client.recv(1000)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert ask(server, "GET", "/log").status == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"HELLO\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused(server: RestServer, request_bytes: bytes) -> None:
    with connect(server) as client:
        client.sendall(request_bytes)
        answer = client.recv(1000)
    assert b" 400 " in answer
    assert b'{"errors":[' in answer


# ---- uploads ------------------------------------------------------------------------------------------------------


def upload(server: RestServer, *parts: tuple[str, str | None, bytes]) -> Any:
    body, headers = form(*parts)
    return ask(server, "POST", "/submit", body, {**headers, **bearer()})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("job.py", "job.py"),
        ("../../etc/passwd", "passwd"),
        ("/etc/passwd", "passwd"),
        (r"..\..\job.py", "job.py"),
        (r"C:\jobs\my job (2).py", "my job (2).py"),
        ("täglich.py", "täglich.py"),
    ],
)
def test_an_uploaded_name_is_nothing_but_a_name(server: RestServer, given: str, kept: str) -> None:
    assert safe_filename(given) == kept
    answer = upload(server, ("request", None, NOTE), ("file", given.replace("\\", "\\\\"), b"12345"))
    assert answer.status == 200
    assert answer.json["files"] == {"file": f"{kept}: 5"}


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../..", ".bashrc", "a/.hidden", "a\0b", "a\nb", "x" * 300, "a;b", "a|b", "$(x)", "a:b", "*"],
)
def test_an_uploaded_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(RestError) as caught:
        safe_filename(name)
    assert caught.value.status == 400


def test_fields_of_a_form_are_the_body(server: RestServer) -> None:
    answer = upload(server, ("text", None, b"hi"), ("times", None, b"3"))
    assert answer.json["note"] == {"text": "hi", "times": 3, "target-directory": None}


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ([("text", None, b"hi"), ("times", None, b"often")], "Expected `int`"),
        ([("text", None, b"hi"), ("text", None, b"hi")], "two parts named 'text'"),
        ([("text", None, b"\xff")], "not in UTF-8"),
        ([("request", None, b"{")], "not JSON"),
        ([("f", ".x", b"")], "not a name for an uploaded file"),
        ([("text", None, b"hi")] + [(f"f{n}", "x", b"") for n in range(1001)], "more than 1000 parts"),
    ],
    ids=["type", "twice", "encoding", "json", "hidden", "many"],
)
def test_a_form_that_does_not_fit_is_refused(
    server: RestServer, parts: list[tuple[str, str | None, bytes]], says: str
) -> None:
    answer = upload(server, *parts)
    assert answer.status == 400
    assert says in answer.errors[0]


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("application/json", NOTE, 415),
        ("multipart/form-data", b"", 415),
        ("multipart/form-data; boundary=x", b"", 400),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\nnever ends", 400),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\nno name\r\n--x--\r\n", 400),
        ("multipart/form-data; boundary=x", b"something else", 400),
        ("multipart/form-data; boundary=" + "x" * 500, b"--x", 400),
    ],
)
def test_a_body_that_is_no_form_is_refused(server: RestServer, content_type: str, body: bytes, status: int) -> None:
    answer = ask(server, "POST", "/submit", body, {"Content-Type": content_type, **bearer()})
    assert answer.status == status
    assert answer.errors


def test_files_count_against_the_limit(server: RestServer) -> None:
    assert upload(server, ("f", "x", b"x" * 200_000)).status == 413


def test_no_thread_or_connection_stays(handlers: Handlers) -> None:
    with serving(handlers.routes()) as server:
        client = connect(server)
        client.sendall(b"GET /log HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in client.recv(10_000)
    with client:
        eventually(lambda: _ends(client))
