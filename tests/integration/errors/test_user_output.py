"""What functions print in a slot: lines on their way to the client."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

import pytest

from firesteel.runtime.model.messages import ClientAck, ClientPayload
from firesteel.runtime.model.serialization import deserialize_batch
from firesteel.spark.session.user_output import MAX_LINE_BYTES, MAX_PENDING_LINES, UserOutput


class Client:
    """Takes the payloads of one slot; acknowledges when told to."""

    def __init__(self) -> None:
        self.payloads: list[ClientPayload] = []
        self.arrived = threading.Semaphore(0)
        self.stopped = False
        self.output = UserOutput(self.take, attempt=1, slot=3, stopped=lambda: self.stopped)

    def take(self, message: Any) -> None:
        assert isinstance(message, ClientPayload)
        self.payloads.append(message)
        self.arrived.release()

    def acknowledge(self, payload: ClientPayload) -> None:
        assert self.output.acknowledge(ClientAck(payload.channel, payload.subtask, payload.sequence))

    def lines(self, stream: str = "stdout") -> list[str]:
        found: list[str] = []
        for payload in self.payloads:
            name, lines = deserialize_batch(payload.payload).values
            if name == stream:
                found += lines
        return found


@pytest.fixture
def client() -> Client:
    return Client()


def test_a_line_leaves_at_once_and_further_ones_wait_for_the_client(client: Client) -> None:
    with client.output:
        print("one")
        print("two")
        print("three")
        assert client.lines() == ["one"]
        client.acknowledge(client.payloads[0])
        assert client.lines() == ["one", "two", "three"]
    assert [payload.sequence for payload in client.payloads] == [0, 1]
    assert {(payload.attempt, payload.subtask) for payload in client.payloads} == {(1, 3)}


def test_both_streams_have_their_own_numbers(client: Client) -> None:
    with client.output:
        print("out")
        print("err", file=sys.stderr)
        logging.getLogger("a function's").warning("log")
        client.output.flush()
    assert client.lines("stdout") == ["out"]
    assert client.lines("stderr")[0] == "err"
    assert len({payload.channel for payload in client.payloads}) == 2
    assert all(payload.channel.startswith("print#") for payload in client.payloads)


def test_part_of_a_line_waits_for_its_end(client: Client) -> None:
    with client.output:
        print("part", end="")
        client.output.flush()
        assert client.lines() == []
        print(" and end")
        print("left over", end="")
        client.output.flush(end=True)
    assert client.lines() == ["part and end", "left over"]


def test_flush_does_not_wait_for_the_client(client: Client) -> None:
    with client.output:
        for i in range(10):
            print(i)
        client.output.flush()
    assert client.lines() == [str(i) for i in range(10)]


def test_a_function_that_prints_more_than_the_client_takes_has_to_wait(client: Client) -> None:
    count = 3 * MAX_PENDING_LINES
    with client.output:
        printer = threading.Thread(target=lambda: [print(i) for i in range(count)])
        printer.start()
        taken = 0
        while len(client.lines()) < count:
            assert client.arrived.acquire(timeout=120)
            _name, lines = deserialize_batch(client.payloads[taken].payload).values
            assert len(lines) <= MAX_PENDING_LINES
            client.acknowledge(client.payloads[taken])
            taken += 1
        printer.join(120)
    assert client.lines() == [str(i) for i in range(count)]


def test_a_slot_that_is_to_stop_does_not_wait(client: Client) -> None:
    client.stopped = True
    with client.output:
        for i in range(2 * MAX_PENDING_LINES):
            print(i)


def test_long_lines_and_bytes(client: Client) -> None:
    with client.output:
        print("x" * 3 * MAX_LINE_BYTES, end="")
        sys.stdout.flush()
        sys.stdout.buffer.write(b"\nbytes \xff\n")
        client.output.flush()
    assert len("".join(client.lines()[:-1])) == 3 * MAX_LINE_BYTES
    assert client.lines()[-1] == "bytes \ufffd"


def test_the_process_has_its_own_streams_back(client: Client) -> None:
    before = sys.stdout, sys.stderr
    with client.output:
        assert sys.stdout is not before[0]
    assert (sys.stdout, sys.stderr) == before


def test_acknowledgements_of_sinks_are_not_taken(client: Client) -> None:
    assert not client.output.acknowledge(ClientAck("print#0123", 3, 0))


def test_without_a_jobmaster_printing_goes_on() -> None:
    def gone(_: Any) -> None:
        raise ConnectionError("gone")

    with UserOutput(gone, attempt=1, slot=0, stopped=lambda: False) as output:
        print("into the void")
        output.flush(end=True)
