from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from firesteel.cluster.rest.server import RestServer
from firesteel.cluster.rest.standby import StandbyRoutes
from firesteel.common.errors import FiresteelError
from firesteel.rest.client import ConnectionFailedError, RestClient, RestClientError
from tests.support.rest.samples import (
    ANY_JOB,
    CANCEL,
    CHANGE,
    FAILING,
    JOB,
    LOG,
    OVERVIEW,
    PICKLED,
    READ,
    SUBMIT,
    TOKEN,
    Handlers,
    Note,
    client_of,
    serving,
)


@pytest.fixture(scope="module")
def server() -> Iterator[RestServer]:
    with serving(Handlers().routes()) as a_server:
        yield a_server


@pytest.fixture
def client(server: RestServer) -> Iterator[RestClient]:
    with client_of(server, TOKEN) as a_client:
        yield a_client


def test_a_call_has_path_query_and_a_typed_answer(client: RestClient) -> None:
    path = {"jobid": JOB, "vertexid": "f" * 32, "subtaskindex": 3}
    seen = client.call(READ, path, {"get": ["a b", "c&d"], "limit": 7, "all": True})
    assert seen.path == {"jobid": JOB, "vertexid": "f" * 32, "subtaskindex": "3"}
    assert seen.query == {"get": ["a b", "c&d"], "limit": 7, "all": True}


def test_a_call_has_a_body(client: RestClient) -> None:
    assert client.call(CHANGE, {"jobid": JOB}, body=Note("hi", 2)).note == Note("hi", 2)
    assert client.call(CANCEL, {"jobid": JOB}).path == {"jobid": JOB}


def test_text_and_bytes(client: RestClient) -> None:
    assert client.call(LOG) == "line ü\n"
    pickled = b"\x80\x04N."
    assert client.call(PICKLED, body=pickled) == pickled


def test_uploads(client: RestClient) -> None:
    seen = client.call(SUBMIT, body=Note("hi"), uploads={"a": ("job.py", b"x" * 300_000), "b": ("dir/b.zip", b"")})
    assert seen.note == Note("hi")
    assert seen.files == {"a": "job.py: 300000", "b": "b.zip: 0"}
    with pytest.raises(RestClientError, match="not a name for an uploaded file"):
        client.call(SUBMIT, body=Note("hi"), uploads={"a": ('x"; name="y', b"")})


def test_names_with_slashes(client: RestClient) -> None:
    with pytest.raises(RestClientError) as caught:
        client.call(FAILING, {"how": "a/b c"})
    assert caught.value.messages == ["Nothing is named a/b c."]


@pytest.mark.parametrize(("how", "status"), [("gone", 404), ("conflict", 409), ("us", 500)])
def test_errors_have_their_status_and_messages(client: RestClient, how: str, status: int) -> None:
    with pytest.raises(RestClientError) as caught:
        client.call(FAILING, {"how": how})
    assert caught.value.status == status
    assert caught.value.messages


def test_a_connection_is_used_again_and_by_several_threads(client: RestClient) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: client.call(OVERVIEW), range(40)))
    assert len({answer["asked"] for answer in answers}) == 1
    assert 1 <= len(client._idle) <= 4


def test_without_the_token(server: RestServer) -> None:
    with client_of(server) as stranger, pytest.raises(RestClientError) as caught:
        stranger.call(SUBMIT, body=Note("hi"), uploads={"a": ("job.py", b"x" * 3_000_000)})
    assert caught.value.status == 401


def test_a_refused_connection(free_port: int) -> None:
    with RestClient(f"localhost:{free_port}") as client, pytest.raises(ConnectionFailedError) as caught:
        client.call(LOG)
    assert caught.value.message == (
        f"The JobManager at http://localhost:{free_port} cannot be reached: the connection was refused."
    )


def test_a_server_that_comes_late_is_waited_for(free_port: int) -> None:
    started = threading.Event()

    def start_late() -> None:
        with serving(Handlers().routes(), {"rest.bind-port": str(free_port)}):
            assert started.wait(60)

    timer = threading.Timer(0.3, start_late)
    timer.start()
    try:
        with RestClient(f"http://localhost:{free_port}", connect_timeout=60) as client:
            assert client.call(LOG) == "line ü\n"
    finally:
        started.set()
        timer.join()


@pytest.fixture
def free_port() -> Iterator[int]:
    """Nobody listens on it; it is bound, so that no other process gets it, but may be listened on here."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        yield port


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "invalid response"),
        (b"", "invalid response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "Unexpected response"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope", "returned status 404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "invalid response"),
    ],
    ids=["ssh", "nothing", "no-json", "other", "cut"],
)
def test_what_is_no_jobmanager(answer: bytes, says: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with RestClient(f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
            with pytest.raises(FiresteelError, match=says):
                client.call(ANY_JOB, {"jobid": JOB})
        thread.join()


def test_a_server_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with RestClient(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.2) as client:
            with pytest.raises(ConnectionFailedError, match="did not respond in time"):
                client.call(LOG)


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "localhost:port", "http://x:99999"])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(FiresteelError, match="not a valid JobManager address"):
        RestClient(url)


def test_a_standby_leads_to_the_leader(server: RestServer) -> None:
    standby_routes = StandbyRoutes(lambda: server.public_address)
    with serving([]) as standby, client_of(standby, TOKEN) as client:
        standby.serve_standby(standby_routes)
        assert client.call(LOG) == "line ü\n"
        assert client.call(CHANGE, {"jobid": JOB}, body=Note("hi")).note == Note("hi")


def test_it_goes_to_a_leader_only_once() -> None:
    with serving([]) as one, serving([]) as other, client_of(one) as client:
        one.serve_standby(StandbyRoutes(lambda: other.public_address))
        other.serve_standby(StandbyRoutes(lambda: one.public_address))
        with pytest.raises(RestClientError, match="standby; the leader is at") as caught:
            client.call(CHANGE, {"jobid": JOB}, body=Note("hi"))
    assert caught.value.status == 503
