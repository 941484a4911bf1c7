"""Slots that speak TLS to each other and to the JobMaster, and strangers who would like to."""

from __future__ import annotations

import pickle
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from firesteel.runtime.model.elements import Batch, EndOfData, Watermark
from firesteel.runtime.network import (
    AuthenticationError,
    InputGate,
    NetworkEnvironment,
    NetworkError,
    PeerLostError,
    ResultPartition,
    ResultSubpartition,
)
from firesteel.runtime.network.auth import Handshake
from firesteel.runtime.network.frames import EVENT, pack_header
from firesteel.runtime.network.tls import InternalTls
from firesteel.runtime.network.tls_settings import TlsSettings
from firesteel.runtime.slot.control import ControlConnection, accept_control, dial_control
from firesteel.testing import eventually
from tests.support.services.certificates import make_certificates

SECRET = b"the job's secret"
Add = Callable[..., NetworkEnvironment]
_unpickled: list[str] = []


def note_unpickling(name: str) -> None:
    _unpickled.append(name)


class Bomb:
    """Tells when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return note_unpickling, ("bomb",)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def tls_of(place: Path, name: str = "server", ca: str = "ca") -> InternalTls:
    return InternalTls(
        TlsSettings(str(place / f"{name}.pem"), str(place / f"{name}.key"), str(place / f"{ca}.pem")),
    )


@pytest.fixture(scope="module")
def tls(certificates: Path) -> InternalTls:
    return tls_of(certificates)


@pytest.fixture
def add() -> Iterator[Add]:
    made: list[NetworkEnvironment] = []

    def make(my_id: int, tls: InternalTls | None, secret: bytes = SECRET, **options: Any) -> NetworkEnvironment:
        made.append(NetworkEnvironment(secret, my_id=my_id, tls=tls, **options))
        return made[-1]

    yield make
    for environment in made:
        environment.close()


def drive(until: Callable[[], bool], *environments: NetworkEnvironment) -> None:
    deadline = time.monotonic() + 60
    while not until():
        assert time.monotonic() < deadline, "nothing came of it in time"
        for environment in environments:
            environment.poll(0.001)


def connect(*environments: NetworkEnvironment) -> None:
    addresses = {environment.my_id: environment.address for environment in environments}
    for environment in environments:
        environment.begin_connect(addresses)
    drive(lambda: not any(environment.missing_peers() for environment in environments), *environments)


def channel(sender: NetworkEnvironment, receiver: NetworkEnvironment, number: int) -> tuple[ResultPartition, InputGate]:
    subpartition, gate = ResultSubpartition(), InputGate(1)
    sender.register_output(number, receiver.my_id, subpartition)
    receiver.register_input(number, sender.my_id, gate.channels[0])
    return ResultPartition([subpartition]), gate


def read(gate: InputGate) -> list[Any]:
    items: list[Any] = []
    while (polled := gate.poll()) is not None:
        items += polled[1].values if isinstance(polled[1], Batch) else [polled[1]]
    return items


def test_records_and_events_in_both_directions(add: Add, tls: InternalTls) -> None:
    one, two, three = add(0, tls), add(1, tls), add(2, tls)
    ways = [channel(a, b, number) for number, (a, b) in enumerate([(one, two), (two, one), (three, one), (one, three)])]
    connect(one, two, three)
    received: list[list[Any]] = [[] for _ in ways]
    large = b"x" * 5_000_000
    for part, _ in ways:
        part.emit_to(0, list(range(1000)), None)
        part.broadcast_event(Watermark(5))
        part.emit_to(0, [large], None)
        part.broadcast_event(EndOfData())

    def all_there() -> bool:
        for items, (_, gate) in zip(received, ways, strict=True):
            items += read(gate)
        return all(items and items[-1] == EndOfData() for items in received)

    drive(all_there, one, two, three)
    assert received == [[*range(1000), Watermark(5), large, EndOfData()]] * len(ways)


def test_credit_that_comes_with_the_end_of_the_handshake_counts(add: Add, tls: InternalTls) -> None:
    """It is in the same bytes as the acceptor's verdict, so that the socket will not say that it is there."""
    acceptor, dialer = add(0, tls), add(1, tls)
    part, gate = channel(dialer, acceptor, 1)
    part.emit_to(0, ["early"], None)
    part.flush()
    connect(acceptor, dialer)
    received: list[Any] = []
    drive(lambda: bool(received.extend(read(gate)) or received), acceptor, dialer)
    assert received == ["early"]


@pytest.mark.parametrize("encrypted", [False, True])
def test_no_more_is_sent_than_credit_allows(add: Add, tls: InternalTls, encrypted: bool) -> None:
    sender, receiver = add(0, tls if encrypted else None), add(1, tls if encrypted else None)
    part, gate = channel(sender, receiver, 1)
    connect(sender, receiver)

    def is_full() -> bool:
        while part.has_room:
            part.emit_to(0, [bytes(100_000)], None)
            part.flush()
        return gate.queued == 10

    drive(is_full, sender, receiver)
    while sender.poll(0.02) | receiver.poll(0.02):
        pass
    # all of the gate's buffers are taken, and the rest waits where it was made
    assert (gate.queued, part.queued) == (10, 10)
    received: list[Any] = []
    drive(lambda: len(received.extend(read(gate)) or received) == 20, sender, receiver)
    assert part.queued == 0


def test_a_peer_that_goes_is_lost_and_one_that_says_goodbye_is_not(add: Add, tls: InternalTls) -> None:
    lost: list[tuple[int, NetworkError]] = []
    stays = add(0, tls, on_peer_lost=lambda peer, error: lost.append((peer, error)))
    leaves, dies = add(1, tls), add(2, tls)
    connect(stays, leaves, dies)
    leaves.close()
    drive(lambda: 1 in stays._gone, stays)
    assert not lost
    dies._connections[0].sock.close()
    drive(lambda: bool(lost), stays)
    assert [(peer, type(error)) for peer, error in lost] == [(2, PeerLostError)]


def test_closing_with_a_peer_that_does_not_read(add: Add, tls: InternalTls) -> None:
    sender, receiver = add(0, tls), add(1, tls)
    part, _ = channel(sender, receiver, 1)
    connect(sender, receiver)
    while receiver.poll(0.02) | sender.poll(0.02):
        pass
    part.emit_to(0, [bytes(50_000_000)], None)
    part.flush()
    sender.poll(0)
    assert not sender.is_drained
    closing = threading.Thread(target=sender.close)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()


def test_a_certificate_of_another_authority_is_turned_away(
    add: Add, tls: InternalTls, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    acceptor = add(0, tls)
    # it trusts the acceptor, but not the other way round
    mixed = tls_of(certificates, "stranger", "other-ca")
    mixed._client.load_verify_locations(certificates / "ca.pem")
    for stranger, says in [(tls_of(certificates, "stranger", "other-ca"), "not trusted"), (mixed, "has refused TLS")]:
        dialer = add(1, stranger)
        dialer.begin_connect({0: acceptor.address})
        with pytest.raises(AuthenticationError, match=says) as caught:
            drive(lambda: False, acceptor, dialer)
        assert "security.ssl.internal.ca" in str(caught.value)
        drive(lambda: not acceptor._handshakes, acceptor)
    assert not acceptor._connections
    assert "refused a connection" in caplog.text


def test_a_certificate_alone_is_not_enough(add: Add, tls: InternalTls) -> None:
    acceptor, dialer = add(0, tls), add(1, tls, b"another job's secret")
    dialer.begin_connect({0: acceptor.address})
    with pytest.raises(AuthenticationError, match="secret"):
        drive(lambda: False, acceptor, dialer)
    assert not acceptor._connections


def _plain_words() -> bytes:
    payload = pickle.dumps(Bomb())
    return Handshake(SECRET, 1, dialing=True).take_outgoing() + pack_header(0, EVENT, 0, len(payload)) + payload


def _without_certificate(address: tuple[str, int]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(address, timeout=60) as sock, context.wrap_socket(sock) as wrapped:
        wrapped.sendall(_plain_words())
        wrapped.recv(1)  # raises what the other side says


def _plain(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=60) as sock:
        sock.sendall(_plain_words())
        answer = b""
        while data := sock.recv(1000):
            answer += data
        assert not answer.startswith(b"FSN1")
        raise ConnectionResetError("closed")


@pytest.mark.parametrize("stranger", [_without_certificate, _plain])
def test_strangers_are_turned_away_before_anything_is_unpickled(
    add: Add, tls: InternalTls, stranger: Callable[[tuple[str, int]], None]
) -> None:
    environment = add(0, tls)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(stranger, environment.address)
        drive(done.done, environment)
        assert isinstance(done.exception(), OSError)
    assert not environment._connections
    assert not _unpickled


def test_a_plain_dialer_is_not_connected(add: Add, tls: InternalTls) -> None:
    acceptor, dialer = add(0, tls), add(1, None)
    dialer.begin_connect({0: acceptor.address})
    drive(lambda: bool(dialer._trouble), acceptor, dialer)
    assert dialer.missing_peers()
    assert not acceptor._connections


def test_a_plain_acceptor_is_not_connected(add: Add, tls: InternalTls) -> None:
    acceptor, dialer = add(0, None), add(1, tls)
    dialer.begin_connect({0: acceptor.address})
    drive(lambda: bool(dialer._trouble) or 0 in dialer._gone, acceptor, dialer)
    assert not dialer._connections
    assert not acceptor._connections


class Listener:
    """Accepts one control connection at a time, as the JobMaster's host does."""

    def __init__(self, tls: InternalTls | None):
        self._tls = tls
        self._pool = ThreadPoolExecutor(1)
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self.sock.getsockname()

    def accept(self) -> Any:
        return self._pool.submit(lambda: accept_control(self.sock.accept()[0], SECRET, self._tls))

    def close(self) -> None:
        self.sock.close()
        self._pool.shutdown()


@pytest.fixture
def listener(tls: InternalTls) -> Iterator[Listener]:
    made = Listener(tls)
    yield made
    made.close()


class Heard:
    """What came over a control connection."""

    def __init__(self, connection: ControlConnection):
        self.connection = connection
        self.messages: list[Any] = []
        self.lost: list[str] = []
        connection.start(self.messages.append, self.lost.append, "test-control")


def test_control_messages_from_many_threads_in_both_directions(listener: Listener, tls: InternalTls) -> None:
    accepted = listener.accept()
    slot = Heard(dial_control(listener.address, SECRET, 3, tls))
    master = Heard(accepted.result(60))
    assert (master.connection.peer_id, slot.connection.peer_id) == (3, 0)

    def send(end: Heard, sender: int) -> None:
        for number in range(20):
            end.connection.send((sender, number, bytes(number * 20_000)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, [slot, slot, master, master], range(4)))
    for end, senders in ((master, (0, 1)), (slot, (2, 3))):
        eventually(lambda end=end: len(end.messages) == 40, timeout=60)
        assert {len(message[2]) for message in end.messages} == {number * 20_000 for number in range(20)}
        for sender in senders:
            assert [number for who, number, _ in end.messages if who == sender] == list(range(20))
    slot.connection.close()
    eventually(lambda: master.lost == ["connection closed"], timeout=60)
    assert not slot.lost
    master.connection.close()


def test_control_connections_of_strangers(listener: Listener, certificates: Path) -> None:
    for stranger, error in [
        (tls_of(certificates, "stranger", "other-ca"), AuthenticationError),
        (None, (OSError, AuthenticationError)),
    ]:
        accepted = listener.accept()
        with pytest.raises(error):  # type: ignore[call-overload]
            dial_control(listener.address, SECRET, 1, stranger)
        assert isinstance(accepted.exception(60), AuthenticationError)
    assert not _unpickled


def test_a_slot_that_the_jobmaster_does_not_trust_is_told(listener: Listener, certificates: Path) -> None:
    mixed = tls_of(certificates, "stranger", "other-ca")
    mixed._client.load_verify_locations(certificates / "ca.pem")
    accepted = listener.accept()
    with pytest.raises(AuthenticationError, match="unknown ca") as caught:
        dial_control(listener.address, SECRET, 1, mixed)
    assert "security.ssl.internal.certificate" in str(caught.value)
    assert isinstance(accepted.exception(60), AuthenticationError)


def test_a_slot_with_another_jobs_secret(listener: Listener, tls: InternalTls) -> None:
    accepted = listener.accept()
    with pytest.raises(AuthenticationError, match="rejected the job's secret"):
        dial_control(listener.address, b"another secret", 1, tls)
    assert isinstance(accepted.exception(60), AuthenticationError)
