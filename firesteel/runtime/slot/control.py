"""The control connection between a slot and its JobMaster: authenticated, then pickled messages with a length.

With TLS all of it is encrypted, from the first byte on.
"""

from __future__ import annotations

import pickle
import socket
import struct
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cloudpickle

from firesteel.runtime.model.messages import Address
from firesteel.runtime.network.auth import Handshake

if TYPE_CHECKING:
    from firesteel.runtime.network.tls import InternalTls, TlsSocket

__all__ = ["ControlConnection", "accept_control", "dial_control"]

_LENGTH = struct.Struct("!Q")
HANDSHAKE_TIMEOUT_S = 10.0
SEND_TIMEOUT_S = 60.0
"""Of a slot: the JobMaster has many to serve."""
JOB_MASTER_SEND_TIMEOUT_S = 10.0
"""Of the JobMaster, whose other slots wait meanwhile: a slot has a thread that does nothing but receive."""


class ControlConnection:
    """Sends from any thread; receives in a thread of its own that never touches operator state."""

    def __init__(self, sock: socket.socket | TlsSocket, peer_id: int, send_timeout_s: float = SEND_TIMEOUT_S):
        self.peer_id = peer_id
        self._sock = sock
        self._sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # a peer that stops reading must not block the sender for ever; receiving has no deadline of its own,
        # heartbeats detect a lost peer
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(send_timeout_s), 0))
        self.limit_silence(SEND_TIMEOUT_S)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def limit_silence(self, seconds: float) -> None:
        """How long what was sent may stay without an answer of the other side's system; then the connection is lost.

        A network that drops packets, or a machine that is gone, closes nothing: without a limit the system keeps
        sending again for a quarter of an hour. Both sides send heartbeats, so that there is always something to answer.
        """
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))

    def send(self, message: Any) -> None:
        """Sends a message; raises ConnectionError if the other side is gone."""
        # by value where a class is only defined in the user's script, as that of a source's splits may be
        payload = cloudpickle.dumps(message, 5)
        try:
            with self._lock:
                self._sock.sendall(_LENGTH.pack(len(payload)) + payload)
        except OSError as error:
            # it may have been sent in part, so that nothing else can follow; the receiving thread reports the loss
            self._shut_down()
            raise ConnectionError(f"the control connection is lost: {error}") from error

    def start(self, on_message: Callable[[Any], None], on_lost: Callable[[str], None], name: str) -> None:
        """Starts receiving; ``on_lost`` comes exactly once, after everything received, unless closed from here."""
        self._thread = threading.Thread(target=self._receive, args=(on_message, on_lost), name=name, daemon=True)
        self._thread.start()

    def _receive(self, on_message: Callable[[Any], None], on_lost: Callable[[str], None]) -> None:
        reason = "connection closed"
        try:
            with self._sock.makefile("rb") as stream:
                while True:
                    header = stream.read(_LENGTH.size)
                    if len(header) < _LENGTH.size:
                        break
                    (length,) = _LENGTH.unpack(header)
                    payload = stream.read(length)
                    if len(payload) < length:
                        break
                    on_message(pickle.loads(payload))
        except OSError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - an unreadable message ends the connection with an error
            reason = f"a message could not be handled: {type(error).__name__}: {error}"
        if not self._closed:
            on_lost(reason)

    def _shut_down(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other side closed first

    def close(self) -> None:
        """Closes the connection and waits for the receiving thread to end."""
        self._closed = True
        self._shut_down()
        self._sock.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5.0)


def dial_control(address: Address, secret: bytes, my_id: int, tls: InternalTls | None = None) -> ControlConnection:
    """Connects a slot to its JobMaster."""
    sock = socket.create_connection(address, timeout=HANDSHAKE_TIMEOUT_S)
    handshake = Handshake(secret, my_id, dialing=True)
    return _authenticate(sock if tls is None else tls.client(sock), handshake)


def accept_control(sock: socket.socket, secret: bytes, tls: InternalTls | None = None) -> ControlConnection:
    """Takes a slot's connection."""
    sock.settimeout(HANDSHAKE_TIMEOUT_S)
    handshake = Handshake(secret, 0, dialing=False)
    return _authenticate(sock if tls is None else tls.server(sock), handshake, JOB_MASTER_SEND_TIMEOUT_S)


def _authenticate(
    sock: socket.socket | TlsSocket, handshake: Handshake, send_timeout_s: float = SEND_TIMEOUT_S
) -> ControlConnection:
    try:
        if not isinstance(sock, socket.socket):
            sock.do_handshake()
        while not handshake.done:
            sock.sendall(handshake.take_outgoing())
            data = sock.recv(handshake.needed)
            if not data:
                raise ConnectionError("the other side closed the connection during authentication")
            handshake.feed(data)
        sock.sendall(handshake.take_outgoing())
    except BaseException as error:  # noqa: BLE001 - raised again below
        failure = error if isinstance(sock, socket.socket) or not isinstance(error, OSError) else sock.explain(error)
        rejection = handshake.take_outgoing()
        try:
            if rejection:
                sock.sendall(rejection)
        except OSError:
            pass  # no receiver is left
        sock.close()
        raise failure from None
    assert handshake.peer_id is not None
    return ControlConnection(sock, handshake.peer_id, send_timeout_s)
