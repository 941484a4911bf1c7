"""The simulated network."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from firesteel.testing.simulation.machine.network import Network
from firesteel.testing.simulation.machine.scheduler import Process, Scheduler
from firesteel.testing.simulation.machine.standard_library import simulated_standard_library
from firesteel.testing.simulation.machine.story import Story

PORT = 7000


class Pair:
    """A server on one machine and a client on another."""

    def __init__(self) -> None:
        self.simulation = Scheduler(1, Story())
        self.network = Network(self.simulation)
        self.here, self.there = self.network.add_machine("here"), self.network.add_machine("there")
        self.server: Process | None = None

    def run(
        self, server: Callable[[Any], None], client: Callable[[Any], None], during: Callable[[], None] = lambda: None
    ) -> None:
        def serve() -> None:
            with socket.create_server(("there", PORT)) as listener:
                server(listener.accept()[0])

        def dial() -> None:
            time.sleep(1)
            with socket.create_connection(("there", PORT), timeout=5) as connection:
                client(connection)

        with simulated_standard_library(self.simulation, self.network):
            self.server = self.simulation.start_process("server", self.there, serve)
            self.simulation.start_process("client", self.here, dial)
            during()
            self.simulation.run()
            self.simulation.close()


def test_bytes_arrive_in_order_and_then_the_end() -> None:
    received = []

    def server(connection: Any) -> None:
        while data := connection.recv(4):
            received.append(data)

    def client(connection: Any) -> None:
        for number in range(5):
            connection.sendall(b"%d" % number * 3)

    Pair().run(server, client)
    assert b"".join(received) == b"000111222333444"


def test_what_is_sent_over_a_cut_network_arrives_when_it_is_healed() -> None:
    pair = Pair()
    times = []

    def server(connection: Any) -> None:
        connection.recv(10)
        times.append(time.monotonic())

    def client(connection: Any) -> None:
        time.sleep(5)
        connection.sendall(b"x")
        time.sleep(60)

    def during() -> None:
        pair.simulation.after(3_000_000, lambda: pair.network.cut(pair.here, pair.there))
        pair.simulation.after(30_000_000, lambda: pair.network.heal(pair.here, pair.there))

    pair.run(server, client, during)
    assert times == [pytest.approx(30, abs=0.1)]


def test_the_end_of_a_process_closes_its_connections() -> None:
    pair = Pair()
    seen = []

    def client(connection: Any) -> None:
        connection.settimeout(None)
        seen.append(connection.recv(1))
        with pytest.raises(BrokenPipeError):
            connection.sendall(b"x")

    def during() -> None:
        pair.simulation.after(9_000_000, lambda: pair.server.kill("test") if pair.server else None)

    pair.run(lambda _connection: time.sleep(1000), client, during)
    assert seen == [b""]


def test_a_reset_connection_raises_on_both_sides() -> None:
    pair = Pair()
    seen = []

    def read(connection: Any) -> None:
        connection.settimeout(None)
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
        seen.append("reset")

    def during() -> None:
        pair.simulation.after(9_000_000, lambda: pair.network.reset(pair.network.connections()[0]))

    pair.run(read, read, during)
    assert seen == ["reset", "reset"]


def test_nobody_listens() -> None:
    pair = Pair()
    seen = []

    def body() -> None:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("there", 1), timeout=5)
        seen.append(True)

    with simulated_standard_library(pair.simulation, pair.network):
        pair.simulation.start_process("client", pair.here, body)
        pair.simulation.run()
    assert seen == [True]


def test_a_sender_waits_for_a_reader_that_does_not_read() -> None:
    seen = []

    def server(connection: Any) -> None:
        time.sleep(100)
        while connection.recv(1 << 16):
            pass

    def client(connection: Any) -> None:
        connection.settimeout(None)
        connection.sendall(bytes(1 << 20))
        seen.append(time.monotonic())

    Pair().run(server, client)
    assert seen[0] > 100
