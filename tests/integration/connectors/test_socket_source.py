from __future__ import annotations

import socket
import time

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.client.socket_source import MAX_WAIT_S, SocketConnectionError, SocketSource
from firesteel.spi.source import Boundedness, InputStatus


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


def poll_until(harness, condition, max_records=10):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, harness.records
        harness.poll(max_records=max_records)


def test_receives_until_the_server_closes(fakes, server):
    harness = fakes.SourceHarness(SocketSource("127.0.0.1", server.getsockname()[1]))
    harness.poll()
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"one\ntwo\r\nthr")
        poll_until(harness, lambda: len(harness.records) == 2)
        connection.sendall("ee π".encode() + b"\n\nno \xff end")
        poll_until(harness, lambda: len(harness.records) == 4)
    poll_until(harness, lambda: harness.ended[0])
    assert harness.records == ["one", "two", "three π", "", "no \ufffd end"]
    harness.close()


def test_a_delimiter_of_several_bytes_across_pieces(fakes, server):
    harness = fakes.SourceHarness(SocketSource("127.0.0.1", server.getsockname()[1], delimiter="||"))
    harness.poll()
    connection, _ = server.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"a||b|c|")
        poll_until(harness, lambda: harness.records == ["a"])
        connection.sendall(b"|d||")
        poll_until(harness, lambda: len(harness.records) == 3)
    assert harness.records == ["a", "b|c", "d"]
    harness.close()


def test_emits_at_most_max_records_and_keeps_the_rest(fakes, server):
    harness = fakes.SourceHarness(SocketSource("127.0.0.1", server.getsockname()[1]))
    harness.poll()
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"a\nb\nc\n")
    poll_until(harness, lambda: harness.ended[0], max_records=2)
    assert harness.records == ["a", "b", "c"]
    assert all(len(batch) <= 2 for batch in harness.outputs[0].batches)
    harness.close()


def test_waits_longer_the_longer_nothing_comes(fakes, server):
    clock = fakes.Clock()
    source = SocketSource("127.0.0.1", server.getsockname()[1], clock=clock)
    reader = source.create_reader(fakes.ReaderContext())
    reader.add_splits(fakes.SourceHarness(SocketSource("127.0.0.1", 1)).assigned[0])
    output = fakes.ReaderOutput()
    waits = []
    for _ in range(8):
        assert reader.poll_next(output, 10) is InputStatus.NOTHING_AVAILABLE
        waits.append(reader.available_at() - clock.now)
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(MAX_WAIT_S)
    reader.close()


def test_only_one_reader_connects(fakes, server):
    harness = fakes.SourceHarness(SocketSource("127.0.0.1", server.getsockname()[1]), 3)
    assert harness.poll(1) is InputStatus.END_OF_INPUT
    assert harness.poll(2) is InputStatus.END_OF_INPUT
    assert harness.poll(0) is InputStatus.NOTHING_AVAILABLE
    harness.close()


def test_no_server(fakes):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # so that nobody else gets the port; nobody listens
        port = unused.getsockname()[1]
        harness = fakes.SourceHarness(SocketSource("localhost", port))
        with pytest.raises(SocketConnectionError) as caught:
            poll_until(harness, lambda: False)
    assert (caught.value.host, caught.value.port) == ("localhost", port)
    assert f"nc -lk {port}" in caught.value.hint
    harness.close()


def test_bad_arguments_are_refused():
    for port in (0, 65536):
        with pytest.raises(InvalidProgramError):
            SocketSource("localhost", port)
    with pytest.raises(InvalidProgramError):
        SocketSource("localhost", 80, delimiter="")


def test_describes_itself():
    source = SocketSource("example.org", 9999)
    assert repr(source) == "SocketSource(example.org:9999)"
    assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
