"""Mutual authentication of a new connection with the job's secret, before anything is unpickled.

1. The dialer sends HELLO: magic, its process id, a fresh nonce.
2. The acceptor answers with its own HELLO.
3. The dialer sends PROOF: an HMAC over role, both ids and both nonces.
4. The acceptor checks it and sends VERDICT: accepted with a proof of its own, or rejected.
5. The dialer checks that proof.

The role in each proof keeps one side from reflecting the other's. Messages have fixed sizes, so neither side
ever reads past the handshake. It neither signs nor encrypts what follows: that takes TLS around all of it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from collections.abc import Callable

from firesteel.runtime.network.errors import AuthenticationError

__all__ = ["Handshake"]

_MAGIC = b"FSN1"
_NONCE_SIZE = 32
_HELLO = struct.Struct(f"!4sI{_NONCE_SIZE}s")
_PROOF_SIZE = hashlib.sha256().digest_size
_ACCEPTED = b"\x01"
_REJECTED = b"\x00"


class Handshake:
    """One side of the handshake, without I/O: bytes in with ``feed``, bytes out with ``take_outgoing``."""

    __slots__ = (
        "_dialing",
        "_incoming",
        "_my_id",
        "_nonce",
        "_on_message",
        "_outgoing",
        "_peer_nonce",
        "_secret",
        "_size",
        "done",
        "peer_id",
    )

    def __init__(self, secret: bytes, my_id: int, *, dialing: bool):
        if not secret:
            raise ValueError("the job's secret must not be empty")
        self._secret = secret
        self._my_id = my_id
        self._dialing = dialing
        self._nonce = os.urandom(_NONCE_SIZE)
        self._peer_nonce = b""
        self._incoming = b""
        self._outgoing = self._hello() if dialing else b""
        self._size = _HELLO.size
        self._on_message: Callable[[bytes], None] = self._on_hello
        self.peer_id: int | None = None
        """Who is at the other end; to be trusted once ``done``."""
        self.done = False

    @property
    def needed(self) -> int:
        """How many bytes to feed next, at most."""
        return 0 if self.done else self._size - len(self._incoming)

    def take_outgoing(self) -> bytes:
        """Bytes to send now; also to be sent after an AuthenticationError, as they inform the other side."""
        outgoing = self._outgoing
        self._outgoing = b""
        return outgoing

    def feed(self, data: bytes) -> None:
        """Takes received bytes; raises AuthenticationError if the other side is not one of the job's."""
        if len(data) > self.needed:
            raise ValueError(f"fed {len(data)} bytes where {self.needed} were needed")
        self._incoming += data
        if len(self._incoming) == self._size:
            message = self._incoming
            self._incoming = b""
            self._on_message(message)

    def _hello(self) -> bytes:
        return _HELLO.pack(_MAGIC, self._my_id, self._nonce)

    def _on_hello(self, message: bytes) -> None:
        magic, self.peer_id, self._peer_nonce = _HELLO.unpack(message)
        if magic != _MAGIC:
            raise AuthenticationError("the peer does not use Firesteel's protocol")
        if self._dialing:
            self._outgoing += self._proof(of_dialer=True)
            self._size = len(_ACCEPTED) + _PROOF_SIZE
            self._on_message = self._on_verdict
        else:
            self._outgoing += self._hello()
            self._size = _PROOF_SIZE
            self._on_message = self._on_proof

    def _on_proof(self, message: bytes) -> None:
        if not hmac.compare_digest(message, self._proof(of_dialer=True)):
            self._outgoing += _REJECTED + bytes(_PROOF_SIZE)
            raise AuthenticationError(f"process {self.peer_id} does not have the job's secret")
        self._outgoing += _ACCEPTED + self._proof(of_dialer=False)
        self.done = True

    def _on_verdict(self, message: bytes) -> None:
        if message[:1] != _ACCEPTED:
            raise AuthenticationError(
                f"process {self.peer_id} rejected the job's secret",
                hint="Both processes must be of the same attempt of the same job.",
            )
        if not hmac.compare_digest(message[1:], self._proof(of_dialer=False)):
            raise AuthenticationError(f"process {self.peer_id} does not have the job's secret")
        self.done = True

    def _proof(self, *, of_dialer: bool) -> bytes:
        assert self.peer_id is not None
        mine, theirs = (self._my_id, self._nonce), (self.peer_id, self._peer_nonce)
        (dialer, dialer_nonce), (acceptor, acceptor_nonce) = (mine, theirs) if self._dialing else (theirs, mine)
        role = b"dialer" if of_dialer else b"acceptor"
        transcript = b"".join((_MAGIC, role, struct.pack("!II", dialer, acceptor), dialer_nonce, acceptor_nonce))
        return hmac.digest(self._secret, transcript, "sha256")
