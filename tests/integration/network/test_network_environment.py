"""Two and more environments over real sockets, driven in turn by one thread."""

from __future__ import annotations

import logging
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firesteel.runtime.model.elements import Batch, EndOfData, Watermark
from firesteel.runtime.network import (
    AuthenticationError,
    InputGate,
    NetworkConfig,
    NetworkEnvironment,
    NetworkError,
    PeerLostError,
    PeersMissingError,
    ResultPartition,
    ResultSubpartition,
)
from firesteel.runtime.network.frames import DATA, pack_header

SECRET = b"the job's secret"


class Cluster:
    """Environments that are polled in turn and closed at the end."""

    def __init__(self) -> None:
        self.environments: list[NetworkEnvironment] = []

    def add(self, my_id: int, secret: bytes = SECRET, **options: Any) -> NetworkEnvironment:
        environment = NetworkEnvironment(secret, my_id=my_id, **options)
        self.environments.append(environment)
        return environment

    def drive(self, until: Callable[[], bool], timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not until():
            assert time.monotonic() < deadline, "nothing came of it in time"
            for environment in self.environments:
                environment.poll(0.001)

    def settle(self) -> None:
        while sum(environment.poll(0.02) for environment in self.environments):
            pass

    def connect(self) -> None:
        addresses = {environment.my_id: environment.address for environment in self.environments}
        for environment in self.environments:
            environment.begin_connect(addresses)
        self.drive(lambda: not any(environment.missing_peers() for environment in self.environments))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    for environment in cluster.environments:
        environment.close()


@pytest.fixture
def pair(cluster: Cluster) -> tuple[NetworkEnvironment, NetworkEnvironment]:
    pair = cluster.add(0), cluster.add(1)
    cluster.connect()
    return pair


def channels(
    sender: NetworkEnvironment, receiver: NetworkEnvironment, n: int = 1, first_id: int = 0
) -> tuple[ResultPartition, InputGate]:
    subs = [ResultSubpartition() for _ in range(n)]
    gate = InputGate(n)
    for index in range(n):
        sender.register_output(first_id + index, receiver.my_id, subs[index])
        receiver.register_input(first_id + index, sender.my_id, gate.channels[index])
    return ResultPartition(subs), gate


def read(gate: InputGate) -> list[tuple[int, Any]]:
    items: list[tuple[int, Any]] = []
    while (polled := gate.poll()) is not None:
        index, item = polled
        items.append((index, list(item.values) if isinstance(item, Batch) else item))
    return items


def emit(part: ResultPartition, index: int, *values: Any) -> None:
    part.emit_to(index, values, None)
    part.flush()


def answer(sock: socket.socket) -> bytes:
    """All the other side has to say before it closes."""
    sock.settimeout(60)
    said = b""
    try:
        while data := sock.recv(100):
            said += data
    except ConnectionResetError:
        pass
    return said


class TestChannels:
    def test_records_and_events_arrive_in_order(self, cluster: Cluster, pair: Any) -> None:
        part, gate = channels(*pair)
        part.emit_to(0, ["a", "b"], [1, 2])
        part.broadcast_event(Watermark(2))
        emit(part, 0, "c")
        part.broadcast_event(EndOfData())
        received: list[Any] = []

        def done() -> bool:
            received.extend(item for _, item in read(gate))
            return bool(received) and received[-1] == EndOfData()

        cluster.drive(done)
        assert received == [["a", "b"], Watermark(2), ["c"], EndOfData()]

    def test_many_channels_in_both_directions_share_one_connection(self, cluster: Cluster, pair: Any) -> None:
        left, right = pair
        there, gate_there = channels(left, right, 5)
        back, gate_back = channels(right, left, 5)  # the same ids: each direction has its own
        sent = {(gate, i): list(range(i, 3000, 7)) for gate in (gate_there, gate_back) for i in range(5)}
        received: dict[tuple[InputGate, int], list[int]] = {key: [] for key in sent}
        at = 0

        def step() -> bool:
            nonlocal at
            for gate, part in ((gate_there, there), (gate_back, back)):
                for i in range(5):
                    if at < len(sent[gate, i]):
                        emit(part, i, sent[gate, i][at])
                for index, values in read(gate):
                    received[gate, index] += values
            at += 1
            return received == sent

        cluster.drive(step)
        assert len(left._connections) == len(right._connections) == 1
        for gate in (gate_there, gate_back):
            assert gate.floating_buffers.available == 8

    def test_the_order_of_registration_does_not_matter(self, cluster: Cluster) -> None:
        zero, one = cluster.add(0), cluster.add(1)
        sub, gate = ResultSubpartition(), InputGate(1)
        one.register_input(4, 0, gate.channels[0])  # before there is a connection
        cluster.connect()
        cluster.settle()  # the credit comes before the output is there
        sub.add_event(Watermark(1))
        zero.register_output(4, 1, sub)
        cluster.drive(lambda: gate.has_input)
        assert read(gate) == [(0, Watermark(1))]

    def test_nothing_is_sent_before_the_input_exists(self, cluster: Cluster, pair: Any) -> None:
        zero, one = pair
        sub, gate = ResultSubpartition(), InputGate(1)
        zero.register_output(4, 1, sub)
        sub.add_event(Watermark(1))
        cluster.settle()
        one.register_input(4, 0, gate.channels[0])
        cluster.drive(lambda: gate.has_input)
        assert read(gate) == [(0, Watermark(1))]

    def test_a_channel_out_of_credit_stops_alone(self, cluster: Cluster, pair: Any) -> None:
        part, gate = channels(*pair, 2)  # type: ignore[call-arg]
        gate.block(0)
        for value in range(50):
            emit(part, 0, value)
        cluster.drive(lambda: len(gate.channels[0].queue) == 10)
        cluster.settle()
        assert len(gate.channels[0].queue) == 10
        assert part.subpartitions[0].queued == 40, "what has no credit stays in its subpartition"
        for value in range(20):
            emit(part, 1, value)
            cluster.drive(lambda: gate.has_input)
            assert read(gate) == [(1, [value])]
        gate.unblock(0)
        received: list[int] = []

        def done() -> bool:
            received.extend(values[0] for _, values in read(gate))
            return len(received) == 50

        cluster.drive(done)
        assert received == list(range(50))

    def test_a_full_socket_leaves_frames_in_their_subpartitions(self, cluster: Cluster, pair: Any) -> None:
        left, right = pair
        part, gate = channels(left, right, 4)
        large = bytes(4 << 20)
        cluster.drive(lambda: all(sub.sender.credit >= 2 for sub in part.subpartitions))
        for index in range(4):
            emit(part, index, large)
            emit(part, index, large)
        for _ in range(20):
            left.poll(0.0)  # the other side does not read
        assert left._connections[1].write_blocked
        assert part.queued >= 4, "credit would allow all, the socket does not"
        cluster.drive(lambda: gate.queued == 8)
        assert part.queued == 0
        assert not left._connections[1].write_blocked

    def test_a_record_of_100_megabytes(self, cluster: Cluster, pair: Any) -> None:
        part, gate = channels(*pair)
        large = bytes(range(256)) * (100 * 4096)
        emit(part, 0, 1)
        emit(part, 0, large)
        emit(part, 0, 2)
        received: list[Any] = []

        def done() -> bool:
            received.extend(values[0] for _, values in read(gate))
            return len(received) == 3

        cluster.drive(done, 60.0)
        assert received[0] == 1
        assert received[1] == large
        assert received[2] == 2

    def test_a_subpartition_of_objects_cannot_leave_the_process(self, pair: Any) -> None:
        with pytest.raises(ValueError, match="holds objects"):
            pair[0].register_output(0, 1, ResultSubpartition(serialized=False))

    def test_a_channel_id_is_used_once(self, pair: Any) -> None:
        pair[0].register_output(0, 1, ResultSubpartition())
        with pytest.raises(ValueError, match="exists already"):
            pair[0].register_output(0, 1, ResultSubpartition())

    def test_three_processes(self, cluster: Cluster) -> None:
        environments = [cluster.add(i) for i in (5, 2, 9)]
        cluster.connect()
        links = [(a, b, *channels(a, b)) for a in environments for b in environments if a is not b]
        for a, b, part, _ in links:
            emit(part, 0, (a.my_id, b.my_id))
        cluster.drive(lambda: all(gate.has_input for *_, gate in links))
        assert [read(gate) for *_, gate in links] == [[(0, [(a.my_id, b.my_id)])] for a, b, *_ in links]


class TestLoop:
    def test_poll_waits_no_longer_than_told_and_says_whether_anything_happened(self, pair: Any) -> None:
        while pair[0].poll(0.0):
            pass
        assert pair[0].poll(0.0) is False

    def test_poll_returns_at_once_after_sending(self, cluster: Cluster, pair: Any) -> None:
        part, _ = channels(*pair)
        cluster.settle()
        emit(part, 0, 1)
        begun = time.monotonic()
        assert pair[0].poll(120.0)
        assert time.monotonic() - begun < 100

    def test_wakeup_from_another_thread(self, cluster: Cluster, pair: Any) -> None:
        cluster.settle()
        thread = threading.Thread(target=pair[0].wakeup)
        thread.start()
        assert pair[0].poll(120.0)
        thread.join()

    def test_other_sockets_live_in_the_same_loop(self, cluster: Cluster, pair: Any) -> None:
        left, right = socket.socketpair()
        with left, right:
            seen: list[bytes] = []
            pair[0].add_reader(left, lambda: seen.append(left.recv(10)))
            right.send(b"control")
            cluster.drive(lambda: bool(seen))
            assert seen == [b"control"]
            pair[0].remove_reader(left)


class TestConnecting:
    def test_connect_peers_waits_for_all(self, cluster: Cluster) -> None:
        environments = [cluster.add(i) for i in range(3)]
        addresses = {e.my_id: e.address for e in environments}
        threads = [threading.Thread(target=e.connect_peers, args=(addresses, 60.0)) for e in environments[1:]]
        for thread in threads:
            thread.start()
        environments[0].connect_peers(addresses, 60.0)
        for thread in threads:
            thread.join()
        assert not any(e.missing_peers() for e in environments)

    def test_missing_peers_are_named(self, cluster: Cluster) -> None:
        environment = cluster.add(1)
        # bound, so that nobody else gets the port, but nobody listens
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            with pytest.raises(PeersMissingError) as caught:
                environment.connect_peers({0: unused.getsockname(), 2: ("127.0.0.1", 9)}, 1.0)
        assert set(caught.value.missing) == {0, 2}
        assert "refused" in caught.value.missing[0]
        assert "process 2 (it has not dialled)" in str(caught.value)

    def test_a_peer_that_never_answers_is_named(self, cluster: Cluster) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            environment = cluster.add(1, config=NetworkConfig(handshake_timeout_s=0.05))
            with pytest.raises(PeersMissingError, match="did not authenticate in time"):
                environment.connect_peers({0: silent.getsockname()}, 1.0)

    def test_a_wrong_secret_ends_the_dialers_attempt_with_a_clear_error(
        self, cluster: Cluster, caplog: pytest.LogCaptureFixture
    ) -> None:
        zero, one = cluster.add(0), cluster.add(1, b"another secret")
        zero.begin_connect({1: one.address})
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                zero.poll(0.01)

        thread = threading.Thread(target=serve)
        with caplog.at_level(logging.CRITICAL):
            thread.start()
            try:
                with pytest.raises(AuthenticationError, match="process 0 rejected the job's secret"):
                    one.connect_peers({0: zero.address}, 60.0)
            finally:
                stop.set()
                thread.join()
        assert "process 1 does not have the job's secret" in zero.missing_peers()[1]
        with pytest.raises(PeersMissingError, match="does not have the job's secret"):
            zero.connect_peers({1: one.address}, 0.05)

    def test_garbage_before_authentication_harms_nobody(self, cluster: Cluster) -> None:
        class Bomb:
            def __reduce__(self) -> Any:
                return pytest.fail, ("unpickled before authentication",)

        zero, one = cluster.add(0), cluster.add(1)
        payload = pickle.dumps(Bomb())
        knockers = []
        for garbage in (
            b"",
            b"GET / HTTP/1.1\r\n\r\n" * 10,
            pack_header(0, DATA, 0, len(payload)) + payload * 3,
        ):
            knocker = socket.create_connection(zero.address)
            knocker.sendall(garbage)
            knockers.append(knocker)
        cluster.connect()
        part, gate = channels(one, zero)
        emit(part, 0, "fine")
        cluster.drive(lambda: gate.has_input)
        assert read(gate) == [(0, ["fine"])]
        for knocker in knockers:
            assert answer(knocker) == b""
            knocker.close()

    def test_nobody_can_connect_once_all_peers_have(self, pair: Any) -> None:
        for environment in pair:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(environment.address, timeout=60)

    def test_another_process_at_the_address_is_an_error(self, cluster: Cluster) -> None:
        cluster.add(0)
        two = cluster.add(2)
        two.begin_connect({1: cluster.environments[0].address})
        with pytest.raises(AuthenticationError, match=r"expected process 1 at .* but reached process 0"):
            cluster.drive(lambda: False)

    def test_an_address_that_can_be_advertised(self, cluster: Cluster) -> None:
        assert cluster.add(0, bind_host="0.0.0.0").address[0] == socket.gethostname()
        assert cluster.add(1, bind_host="0.0.0.0", advertised_host="worker-7").address[0] == "worker-7"


class TestPeerLost:
    def test_a_dead_peer_is_reported_once(self, cluster: Cluster) -> None:
        lost: list[tuple[int, NetworkError]] = []
        zero = cluster.add(0, on_peer_lost=lambda peer, error: lost.append((peer, error)))
        one = cluster.add(1)
        cluster.connect()
        part, _ = channels(zero, one)
        one._connections[0].sock.shutdown(socket.SHUT_RDWR)  # as the kernel does for a killed process
        cluster.environments.remove(one)
        cluster.drive(lambda: bool(lost))
        emit(part, 0, "nobody reads this")
        cluster.settle()
        assert [(peer, type(error)) for peer, error in lost] == [(1, PeerLostError)]
        cluster.environments.append(one)

    def test_without_a_callback_poll_raises(self, cluster: Cluster, pair: Any) -> None:
        zero, one = pair
        one._connections[0].sock.shutdown(socket.SHUT_RDWR)
        cluster.environments.remove(one)
        with pytest.raises(PeerLostError, match="process 1 was lost") as caught:
            cluster.drive(lambda: False)
        assert caught.value.peer_id == 1
        with pytest.raises(PeerLostError):
            zero.register_output(3, 1, ResultSubpartition())
        cluster.environments.append(one)

    def test_a_corrupt_stream_loses_the_peer(self, cluster: Cluster, pair: Any) -> None:
        _, one = pair
        one._connections[0].sock.send(pack_header(77, DATA, 0, 0))
        with pytest.raises(PeerLostError, match="channel 77, which does not exist"):
            cluster.drive(lambda: False)

    def test_a_sender_that_ignores_credit_loses_its_connection(self, cluster: Cluster, pair: Any) -> None:
        zero, one = pair
        zero.register_input(0, 1, InputGate(1).channels[0])
        payload = pickle.dumps(([1], None), 5)
        one._connections[0].sock.send((pack_header(0, DATA, 0, len(payload)) + payload) * 20)
        with pytest.raises(PeerLostError, match="no credit had been announced"):
            cluster.drive(lambda: False)

    def test_closing_in_good_order_loses_nobody(self, cluster: Cluster, pair: Any) -> None:
        zero, one = pair
        part, gate = channels(one, zero)
        emit(part, 0, "last words")
        part.broadcast_event(EndOfData())
        cluster.drive(lambda: gate.queued == 2)
        one.close()
        one.close()
        cluster.environments.remove(one)
        cluster.drive(lambda: not zero._connections)
        assert read(gate) == [(0, ["last words"]), (0, EndOfData())]
        cluster.settle()

    def test_close_sends_what_credit_allows_first(self, cluster: Cluster, pair: Any) -> None:
        zero, one = pair
        part, gate = channels(one, zero)
        cluster.drive(lambda: part.subpartitions[0].sender.credit > 0)
        emit(part, 0, "last words")
        one.close(flush_timeout_s=60.0)
        cluster.environments.remove(one)
        cluster.drive(lambda: gate.has_input)
        assert read(gate) == [(0, ["last words"])]

    def test_sending_to_a_peer_that_has_said_goodbye_is_an_error(self, cluster: Cluster, pair: Any) -> None:
        zero, one = pair
        part, _ = channels(zero, one)
        cluster.settle()
        one.close()
        cluster.environments.remove(one)
        cluster.drive(lambda: not zero._connections)
        with pytest.raises(PeerLostError, match="still sent to"):
            emit(part, 0, 1)

    def test_the_callback_may_close_the_environment(self, cluster: Cluster) -> None:
        closed: list[int] = []

        def on_peer_lost(peer: int, error: NetworkError) -> None:
            zero.close()
            closed.append(peer)

        zero = cluster.add(0, on_peer_lost=on_peer_lost)
        one = cluster.add(1)
        cluster.connect()
        one._connections[0].sock.shutdown(socket.SHUT_RDWR)
        while not closed:
            zero.poll(1.0)
        cluster.environments.remove(zero)
        zero.wakeup()


def test_a_peer_that_dials_before_the_peers_are_known_does_not_end_the_listening(cluster: Cluster) -> None:
    first, second, third = cluster.add(0), cluster.add(1), cluster.add(2)
    addresses = {environment.my_id: environment.address for environment in cluster.environments}
    third.begin_connect(addresses)
    cluster.drive(lambda: not third.missing_peers())
    second.begin_connect(addresses)
    cluster.drive(lambda: not second.missing_peers())
    first.begin_connect(addresses)
    cluster.drive(lambda: not first.missing_peers())
