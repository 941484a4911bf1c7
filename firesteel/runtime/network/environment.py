"""Network environment of a process: its listening socket, its connections to peers, and its event loop."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING

from firesteel.runtime.network.config import DEFAULT_NETWORK_CONFIG, NetworkConfig
from firesteel.runtime.network.connection import Connection
from firesteel.runtime.network.errors import (
    AuthenticationError,
    NetworkError,
    PeerLostError,
    PeersMissingError,
)
from firesteel.runtime.network.gate import InputChannel
from firesteel.runtime.network.handshaking import Address, HandshakingSocket
from firesteel.runtime.network.io_loop import IOLoop
from firesteel.runtime.network.partition import ResultSubpartition

if TYPE_CHECKING:
    from firesteel.runtime.network.tls import InternalTls, TlsSocket

__all__ = ["NetworkEnvironment"]

_log = logging.getLogger(__name__)

_SCRATCH_BYTES = 256 * 1024
_REDIAL_INTERVAL_S = 0.1
_MAX_HANDSHAKES = 1024
_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


class NetworkEnvironment:
    """Connects this process to the job's others and moves buffers between subpartitions and input channels.

    Of two processes the one with the higher id dials. Everything happens inside ``poll``, in the thread that
    calls it; only ``wakeup`` may be called by others. ``on_peer_lost`` is called for a connection that ended
    although it was needed; without it, poll raises.
    """

    def __init__(
        self,
        secret: bytes,
        bind_host: str = "127.0.0.1",
        my_id: int = 0,
        *,
        advertised_host: str | None = None,
        config: NetworkConfig = DEFAULT_NETWORK_CONFIG,
        tls: InternalTls | None = None,
        on_peer_lost: Callable[[int, NetworkError], None] | None = None,
    ):
        if not secret:
            raise ValueError("the job's secret must not be empty")
        self.my_id = my_id
        self.on_peer_lost = on_peer_lost
        self._secret = secret
        self._config = config
        self._loop = IOLoop()
        self._scratch = bytearray(_SCRATCH_BYTES)
        self._tls = tls
        self._encrypted_scratch = bytearray(0 if tls is None else _SCRATCH_BYTES // 2)
        self._connections: dict[int, Connection] = {}
        self._gone: dict[int, NetworkError | None] = {}
        self._flushing: list[Connection] = []
        self._handshakes: set[HandshakingSocket] = set()
        self._peers: dict[int, Address] = {}
        self._peers_known = False
        self._dial_at: dict[int, float] = {}
        self._trouble: dict[int, str] = {}
        self._connect_error: NetworkError | None = None
        self._connecting = False
        self._closed = False
        self._waiting_for_peer: dict[int, list[Callable[[Connection], None]]] = {}
        try:
            self._listener: socket.socket | None = socket.create_server((bind_host, 0), backlog=1024)
        except OSError:
            self._loop.close()
            raise
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener.fileno(), self._on_incoming)
        host = advertised_host or (socket.gethostname() if bind_host in _WILDCARDS else bind_host)
        self.address: Address = (host, self._listener.getsockname()[1])
        """Where other processes reach this one."""

    # -- peers --------------------------------------------------------------------------------------

    def connect_peers(self, peers: Mapping[int, Address], timeout_s: float) -> None:
        """Returns when there is an authenticated connection to every peer; raises after timeout_s."""
        deadline = monotonic() + timeout_s
        self._connecting = True
        try:
            self.begin_connect(peers)
            while not self._has_all_peers():
                remaining = deadline - monotonic()
                if remaining <= 0:
                    raise PeersMissingError(self.missing_peers(), timeout_s)
                self.poll(min(remaining, _REDIAL_INTERVAL_S))
                if self._connect_error is not None:
                    raise self._connect_error
        finally:
            self._connecting = False

    def begin_connect(self, peers: Mapping[int, Address]) -> None:
        """Starts what connect_peers waits for; ``poll`` then continues it."""
        self._peers = {peer: address for peer, address in peers.items() if peer != self.my_id}
        self._dial_at = {peer: 0.0 for peer in self._peers if peer < self.my_id and peer not in self._connections}
        self._peers_known = True
        self._stop_listening_if_complete()

    def missing_peers(self) -> dict[int, str]:
        """The peers without a connection, each with what is known about why."""
        return {
            peer: self._trouble.get(
                peer,
                f"no response from {address[0]}:{address[1]}" if peer < self.my_id else "it has not dialled",
            )
            for peer, address in self._peers.items()
            if peer not in self._connections and peer not in self._gone
        }

    def _has_all_peers(self) -> bool:
        # asked once per new connection, so it must not describe all that are missing
        return all(peer in self._connections or peer in self._gone for peer in self._peers)

    # -- channels -----------------------------------------------------------------------------------

    def register_output(self, channel_id: int, peer_id: int, subpartition: ResultSubpartition) -> None:
        """Sends the subpartition to the peer, where an input of the same channel id receives it."""
        self._with_connection(peer_id, lambda connection: connection.add_output(channel_id, subpartition))

    def register_input(self, channel_id: int, peer_id: int, input_channel: InputChannel) -> None:
        """Receives into the input channel what the peer sends as that channel id."""
        self._with_connection(peer_id, lambda connection: connection.add_input(channel_id, input_channel))

    def _with_connection(self, peer_id: int, action: Callable[[Connection], None]) -> None:
        connection = self._connections.get(peer_id)
        if connection is not None:
            action(connection)
        elif peer_id in self._gone:
            raise self._gone[peer_id] or PeerLostError(peer_id, "it has closed the connection")
        else:
            self._waiting_for_peer.setdefault(peer_id, []).append(action)

    # -- the loop -----------------------------------------------------------------------------------

    def poll(self, timeout_s: float) -> bool:
        """Sends, receives, and waits at most so long if there was nothing to send; whether anything happened.

        Returns at once after sending, as that may have made room for a task to go on.
        """
        progress = bool(self._flushing) and self._flush()
        if self._dial_at or self._handshakes:
            timeout_s = min(timeout_s, self._tend_handshakes())
        if self._closed:  # by on_peer_lost
            return True
        happened = self._loop.poll(0.0 if progress else timeout_s)
        if self._flushing:
            progress = self._flush() or progress
        return happened or progress

    @property
    def is_drained(self) -> bool:
        """Whether everything that credit allows to send has been handed to the operating system."""
        return not any(connection.has_unsent for connection in self._connections.values())

    def wakeup(self) -> None:
        """Makes poll return; safe from any thread."""
        self._loop.wakeup()

    def add_reader(self, source: socket.socket | int, callback: Callable[[], None]) -> None:
        """Calls back from poll whenever the socket is readable."""
        self._loop.add_reader(source if isinstance(source, int) else source.fileno(), callback)

    def remove_reader(self, source: socket.socket | int) -> None:
        """No longer calls back; to be called before the socket is closed."""
        self._loop.remove_reader(source if isinstance(source, int) else source.fileno())

    def add_writer(self, source: socket.socket | int, callback: Callable[[], None]) -> None:
        """Calls back from poll whenever the socket is writable."""
        self._loop.add_writer(source if isinstance(source, int) else source.fileno(), callback)

    def remove_writer(self, source: socket.socket | int) -> None:
        """No longer calls back; to be called before the socket is closed."""
        self._loop.remove_writer(source if isinstance(source, int) else source.fileno())

    def close(self, flush_timeout_s: float = 0.0) -> None:
        """Closes all sockets; first sends, for at most so long, what credit allows to send. Idempotent."""
        if self._closed:
            return
        deadline = monotonic() + flush_timeout_s
        try:
            while any(connection.has_unsent for connection in self._connections.values()):
                remaining = deadline - monotonic()
                if remaining <= 0:
                    break
                self.poll(remaining)
        except NetworkError as error:
            _log.debug("while closing: %s", error)
        finally:
            self._close_all()

    def _close_all(self) -> None:
        self._closed = True
        self._stop_listening()
        for connection in self._connections.values():
            connection.close(say_bye=True)
        self._connections.clear()
        self._flushing.clear()
        self._dial_at.clear()
        self._loop.close()

    def _flush(self) -> bool:
        flushing = self._flushing
        self._flushing = []
        progress = False
        for connection in flushing:
            connection.flushing = False
            if not connection.write_blocked and connection.flush():
                progress = True
        return progress

    # -- called by connections ----------------------------------------------------------------------

    def wants_flush(self, connection: Connection) -> None:
        """The connection has something new to send."""
        connection.flushing = True
        self._flushing.append(connection)

    def wants_write(self, connection: Connection, wanted: bool) -> None:
        """The connection's socket is full and must be watched, or no longer."""
        if wanted:
            self._loop.add_writer(connection.sock.fileno(), connection.flush)
        else:
            self._loop.remove_writer(connection.sock.fileno())

    def connection_ended(self, connection: Connection, error: NetworkError | None) -> None:
        """The connection can no longer be used: because of an error, or because the peer has closed it in order."""
        peer_id = connection.peer_id
        self._forget_socket(connection.sock)
        connection.close(say_bye=False)
        if connection in self._flushing:
            self._flushing.remove(connection)
        del self._connections[peer_id]
        self._gone[peer_id] = error
        if error is not None:
            self._peer_lost(peer_id, error)

    def _peer_lost(self, peer_id: int, error: NetworkError) -> None:
        if self._connecting:
            self._connect_error = error
        elif self.on_peer_lost is not None:
            self.on_peer_lost(peer_id, error)
        else:
            raise error

    # -- connecting ---------------------------------------------------------------------------------

    def _tend_handshakes(self) -> float:
        now = monotonic()
        for handshake in [h for h in self._handshakes if h.deadline <= now]:
            self._handshake_failed(handshake, TimeoutError("it did not authenticate in time"))
        for peer in [peer for peer, at in self._dial_at.items() if at <= now]:
            del self._dial_at[peer]
            self._dial(peer)
        due = [h.deadline for h in self._handshakes]
        due += self._dial_at.values()
        return max(0.0, min(due) - now) if due else float("inf")

    def _dial(self, peer: int) -> None:
        try:
            handshake = HandshakingSocket.dial(self._peers[peer], peer, self._secret, self.my_id, self._deadline())
        except OSError as error:
            self._redial_later(peer, error)
        else:
            self._start_handshake(handshake)

    def _on_incoming(self) -> None:
        assert self._listener is not None
        while self._listener is not None:
            try:
                sock, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:  # the caller has gone again, or descriptors have run out
                _log.warning("could not accept a connection: %s", error)
                return
            if len(self._handshakes) >= _MAX_HANDSHAKES:
                sock.close()
            else:
                self._start_handshake(HandshakingSocket.accepted(sock, self._secret, self.my_id, self._deadline()))

    def _start_handshake(self, handshake: HandshakingSocket) -> None:
        if self._tls is not None:
            handshake.secure(self._tls, self._encrypted_scratch)
        self._handshakes.add(handshake)
        fd = handshake.sock.fileno()
        self._loop.add_reader(fd, lambda: self._advance(handshake))
        self._loop.add_writer(fd, lambda: self._advance(handshake))

    def _advance(self, handshake: HandshakingSocket) -> None:
        try:
            finished = handshake.advance()
        except (OSError, AuthenticationError) as error:
            self._handshake_failed(handshake, error)
            return
        if handshake.wants_write:
            self._loop.add_writer(handshake.sock.fileno(), lambda: self._advance(handshake))
        else:
            self._loop.remove_writer(handshake.sock.fileno())
        if finished:
            self._handshakes.discard(handshake)
            self._forget_socket(handshake.sock)
            assert handshake.peer_id is not None
            self._establish(handshake.sock, handshake.peer_id)

    def _handshake_failed(self, handshake: HandshakingSocket, error: Exception) -> None:
        self._handshakes.discard(handshake)
        self._forget_socket(handshake.sock)
        handshake.sock.close()
        peer = handshake.dialled
        if peer is None:
            # The job continues: any process may connect to an open port.
            _log.warning("refused a connection from %s: %s", handshake.remote, error)
            if handshake.peer_id is not None:
                self._trouble[handshake.peer_id] = f"a connection from {handshake.remote} was refused: {error}"
        elif isinstance(error, AuthenticationError):
            self._gone[peer] = error
            self._peer_lost(peer, error)
        else:
            self._redial_later(peer, error)

    def _redial_later(self, peer: int, error: Exception) -> None:
        host, port = self._peers[peer]
        self._trouble[peer] = f"{host}:{port}: {error}"
        self._dial_at[peer] = monotonic() + _REDIAL_INTERVAL_S

    def _establish(self, sock: socket.socket | TlsSocket, peer_id: int) -> None:
        if peer_id in self._connections or peer_id in self._gone or peer_id == self.my_id:
            _log.warning("refused a second connection of process %d", peer_id)
            sock.close()
            return
        connection = Connection(sock, peer_id, self, self._scratch, self._config)
        self._connections[peer_id] = connection
        self._loop.add_reader(sock.fileno(), connection.on_readable)
        for action in self._waiting_for_peer.pop(peer_id, ()):
            action(connection)
        self._stop_listening_if_complete()
        if self._tls is not None:
            # what came together with the end of the handshake has left the socket already
            connection.on_readable()

    def _stop_listening_if_complete(self) -> None:
        # a peer may dial before this process has received the list of its peers
        if self._peers_known and self._has_all_peers():
            self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._forget_socket(self._listener)
            self._listener.close()
            self._listener = None
        for handshake in self._handshakes:
            self._forget_socket(handshake.sock)
            handshake.sock.close()
        self._handshakes.clear()

    def _forget_socket(self, sock: socket.socket | TlsSocket) -> None:
        fd = sock.fileno()
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)

    def _deadline(self) -> float:
        return monotonic() + self._config.handshake_timeout_s
