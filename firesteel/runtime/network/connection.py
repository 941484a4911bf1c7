"""One authenticated TCP connection between two processes, with all their channels multiplexed on it."""

from __future__ import annotations

import contextlib
import pickle
import socket
from collections import deque
from typing import TYPE_CHECKING, Protocol

from firesteel.runtime.columns.wire import EncodedColumns
from firesteel.runtime.model.elements import ControlEvent
from firesteel.runtime.network.config import NetworkConfig
from firesteel.runtime.network.errors import NetworkError, PeerLostError, ProtocolError
from firesteel.runtime.network.frames import BYE, CREDIT, DATA, EVENT, FrameDecoder, pack_header
from firesteel.runtime.network.gate import InputChannel
from firesteel.runtime.network.partition import ResultSubpartition

if TYPE_CHECKING:
    from firesteel.runtime.network.tls import TlsSocket

__all__ = ["Connection", "ConnectionOwner"]

_WRITE_BYTES = 256 * 1024
"""Frames are taken out of their subpartitions until one write has this many bytes."""

_WRITE_FRAMES = 128
"""Frames of one write: two parts each, those of columns four, and systems take 1024 parts."""

_MAX_READS_PER_TURN = 8
"""Reads in a row from one connection before others get their turn."""


class ConnectionOwner(Protocol):
    """What a connection needs from the environment it lives in."""

    def wants_flush(self, connection: Connection) -> None:
        """The connection has something new to send."""

    def wants_write(self, connection: Connection, wanted: bool) -> None:
        """The connection's socket is full and must be watched, or no longer."""

    def connection_ended(self, connection: Connection, error: NetworkError | None) -> None:
        """The connection can no longer be used: because of an error, or because the peer has closed it in order."""


class _Output:
    """A subpartition as the connection sees it."""

    __slots__ = ("channel_id", "connection", "ready", "requested", "subpartition")

    def __init__(self, connection: Connection, channel_id: int, subpartition: ResultSubpartition):
        self.connection = connection
        self.channel_id = channel_id
        self.subpartition = subpartition
        self.ready = False
        # Nothing is sent, not even events, before the first credit: by then the consumer is known to exist.
        self.requested = False

    def on_available(self) -> None:
        if self.connection.closed_by_peer:
            raise PeerLostError(self.connection.peer_id, "it has closed the connection, but is still sent to")
        if not self.ready and self.requested and self.subpartition.is_available:
            self.ready = True
            self.connection.output_ready(self)

    def on_credit(self, credit: int) -> None:
        self.requested = True
        self.subpartition.sender.add_credit(credit)
        self.on_available()


class _Input:
    """An input channel as the connection sees it."""

    __slots__ = ("channel", "channel_id", "connection")

    def __init__(self, connection: Connection, channel_id: int, channel: InputChannel):
        self.connection = connection
        self.channel_id = channel_id
        self.channel = channel

    def on_credit(self) -> None:
        self.connection.credit_ready(self)


class Connection:
    """Sends what credit allows as fast as the socket takes it, and hands received frames to their channels.

    Frames stay in their subpartitions until the socket has taken everything before them, so what is queued
    is bounded by credit and by what the task was allowed to produce, never by a buffer in between.
    """

    __slots__ = (
        "_announcing",
        "_decoder",
        "_early_credit",
        "_inputs",
        "_outputs",
        "_owner",
        "_peer_said_bye",
        "_pending",
        "_pending_bytes",
        "_ready",
        "_send_error",
        "closed_by_peer",
        "flushing",
        "peer_id",
        "sock",
        "write_blocked",
    )

    def __init__(
        self,
        sock: socket.socket | TlsSocket,
        peer_id: int,
        owner: ConnectionOwner,
        scratch: bytearray,
        config: NetworkConfig,
    ):
        self.sock = sock
        self.peer_id = peer_id
        self._owner = owner
        self._decoder = FrameDecoder(scratch, config.max_frame_bytes)
        self._outputs: dict[int, _Output] = {}
        self._inputs: dict[int, _Input] = {}
        self._early_credit: dict[int, int] = {}
        self._ready: deque[_Output] = deque()
        self._announcing: list[_Input] = []
        self._pending: list[bytes | memoryview] = []
        self._pending_bytes = 0
        self._send_error: OSError | None = None
        self._peer_said_bye = False
        self.closed_by_peer = False
        """Whether the peer has ended the connection in good order."""
        self.write_blocked = False
        self.flushing = False
        """Whether the owner knows already that there is something to send."""

    # -- channels -----------------------------------------------------------------------------------

    def add_output(self, channel_id: int, subpartition: ResultSubpartition) -> None:
        """Sends the subpartition's buffers to the peer's input channel of that id."""
        if channel_id in self._outputs:
            raise ValueError(f"output channel {channel_id} to process {self.peer_id} exists already")
        if not subpartition.serialized:
            raise ValueError(f"output channel {channel_id} leaves the process but holds objects")
        output = self._outputs[channel_id] = _Output(self, channel_id, subpartition)
        subpartition.on_available = output.on_available
        credit = self._early_credit.pop(channel_id, 0)
        if credit:
            output.on_credit(credit)

    def add_input(self, channel_id: int, channel: InputChannel) -> None:
        """Hands the buffers of the peer's output channel of that id to the input channel."""
        if channel_id in self._inputs:
            raise ValueError(f"input channel {channel_id} from process {self.peer_id} exists already")
        route = self._inputs[channel_id] = _Input(self, channel_id, channel)
        channel.receiver.on_credit = route.on_credit
        self.credit_ready(route)

    def output_ready(self, output: _Output) -> None:
        """The output has a frame that may be sent."""
        self._ready.append(output)
        if not self.flushing:
            self._owner.wants_flush(self)

    def credit_ready(self, route: _Input) -> None:
        """The input has credit to announce."""
        self._announcing.append(route)
        if not self.flushing:
            self._owner.wants_flush(self)

    @property
    def has_unsent(self) -> bool:
        """Whether there are frames that credit allows to send but that have not been."""
        return self._send_error is None and bool(self._pending or self._ready or self._announcing)

    # -- sending ------------------------------------------------------------------------------------

    def flush(self) -> bool:
        """Sends until nothing is left to send or the socket is full; whether anything was sent."""
        progress = False
        while self._send_error is None:
            if not self._pending:
                self._take_frames()
                if not self._pending:
                    break
            try:
                sent = self.sock.sendmsg(self._pending)
            except (BlockingIOError, InterruptedError):
                if not self.write_blocked:
                    self.write_blocked = True
                    self._owner.wants_write(self, True)
                return progress
            except OSError as error:
                # Data that the peer sent before it closed may still be unread, and may contain its goodbye: the
                # reading side determines the outcome.
                self._send_error = error
                break
            progress = True
            if sent == self._pending_bytes:
                self._pending.clear()
                self._pending_bytes = 0
            else:
                self._drop_sent(sent)
        if self.write_blocked:
            self.write_blocked = False
            self._owner.wants_write(self, False)
        return progress

    def _take_frames(self) -> None:
        pending = self._pending
        size = 0
        if self._announcing:
            credits = b"".join(
                [
                    pack_header(route.channel_id, CREDIT, credit, 0)
                    for route in self._announcing
                    if (credit := route.channel.receiver.take_credit())
                ]
            )
            self._announcing.clear()
            if credits:
                pending.append(credits)
                size = len(credits)
        ready = self._ready
        most = _WRITE_FRAMES * 2
        while ready and size < _WRITE_BYTES and len(pending) < most:
            output = ready.popleft()
            subpartition = output.subpartition
            polled = subpartition.poll()
            if polled is None:
                output.ready = False
                continue
            item, backlog = polled
            kind = DATA
            if type(item) is not bytes and type(item) is not EncodedColumns:
                item = pickle.dumps(item, 5)
                kind = EVENT
            length = len(item)
            header = pack_header(output.channel_id, kind, backlog, length)
            pending.append(header)
            if type(item) is bytes:
                pending.append(item)
            else:
                pending.extend(item.parts())  # type: ignore[union-attr]
            size += len(header) + length
            if subpartition.sender.is_available:
                ready.append(output)
            else:
                output.ready = False
        self._pending_bytes = size

    def _drop_sent(self, sent: int) -> None:
        self._pending_bytes -= sent
        for index, part in enumerate(self._pending):
            if sent < len(part):
                self._pending[index] = memoryview(part)[sent:]
                del self._pending[:index]
                return
            sent -= len(part)

    # -- receiving ----------------------------------------------------------------------------------

    def on_readable(self) -> None:
        """Reads what has arrived and hands it to the channels."""
        error: NetworkError | None = None
        try:
            for _ in range(_MAX_READS_PER_TURN):
                buffers = self._decoder.buffers()
                n = self.sock.recvmsg_into(buffers)[0]
                if n == 0:
                    error = self._ended("it closed the connection")
                    break
                for channel_id, kind, count, payload in self._decoder.received(n):
                    self._on_frame(channel_id, kind, count, payload)
                if n < sum(map(len, buffers)):
                    return
            else:
                return
        except (BlockingIOError, InterruptedError):
            return
        except OSError as os_error:
            error = self._ended(os_error.strerror or str(os_error))
        except ProtocolError as protocol_error:
            error = PeerLostError(self.peer_id, protocol_error.message)
            error.__cause__ = protocol_error
        self._owner.connection_ended(self, error)

    def _on_frame(self, channel_id: int, kind: int, count: int, payload: bytes | bytearray) -> None:
        if kind == CREDIT:
            output = self._outputs.get(channel_id)
            if output is None:
                self._early_credit[channel_id] = self._early_credit.get(channel_id, 0) + count
            else:
                output.on_credit(count)
            return
        if kind == BYE:
            self._peer_said_bye = True
            return
        route = self._inputs.get(channel_id)
        if route is None:
            raise ProtocolError(f"received a frame for channel {channel_id}, which does not exist")
        if kind == DATA:
            route.channel.on_data(payload, count)
        else:
            route.channel.on_event(self._load_event(payload), count)

    @staticmethod
    def _load_event(payload: bytes | bytearray) -> ControlEvent:
        try:
            event = pickle.loads(payload)
        except Exception as error:
            raise ProtocolError(f"an event could not be read: {error}") from error
        if not isinstance(event, ControlEvent):
            raise ProtocolError(f"expected an event, not a {type(event).__qualname__}")
        return event

    def _ended(self, reason: str) -> PeerLostError | None:
        if not self._peer_said_bye:
            return PeerLostError(self.peer_id, reason)
        waiting = sum(len(output.subpartition.sender) for output in self._outputs.values())
        if waiting:
            return PeerLostError(self.peer_id, f"it closed the connection while {waiting} buffers waited for it")
        self.closed_by_peer = True
        return None

    # -- end ----------------------------------------------------------------------------------------

    def close(self, *, say_bye: bool) -> None:
        """Closes the socket in order, with a goodbye to the peer; unsent data is dropped."""
        with contextlib.suppress(OSError):
            if say_bye and not self._pending and self._send_error is None:
                # Closing a socket with unread bytes resets the connection, and the goodbye would be lost.
                scratch = bytearray(65536)
                with contextlib.suppress(BlockingIOError):
                    while self.sock.recv_into(scratch):
                        pass
                self.sock.send(pack_header(0, BYE, 0, 0))
                self.sock.shutdown(socket.SHUT_WR)
        self.sock.close()
        self._send_error = OSError("the connection is closed")
        for output in self._outputs.values():
            output.requested = False  # buffers of tasks still running pile up in the subpartition only
        self._ready.clear()
        self._announcing.clear()
        self._pending.clear()
