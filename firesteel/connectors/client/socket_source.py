"""A source of text records that a TCP server sends."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.connectors.base.rate_limiter import Clock
from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.connectors.base.split_reader import SequentialSplitReader
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SplitEnumeratorContext,
)

__all__ = ["SocketConnectionError", "SocketReader", "SocketSource", "SocketSplit"]

RECEIVE_BYTES = 64 * 1024
MIN_WAIT_S = 0.001
MAX_WAIT_S = 0.02


class SocketConnectionError(FiresteelError):
    """The connection to the server cannot be made, or broke."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"The socket source's connection to {host}:{port} failed: {reason}.",
            hint=f"A server must be listening before the job starts, for instance: nc -lk {port}",
        )
        self.host = host
        self.port = port


@dataclass(frozen=True)
class SocketSplit:
    """The one connection; it has no position, what was received cannot be received again."""

    split_id: str = "socket"


class SocketSource(Source[SocketSplit]):
    r"""Connects to a TCP server and emits each delimited piece of text, until the server closes.

    Records received before a failure are not received again. Text is UTF-8, what is not is replaced. With the
    delimiter ``\n`` a ``\r`` before it belongs to it. Only one reader connects, at any parallelism.
    """

    name: ClassVar[str] = "Socket Stream"
    emits_own_records = True

    def __init__(self, host: str, port: int, delimiter: str = "\n", *, clock: Clock = time.monotonic) -> None:
        if not 0 < port < 65536:
            raise InvalidProgramError(f"SocketSource: {port} is not a TCP port.")
        if not delimiter:
            raise InvalidProgramError("SocketSource: the delimiter must not be empty.")
        self.host = host
        self.port = port
        self.delimiter = delimiter
        self.clock = clock

    def __repr__(self) -> str:
        return f"SocketSource({self.host}:{self.port})"

    def get_boundedness(self) -> Boundedness:
        """Unbounded, although the server may end it."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    def can_rewind(self) -> bool:
        """A socket gives its lines once."""
        return False

    def create_enumerator(self, context: SplitEnumeratorContext) -> OwnedSplitEnumerator[SocketSplit]:
        """One split, for the first reader."""
        return OwnedSplitEnumerator(context, [SocketSplit()])

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[SocketSplit]
    ) -> OwnedSplitEnumerator[SocketSplit]:
        """Continues with the split if no reader had it."""
        return OwnedSplitEnumerator(context, state)

    def create_reader(self, context: ReaderContext) -> SocketReader:
        """A reader that connects once it has the split."""
        return SocketReader(context, self)


class SocketReader(SequentialSplitReader[SocketSplit]):
    """Receives what is there without ever waiting for it."""

    def __init__(self, context: ReaderContext, source: SocketSource) -> None:
        super().__init__(context)
        self._source = source
        self._delimiter = source.delimiter.encode()
        self._clock = source.clock
        self._addresses: deque[tuple[socket.AddressFamily, Any]] = deque()
        self._socket: socket.socket | None = None
        self._connected = False
        self._closed_by_server = False
        self._received = bytearray()
        self._records: list[str] = []
        self._emitted = 0
        self._wait_s = MIN_WAIT_S
        self._available_at = 0.0

    def open_split(self, split: SocketSplit) -> None:
        """Begins to connect."""
        try:
            found = socket.getaddrinfo(self._source.host, self._source.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise self._failed(error.strerror or str(error)) from error
        self._addresses = deque((family, address) for family, _, _, _, address in found)
        self._connect_next("no address")

    def read_split(self, split: SocketSplit, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits received records, else receives once."""
        if self._emitted >= len(self._records) and not self._closed_by_server:
            self._receive()
        begin = self._emitted
        end = min(begin + max_records, len(self._records))
        if end > begin:
            self._emitted = end
            self._wait_s = MIN_WAIT_S
            output.collect(split.split_id, self._records[begin:end])
        if end < len(self._records):
            return InputStatus.MORE_AVAILABLE
        if self._closed_by_server:
            return InputStatus.END_OF_INPUT
        if end > begin:
            return InputStatus.MORE_AVAILABLE
        self._available_at = self._clock() + self._wait_s
        self._wait_s = min(self._wait_s * 2, MAX_WAIT_S)
        return InputStatus.NOTHING_AVAILABLE

    def snapshot_split(self, split: SocketSplit) -> SocketSplit:
        """The split: there is no position to go back to."""
        return split

    def available_at(self) -> float | None:
        """Soon after records came, later the longer there are none."""
        return self._available_at if self.has_split() else None

    def close_split(self) -> None:
        """Closes the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _receive(self) -> None:
        assert self._socket is not None
        if not self._connected and not self._finish_connecting():
            return
        try:
            piece = self._socket.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            raise self._failed(error.strerror or str(error)) from error
        delimiter = self._delimiter
        unsearched = max(len(self._received) - len(delimiter) + 1, 0)
        self._received += piece
        if not piece:
            self._closed_by_server = True
        elif self._received.find(delimiter, unsearched) < 0:
            return
        pieces = bytes(self._received).split(delimiter)
        self._received = bytearray(pieces.pop())
        if self._closed_by_server and self._received:
            pieces.append(bytes(self._received))
        records = [piece.decode("utf-8", "replace") for piece in pieces]
        if delimiter == b"\n":
            records = [record.removesuffix("\r") for record in records]
        self._records, self._emitted = records, 0

    def _finish_connecting(self) -> bool:
        assert self._socket is not None
        poller = select.poll()
        poller.register(self._socket, select.POLLOUT)
        if not poller.poll(0):
            return False
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._connect_next(os.strerror(code))
            return False
        self._connected = True
        return True

    def _connect_next(self, reason: str) -> None:
        """Begins to connect to the next of the host's addresses; ``reason`` is why the one before failed."""
        while self._addresses:
            self.close_split()
            family, address = self._addresses.popleft()
            self._socket = socket.socket(family, socket.SOCK_STREAM)
            self._socket.setblocking(False)
            code = self._socket.connect_ex(address)
            if code in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
                return
            reason = os.strerror(code)
        raise self._failed(reason)

    def _failed(self, reason: str) -> SocketConnectionError:
        return SocketConnectionError(self._source.host, self._source.port, reason)
