"""Mutual TLS between the processes of a job.

The bytes are encrypted in memory and not by a socket that does it all, for two reasons. A read takes everything that
has arrived, so that nothing stays hidden in a library's buffer while the loop waits for the socket. And one thread may
send while another receives, which an OpenSSL connection itself does not allow.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from firesteel.config.cluster_options import (
    SSL_INTERNAL_CA,
    SSL_INTERNAL_CERTIFICATE,
    SSL_INTERNAL_ENABLED,
    SSL_INTERNAL_KEY,
)
from firesteel.config.tls_files import TlsConfigurationError, load_authorities, load_certificate
from firesteel.runtime.network.errors import AuthenticationError
from firesteel.runtime.network.tls_settings import TlsSettings

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["SCRATCH_BYTES", "InternalTls", "TlsSocket"]

SCRATCH_BYTES = 128 * 1024
"""Encrypted bytes that are received at once."""

_WRITE_BYTES = 128 * 1024
"""Bytes that are encrypted at once, and held until the socket has taken them."""

_MAX_HANDSHAKE_ROUNDS = 8
"""More than a handshake takes."""


class InternalTls:
    """Certificate, key and authorities of this process, ready for connections in either role."""

    def __init__(self, settings: TlsSettings):
        self._settings = settings
        self._client = self._context(ssl.PROTOCOL_TLS_CLIENT)
        self._server = self._context(ssl.PROTOCOL_TLS_SERVER)
        # connections are never resumed, and a ticket would be an unexpected message
        self._server.num_tickets = 0
        self._check_own_certificate()

    def client(self, sock: socket.socket, scratch: bytearray | None = None) -> TlsSocket:
        """Wraps a connection that this side has dialled in TLS."""
        return TlsSocket(sock, self._client, server_side=False, scratch=scratch)

    def server(self, sock: socket.socket, scratch: bytearray | None = None) -> TlsSocket:
        """Wraps a connection that the other side has dialled in TLS."""
        return TlsSocket(sock, self._server, server_side=True, scratch=scratch)

    def _context(self, protocol: ssl._SSLMethod) -> ssl.SSLContext:
        settings = self._settings
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # as in Flink: a certificate of the authority is trusted on any host
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION
        load_certificate(context, settings.certificate, SSL_INTERNAL_CERTIFICATE, settings.key, SSL_INTERNAL_KEY)
        load_authorities(context, settings.ca, SSL_INTERNAL_CA)
        return context

    def _check_own_certificate(self) -> None:
        """Runs a handshake with itself, so that an invalid certificate fails here, where the reason is known."""
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        sides = (
            self._client.wrap_bio(to_client, to_server, server_side=False),
            self._server.wrap_bio(to_server, to_client, server_side=True),
        )
        try:
            for _ in range(_MAX_HANDSHAKE_ROUNDS):
                for side in sides:
                    with contextlib.suppress(ssl.SSLWantReadError):
                        side.do_handshake()
        except ssl.SSLError as error:
            settings = self._settings
            raise TlsConfigurationError(
                f"The certificate {settings.certificate} ({SSL_INTERNAL_CERTIFICATE.key}) does not pass the check "
                f"against {settings.ca} ({SSL_INTERNAL_CA.key}): {_reason(error)}",
                hint="Every process checks the certificates of the others. They must be issued by one of these "
                "authorities, be valid today, and allow both server and client authentication if they "
                "restrict their use.",
            ) from None


class TlsSocket:
    """A connection with the methods of a socket that the network stack uses. For one sender and one receiver.

    Over a non-blocking socket, BlockingIOError stands for all that has to be waited for. After one from ``sendmsg``,
    the same bytes have to be given again, as they are encrypted already.
    """

    __slots__ = (
        "_accepted",
        "_established",
        "_incoming",
        "_lock",
        "_outgoing",
        "_peer_ended",
        "_scratch",
        "_sock",
        "_tls",
        "_unsent",
    )

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_side: bool, scratch: bytearray | None):
        self._sock = sock
        self._scratch = memoryview(bytearray(SCRATCH_BYTES) if scratch is None else scratch)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)
        self._lock = threading.Lock()
        self._unsent = memoryview(b"")
        self._accepted = 0
        self._established = False
        self._peer_ended = False

    # -- handshake ----------------------------------------------------------------------------------

    def do_handshake(self) -> None:
        """Returns when both sides have proved who they are; ssl.SSLError if one has not."""
        while not self._established:
            try:
                self._tls.do_handshake()
                self._established = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                self._encrypted()
                with contextlib.suppress(OSError):  # sends the other side the reason, if possible
                    self._push()
                raise
            self._encrypted()
            self._push()
            if not self._established:
                self._receive()
                if self._peer_ended:
                    raise ConnectionResetError("the other side closed the connection during the TLS handshake")
        self._push()

    @property
    def has_unsent(self) -> bool:
        """Whether encrypted bytes wait for the socket to become writable."""
        return bool(self._unsent)

    def explain(self, error: OSError) -> Exception:
        """What a failure before the job's secret was proved means: an AuthenticationError if TLS is the reason."""
        if not isinstance(error, ssl.SSLError):
            # a send fails once the other side has closed, but why it did may have arrived before
            try:
                self._sock.setblocking(False)
                self.recv(1)
            except ssl.SSLError as told:
                error = told
            except OSError:
                return error
            else:
                return error
        text = _reason(error)
        if isinstance(error, ssl.SSLCertVerificationError):
            return AuthenticationError(
                f"the other side's certificate is not trusted by {SSL_INTERNAL_CA.key}: {text}",
                hint=f"It must be issued by an authority in the file of {SSL_INTERNAL_CA.key} and be valid today.",
            )
        if "ALERT" in (error.reason or ""):
            return AuthenticationError(
                f"the other side has refused TLS with {SSL_INTERNAL_CERTIFICATE.key}: {text}",
                hint=f"The certificate of {SSL_INTERNAL_CERTIFICATE.key} must be issued by an authority that all "
                f"processes have in the file of {SSL_INTERNAL_CA.key}, and be valid today.",
            )
        return AuthenticationError(
            f"TLS ({SSL_INTERNAL_ENABLED.key}) failed: {text}",
            hint=f"The peer may not use TLS, or may not present a certificate: {SSL_INTERNAL_ENABLED.key} must be true "
            "in all processes of a job.",
        )

    # -- sending ------------------------------------------------------------------------------------

    def sendmsg(self, parts: Sequence[bytes | memoryview]) -> int:
        """How many bytes of the parts, taken together, the socket has taken."""
        if not self._unsent:
            self._accepted = self._encrypt(parts)
        self._push()
        return self._accepted

    def send(self, data: bytes) -> int:
        """How many of the bytes the socket has taken."""
        return self.sendmsg((data,))

    def sendall(self, data: bytes) -> None:
        """Sends everything; for a blocking socket."""
        view = memoryview(data)
        while view:
            sent = self._encrypt((view,))
            self._sock.sendall(self._unsent)
            self._unsent = self._unsent[:0]
            view = view[sent:]

    def _encrypt(self, parts: Sequence[bytes | memoryview]) -> int:
        data: ReadableBuffer = parts[0]
        if len(parts) > 1 or len(parts[0]) > _WRITE_BYTES:
            taken: list[bytes | memoryview] = []
            room = _WRITE_BYTES
            for part in parts:
                if len(part) >= room:
                    taken.append(memoryview(part)[:room])
                    break
                taken.append(part)
                room -= len(part)
            # small frames share a record: each has a price of its own
            data = taken[0] if len(taken) == 1 else b"".join(taken)
        with self._lock:
            accepted = self._tls.write(data)
        self._encrypted()
        return accepted

    def _encrypted(self) -> None:
        """Takes over what has been encrypted."""
        with self._lock:
            new = self._outgoing.read()
        if new:
            self._unsent = memoryview(bytes(self._unsent) + new if self._unsent else new)

    def _push(self) -> None:
        while self._unsent:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]

    # -- receiving ----------------------------------------------------------------------------------

    def recvmsg_into(self, buffers: Sequence[memoryview]) -> tuple[int]:
        """Fills the buffers in turn with everything that has arrived; 0 bytes are the end.

        The buffers together must have room for twice what is received at once. Then nothing is left that could be
        decrypted, and waiting for the socket to become readable misses nothing.
        """
        filled = 0
        left = iter(buffers)
        buffer = next(left)
        while True:
            while n := self._decrypt(buffer):
                filled += n
                buffer = buffer[n:]
                while not buffer:
                    following = next(left, None)
                    if following is None:
                        return (filled,)
                    buffer = following
            if filled or self._peer_ended:
                return (filled,)
            self._receive()

    def recv_into(self, buffer: WriteableBuffer) -> int:
        """Fills the buffer with something of what has arrived; 0 bytes are the end."""
        view = memoryview(buffer)
        while True:
            n = self._decrypt(view)
            if n or self._peer_ended:
                return n
            self._receive()

    def recv(self, most: int) -> bytes:
        """Something of what has arrived; b"" is the end."""
        buffer = bytearray(most)
        return bytes(buffer[: self.recv_into(buffer)])

    def makefile(self, mode: str) -> io.BufferedReader:
        """The bytes as a file to read from; for a blocking socket."""
        assert mode == "rb", mode
        return io.BufferedReader(_TlsReader(self), 64 * 1024)

    def _decrypt(self, view: memoryview) -> int:
        """How many bytes of those received were decrypted; 0 if more are needed, or if there will be no more."""
        try:
            with self._lock:
                # into a buffer it returns a number, unlike its declaration
                n: int = self._tls.read(len(view), view)  # type: ignore[assignment]
        except ssl.SSLWantReadError:
            return 0
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            n = 0
        if not n:
            # with or without a goodbye of TLS: the protocols above have their own
            self._peer_ended = True
        return n

    def _receive(self) -> None:
        n = self._sock.recv_into(self._scratch)
        with self._lock:
            if n:
                self._incoming.write(self._scratch[:n])
            else:
                self._incoming.write_eof()
                self._peer_ended = not self._established

    # -- the socket itself --------------------------------------------------------------------------

    def fileno(self) -> int:
        """The descriptor of the socket."""
        return self._sock.fileno()

    def getsockopt(self, level: int, option: int) -> int:
        """An option of the socket."""
        return self._sock.getsockopt(level, option)

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        """Sets an option of the socket."""
        self._sock.setsockopt(level, option, value)

    def settimeout(self, timeout_s: float | None) -> None:
        """How long the socket may make wait."""
        self._sock.settimeout(timeout_s)

    def shutdown(self, how: int) -> None:
        """Ends the connection in one or both directions."""
        self._sock.shutdown(how)

    def close(self) -> None:
        """Closes the socket."""
        self._sock.close()


class _TlsReader(io.RawIOBase):
    """What BufferedReader reads from."""

    def __init__(self, sock: TlsSocket):
        self._source = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        return self._source.recv_into(buffer)


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (error.reason or str(error)).lower().replace("_", " ")
