"""Connection handshake of a new socket: connecting, TLS if it is enabled, then authentication."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from typing import TYPE_CHECKING, TypeAlias

from firesteel.runtime.network.auth import Handshake
from firesteel.runtime.network.errors import AuthenticationError

if TYPE_CHECKING:
    from firesteel.runtime.network.tls import InternalTls, TlsSocket

__all__ = ["Address", "HandshakingSocket"]

Address: TypeAlias = tuple[str, int]


class HandshakingSocket:
    """Drives a Handshake over a non-blocking socket."""

    __slots__ = ("_handshake", "_tls", "_unsent", "deadline", "dialled", "remote", "sock")

    def __init__(self, sock: socket.socket, handshake: Handshake, deadline: float, dialled: int | None, remote: str):
        self.sock: socket.socket | TlsSocket = sock
        self.deadline = deadline
        self.dialled = dialled
        """The peer that was dialled; None if it was the other side who did."""
        self.remote = remote
        self._handshake = handshake
        self._unsent = b""
        self._tls: TlsSocket | None = None

    @classmethod
    def dial(cls, address: Address, peer_id: int, secret: bytes, my_id: int, deadline: float) -> HandshakingSocket:
        """Starts to connect to a peer."""
        host, port = address
        family, kind, protocol, _, resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, protocol)
        try:
            _prepare(sock)
            with contextlib.suppress(BlockingIOError):
                sock.connect(resolved)
        except OSError:
            sock.close()
            raise
        return cls(sock, Handshake(secret, my_id, dialing=True), deadline, peer_id, f"{host}:{port}")

    @classmethod
    def accepted(cls, sock: socket.socket, secret: bytes, my_id: int, deadline: float) -> HandshakingSocket:
        """Starts the handshake on a connection that a peer opened."""
        remote = "an unknown address"
        with contextlib.suppress(OSError):
            _prepare(sock)
            host, port = sock.getpeername()[:2]
            remote = f"{host}:{port}"
        return cls(sock, Handshake(secret, my_id, dialing=False), deadline, None, remote)

    def secure(self, tls: InternalTls, scratch: bytearray) -> None:
        """Has everything encrypted, from the first byte on."""
        assert isinstance(self.sock, socket.socket)
        wrap = tls.server if self.dialled is None else tls.client
        self.sock = self._tls = wrap(self.sock, scratch)

    @property
    def peer_id(self) -> int | None:
        """The id that the other side claims; trusted when the handshake has finished."""
        return self._handshake.peer_id

    @property
    def wants_write(self) -> bool:
        """Whether bytes wait for the socket to become writable."""
        return bool(self._unsent) or (self._tls is not None and self._tls.has_unsent)

    def advance(self) -> bool:
        """Does what the socket allows without waiting; whether the handshake has finished."""
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            error = OSError(code, os.strerror(code))
            raise error if self._tls is None else self._tls.explain(error)
        handshake = self._handshake
        try:
            if self._tls is not None:
                self._tls.do_handshake()
            self._send()
            while not self._unsent and (needed := handshake.needed):
                data = self.sock.recv(needed)
                if not data:
                    raise ConnectionResetError(
                        errno.ECONNRESET, "the other side closed the connection before it had authenticated"
                    )
                self._feed(data)
                self._send()
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            if error.errno == errno.ENOTCONN:  # still connecting
                return False
            raise error if self._tls is None else self._tls.explain(error) from None
        return handshake.done and not self._unsent

    def _feed(self, data: bytes) -> None:
        try:
            self._handshake.feed(data)
        except AuthenticationError:
            with contextlib.suppress(OSError):
                self.sock.send(self._handshake.take_outgoing())
            raise
        if self.dialled not in (None, self.peer_id) and self.peer_id is not None:
            raise AuthenticationError(
                f"expected process {self.dialled} at {self.remote} but reached process {self.peer_id}"
            )

    def _send(self) -> None:
        self._unsent += self._handshake.take_outgoing()
        if self._unsent:
            sent = self.sock.send(self._unsent)
            self._unsent = self._unsent[sent:]


def _prepare(sock: socket.socket) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
