"""One encrypted connection by itself: bytes that come in pieces, sockets that are full, both ends of a handshake."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.common import Configuration
from firesteel.config.tls_files import TlsConfigurationError
from firesteel.runtime.network.tls import SCRATCH_BYTES, InternalTls, TlsSocket
from firesteel.runtime.network.tls_settings import TlsSettings, open_tls
from tests.support.services.certificates import make_certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def settings(place: Path, name: str = "server", ca: str = "ca") -> TlsSettings:
    return TlsSettings(str(place / f"{name}.pem"), str(place / f"{name}.key"), str(place / f"{ca}.pem"))


@pytest.fixture(params=["TLSv1_2", "TLSv1_3"])
def ends(request: pytest.FixtureRequest, certificates: Path) -> Iterator[tuple[TlsSocket, TlsSocket]]:
    """Dialled and accepted, over non-blocking sockets with little room."""
    tls = InternalTls(settings(certificates))
    tls._client.maximum_version = ssl.TLSVersion[request.param]
    socks = socket.socketpair()
    for sock in socks:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    pair = tls.client(socks[0]), tls.server(socks[1])
    shake_hands(*pair)
    assert pair[0]._tls.version() == request.param.replace("_", ".")
    yield pair
    for sock in socks:
        sock.close()


def shake_hands(*pair: TlsSocket) -> None:
    waiting = list(pair)
    for _ in range(100):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except BlockingIOError:
                pass
        if not waiting:
            return
    raise AssertionError("the handshake does not end")


class Pieces:
    """Lets a socket receive a few bytes at a time."""

    def __init__(self, sock: socket.socket):
        self._sock = sock
        self._sizes = random.Random(1)

    def recv_into(self, buffer: memoryview) -> int:
        return self._sock.recv_into(buffer, self._sizes.randint(1, 700))

    def __getattr__(self, name: str) -> object:
        return getattr(self._sock, name)


def transfer(source: TlsSocket, target: TlsSocket, parts: list[bytes]) -> bytes:
    """Sends the parts as a connection does, and receives them; what came."""
    expected = sum(map(len, parts))
    unsent: list[bytes | memoryview] = list(parts)
    received = bytearray()
    room = bytearray(2 * SCRATCH_BYTES)
    while len(received) < expected:
        try:
            sent = source.sendmsg(unsent[:256]) if unsent else 0
            while sent:
                taken = min(sent, len(unsent[0]))
                sent -= taken
                unsent[0] = memoryview(unsent[0])[taken:]
                if not unsent[0]:
                    del unsent[0]
        except BlockingIOError:
            pass
        try:
            first = memoryview(room)[:100]
            (n,) = target.recvmsg_into([first, memoryview(room)[100:]])
            assert n, "the end, too early"
            received += room[:n]
        except BlockingIOError:
            pass
    assert not unsent
    return bytes(received)


def test_bytes_arrive_as_they_were_sent(ends: tuple[TlsSocket, TlsSocket]) -> None:
    sizes = random.Random(7)
    parts = [sizes.randbytes(size) for size in (17, 0 + 1, 3_000_000, *(sizes.randint(1, 9000) for _ in range(300)))]
    whole = b"".join(parts)
    assert transfer(*ends, parts) == whole
    assert transfer(*reversed(ends), parts) == whole  # type: ignore[call-arg]


def test_pieces_of_encrypted_records(ends: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = ends
    server._sock = Pieces(server._sock)  # type: ignore[assignment]
    whole = random.Random(3).randbytes(300_000)
    assert transfer(client, server, [whole]) == whole


def test_nothing_that_can_be_decrypted_is_left_behind(certificates: Path) -> None:
    """Whoever waits for the socket after a read that was not full must miss nothing."""
    tls = InternalTls(settings(certificates))
    socks = socket.socketpair()
    with socks[0], socks[1]:
        for sock in socks:
            sock.setblocking(False)
        client, server = tls.client(socks[0]), tls.server(socks[1])
        shake_hands(client, server)
        for size in (10, 20_000, 50_000):
            assert client.send(bytes(size)) == size
        room = bytearray(2 * SCRATCH_BYTES)
        total = 0
        while total < 70_010:
            (n,) = server.recvmsg_into([memoryview(room)])
            total += n
            assert not server._incoming.pending or socks[1].recv(1, socket.MSG_PEEK)
        with pytest.raises(BlockingIOError):
            server.recvmsg_into([memoryview(room)])


def test_a_full_socket_holds_what_is_encrypted(ends: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = ends
    data = bytes(1_000_000)
    accepted = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            accepted += client.send(data)
    assert client.has_unsent
    received = 0
    room = bytearray(2 * SCRATCH_BYTES)
    sent = None
    while sent is None or received < accepted + sent:
        try:
            received += server.recv_into(room)
        except BlockingIOError:
            pass
        if sent is None:
            try:
                sent = client.send(data)
            except BlockingIOError:
                pass
    assert received == accepted + sent


def test_the_end_is_seen(ends: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = ends
    client.send(b"last words")
    client.shutdown(socket.SHUT_WR)
    room = bytearray(2 * SCRATCH_BYTES)
    assert server.recvmsg_into([memoryview(room)]) == (10,)
    assert server.recvmsg_into([memoryview(room)]) == (0,)
    assert server.recv(10) == b""


def test_bytes_that_were_tampered_with(ends: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = ends
    client._encrypt((b"trust me",))
    changed = bytearray(client._unsent)
    changed[-1] ^= 1
    client._sock.send(changed)
    with pytest.raises(ssl.SSLError):
        server.recv(100)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"certificate": ""}, "TLS requires security.ssl.internal.certificate"),
        ({"key": ""}, "TLS requires security.ssl.internal.key"),
        ({"ca": ""}, "TLS requires security.ssl.internal.ca"),
        ({"certificate": "/missing.pem"}, "/missing.pem of security.ssl.internal.certificate cannot be read"),
        ({"key": "/missing.key"}, "/missing.key of security.ssl.internal.key cannot be read"),
        ({"ca": "/missing.pem"}, "/missing.pem of security.ssl.internal.ca cannot be read"),
        ({"ca": "{place}/server.key"}, "(security.ssl.internal.ca) cannot be used"),
        ({"key": "{place}/client.key"}, "(security.ssl.internal.key) cannot be used: the key is not that of the"),
        ({"certificate": "{place}/secret.pem", "key": "{place}/secret.key"}, "(security.ssl.internal.key) cannot be"),
        ({"ca": "{place}/other-ca.pem"}, "(security.ssl.internal.ca): unable to get local issuer certificate"),
        (
            {"certificate": "{place}/expired.pem", "key": "{place}/expired.key"},
            "expired.pem (security.ssl.internal.certificate) does not pass the check",
        ),
        ({"certificate": "{place}/expired.pem", "key": "{place}/expired.key"}, "certificate has expired"),
    ],
)
def test_what_cannot_be_set_up_says_why(certificates: Path, change: dict[str, str], says: str) -> None:
    files = {"certificate": "{place}/server.pem", "key": "{place}/server.key", "ca": "{place}/ca.pem", **change}
    configuration = Configuration().set_string("security.ssl.internal.enabled", "true")
    for name, path in files.items():
        configuration.set_string(f"security.ssl.internal.{name}", path.format(place=certificates))
    with pytest.raises(TlsConfigurationError) as caught:
        open_tls(TlsSettings.of(configuration))
    assert says in str(caught.value)
    assert caught.value.hint


def test_off_unless_asked_for(certificates: Path) -> None:
    configuration = Configuration().set_string("security.ssl.internal.ca", str(certificates / "ca.pem"))
    assert TlsSettings.of(configuration) is None
    assert open_tls(None) is None
