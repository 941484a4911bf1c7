"""Replication stream: receives the log of a replication slot in a thread of its own."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import deque
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.connectors.postgres.cdc.capture_session import connect_capture
from firesteel.connectors.postgres.cdc.errors import CaptureSetupError, ReplicationSlotLostError, SlotInUseError
from firesteel.connectors.postgres.cdc.options import CdcOptions
from firesteel.connectors.postgres.cdc.pgoutput import (
    Frame,
    Keepalive,
    decode_frame,
    format_lsn,
    parse_lsn,
    status_update,
)
from firesteel.connectors.postgres.errors import PostgresConnectionError, PostgresError

__all__ = ["ReplicationStream"]

MAX_BUFFERED_BYTES = 8 << 20
_AT_ONCE = 256
_IN_USE_WAIT_S = 0.2
_QUIET_THRESHOLD_S = 0.5
_PAGE_BYTES = 8192
_STATEMENT_TIMEOUT_S = 60.0
_JOIN_TIMEOUT_S = 5.0
"""A thread that waits for an unreachable server longer than that ends by itself later."""
_IN_USE = "55006"
_NO_SUCH_OBJECT = "42704"
_NOT_IN_PREREQUISITE_STATE = "55000"


class ReplicationStream:
    """What the slot sends from a position on: frames in order, then why there are no more.

    The thread answers the server also while no frames are taken: the server ends a connection that is silent. That
    changes up to a position are not needed any more (``confirm``) is sent once; other messages leave it unset.
    Otherwise a server that is to stop would wait for a confirmation of everything it has sent.
    """

    def __init__(self, options: CdcOptions, start_lsn: int, delay_s: float = 0.0) -> None:
        self._options = options
        self._start_lsn = start_lsn
        self._delay = delay_s
        self._frames: deque[Frame] = deque()
        self._buffered = 0
        self._lock = threading.Lock()
        self._stopping = False
        self._failure: BaseException | None = None
        self._received = start_lsn
        self._target = 0
        self._to_confirm = 0
        self._status_at = 0.0
        self._last_frame_at = 0.0
        self.is_connected = False
        self._bell, self._wake = socket.socketpair()
        self._bell.setblocking(False)
        self._wake.setblocking(False)
        self._thread = threading.Thread(target=self._run, name=f"replication {options.slot_name}", daemon=True)
        self._thread.start()

    def take(self, limit: int) -> list[Frame]:
        """Up to so many frames that are there now; raises what ended the stream, after all frames before it."""
        with self._lock:
            frames = self._frames
            was_full = self._buffered >= MAX_BUFFERED_BYTES
            taken = [frames.popleft() for _ in range(min(limit, len(frames)))]
            self._buffered -= sum([_size(frame) for frame in taken])
            failure = None if taken else self._failure
            rings = was_full and self._buffered < MAX_BUFFERED_BYTES
        if rings:
            self._ring()
        if failure is not None:
            raise failure
        return taken

    @property
    def is_caught_up(self) -> bool:
        """Whether all has been taken that the log had when the stream began, and all that has come since."""
        with self._lock:
            if not self.is_connected or self._failure is not None or self._frames:
                return False
            if self._received >= self._target:
                return True
            # a page may be written of which the last record is not complete: the server does not send up to there
            is_quiet = time.monotonic() >= self._last_frame_at + _QUIET_THRESHOLD_S
            return self._target % _PAGE_BYTES == 0 and is_quiet

    @property
    def server_lsn(self) -> int:
        """How far the server has come, as far as is known."""
        return max(self._received, self._target)

    def confirm(self, lsn: int) -> None:
        """Nothing before this position will be asked for again."""
        with self._lock:
            self._to_confirm = max(self._to_confirm, lsn)
        self._ring()

    def close(self) -> None:
        """Ends the connection and the thread."""
        self._stopping = True
        self._ring()
        self._thread.join(_JOIN_TIMEOUT_S)
        self._bell.close()
        self._wake.close()

    def _ring(self) -> None:
        try:
            self._wake.send(b"!")
        except (BlockingIOError, OSError):
            pass  # it has been rung already, or is being closed

    # -- the thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        connection: Any = None
        try:
            self._pause(self._delay)
            connection = self._connect()
            if connection is not None:
                self._receive(connection.pgconn)
        except BaseException as error:  # noqa: BLE001 - raised again in the task's thread
            with self._lock:
                self._failure = error
        finally:
            if connection is not None:
                connection.close()

    def _connect(self) -> Any:
        """A connection that streams. That a slot is in use may be due to a reader that is about to go."""
        deadline = time.monotonic() + self._options.connection.connect_timeout_s
        while not self._stopping:
            connection = connect_capture(self._options, replication="database")
            try:
                self._check_slot(connection.pgconn)
                self._start(connection.pgconn)
            except SlotInUseError:
                connection.close()
                if time.monotonic() >= deadline:
                    raise
                self._pause(_IN_USE_WAIT_S)
            except BaseException:
                connection.close()
                raise
            else:
                return connection
        return None

    def _check_slot(self, pgconn: Any) -> None:
        options, server = self._options, self._options.connection.describe()
        result = self._execute(
            pgconn,
            "SELECT wal_status, confirmed_flush_lsn, active_pid, pg_current_wal_flush_lsn() "  # noqa: S608
            f"FROM pg_replication_slots WHERE slot_name = '{options.slot_name}'",
        )
        if result.ntuples == 0:
            raise ReplicationSlotLostError(
                f"The replication slot '{options.slot_name}' at {server} no longer exists, and the changes "
                f"from {format_lsn(self._start_lsn)} on are lost.",
                server=server,
                hint="Start the job without a checkpoint: it reads the tables again.",
            )
        status, confirmed, active, flushed = (result.get_value(0, column) for column in range(4))
        if status == b"lost" or confirmed is None:
            raise ReplicationSlotLostError(
                f"The replication slot '{options.slot_name}' at {server} fell so far behind that the server has "
                "removed the log it needs.",
                server=server,
                hint=f"Drop it with SELECT pg_drop_replication_slot('{options.slot_name}') and start the job without "
                "a checkpoint: it reads the tables again. Raise max_slot_wal_keep_size so that this does not come "
                "again.",
            )
        if active is not None:
            raise SlotInUseError(
                f"The replication slot '{options.slot_name}' at {server} is in use by server process "
                f"{active.decode()}.",
                server=server,
                hint="Every source requires its own slot: set slot_name. A reader that died may hold it for the "
                "server's wal_sender_timeout.",
            )
        if parse_lsn(confirmed.decode()) > self._start_lsn:
            raise ReplicationSlotLostError(
                f"The replication slot '{options.slot_name}' at {server} has been read up to {confirmed.decode()}; "
                f"the changes from {format_lsn(self._start_lsn)} on cannot be had again.",
                server=server,
                hint="Restore a later checkpoint, or start without one, which reads the tables again. "
                "lsn_commit_checkpoints_delay is the number of older checkpoints that stay usable.",
            )
        with self._lock:
            self._target = parse_lsn(flushed.decode())

    def _start(self, pgconn: Any) -> None:
        options = self._options
        publication = options.publication_name.replace('"', '""').replace("'", "''")
        result = self._execute(
            pgconn,
            f"START_REPLICATION SLOT {options.slot_name} LOGICAL {format_lsn(self._start_lsn)} "
            f"(proto_version '1', publication_names '\"{publication}\"')",
        )
        if result.status != _status("COPY_BOTH"):
            raise PostgresError(f"The server did not begin to stream: {result.status}.")
        self._last_frame_at = time.monotonic()
        self.is_connected = True

    def _execute(self, pgconn: Any, statement: str) -> Any:
        pgconn.send_query(statement.encode())
        deadline = time.monotonic() + _STATEMENT_TIMEOUT_S
        while pgconn.flush() == 1 or pgconn.is_busy():
            if self._stopping or time.monotonic() >= deadline:
                raise PostgresConnectionError(
                    f"The server did not respond within {_STATEMENT_TIMEOUT_S:g} s.",
                    server=self._options.connection.describe(),
                )
            self._wait(pgconn, 1.0)
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            raise self._lost("the server closed it")
        if result.status == _status("FATAL_ERROR"):
            raise self._refused(result)
        if result.status != _status("COPY_BOTH"):
            while pgconn.get_result() is not None:
                pass
        return result

    def _receive(self, pgconn: Any) -> None:
        import psycopg

        self._say(pgconn)
        while not self._stopping:
            try:
                is_more, wants_reply = self._read(pgconn)
                if wants_reply or self._to_confirm or time.monotonic() >= self._status_at:
                    self._say(pgconn)
                if not is_more:
                    self._wait(pgconn, max(self._status_at - time.monotonic(), 0.0))
                    pgconn.consume_input()
            except psycopg.OperationalError as error:
                raise self._lost(" ".join(str(error).split())) from error

    def _read(self, pgconn: Any) -> tuple[bool, bool]:
        """Takes frames from the connection; returns whether there may be more, and whether the server wants a reply."""
        wants_reply = False
        for _ in range(_AT_ONCE):
            if self._buffered >= MAX_BUFFERED_BYTES:
                return False, wants_reply
            length, data = pgconn.get_copy_data(1)
            if length == 0:
                return False, wants_reply
            if length < 0:
                result = pgconn.get_result()
                raise (
                    self._lost("the server closed it")
                    if result is None or not _sqlstate(result)
                    else self._refused(result)
                )
            frame = decode_frame(bytes(data))
            self._last_frame_at = time.monotonic()
            wants_reply |= isinstance(frame, Keepalive) and frame.wants_reply
            with self._lock:
                self._frames.append(frame)
                self._buffered += _size(frame)
                self._received = max(self._received, frame.lsn)
        return True, wants_reply

    def _say(self, pgconn: Any) -> None:
        with self._lock:
            confirmed, self._to_confirm = self._to_confirm, 0
        pgconn.put_copy_data(status_update(self._received, confirmed, time.time_ns() // 1000))
        pgconn.flush()
        self._status_at = time.monotonic() + self._options.heartbeat_interval_s

    def _wait(self, pgconn: Any, timeout_s: float) -> None:
        """Waits for the server, unless there is no room, or for this side."""
        is_full = self._buffered >= MAX_BUFFERED_BYTES
        sockets = [self._bell] if is_full else [self._bell, pgconn.socket]
        poller = select.poll()
        for each in sockets:
            poller.register(each, select.POLLIN)
        poller.poll(timeout_s * 1000)
        self._clear_bell()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopping and (left := until - time.monotonic()) > 0:
            select.select([self._bell], [], [], left)
            self._clear_bell()

    def _clear_bell(self) -> None:
        try:
            self._bell.recv(4096)
        except BlockingIOError:
            pass

    # -- errors -------------------------------------------------------------------------------------

    def _lost(self, reason: str) -> PostgresConnectionError:
        server = self._options.connection.describe()
        return PostgresConnectionError(f"The replication connection to {server} is lost: {reason}", server=server)

    def _refused(self, result: Any) -> FiresteelError:
        server, slot, sqlstate = self._options.connection.describe(), self._options.slot_name, _sqlstate(result)
        said = " ".join(result.error_message.decode(errors="replace").split())
        if sqlstate is None or sqlstate.startswith(("57P", "08", "53")):
            return self._lost(said)
        if sqlstate == _IN_USE:
            return SlotInUseError(
                f"The replication slot '{slot}' at {server} is in use: {said}",
                server=server,
                sqlstate=sqlstate,
                hint="Every source requires its own slot: set slot_name.",
            )
        if sqlstate == _NOT_IN_PREREQUISITE_STATE:
            return ReplicationSlotLostError(
                f"The replication slot '{slot}' at {server} cannot be read from: {said}",
                server=server,
                sqlstate=sqlstate,
                hint="Drop the slot and start the job without a checkpoint: it reads the tables again.",
            )
        if sqlstate == _NO_SUCH_OBJECT:
            return CaptureSetupError(
                f"The slot or the publication at {server} no longer exists: {said}",
                server=server,
                sqlstate=sqlstate,
                hint=f"The publication '{self._options.publication_name}' must exist as long as the source reads. If "
                "it was dropped, drop the slot too and start the job without a checkpoint: it reads the tables again.",
            )
        hint = "ALTER ROLE … REPLICATION" if sqlstate in ("42501", "28000") else None
        return PostgresError(f"The server refused replication ({server}): {said}", sqlstate=sqlstate, hint=hint)


def _size(frame: Frame) -> int:
    return 64 if isinstance(frame, Keepalive) else 64 + len(frame.payload)


def _status(name: str) -> Any:
    from psycopg import pq

    return pq.ExecStatus[name]


def _sqlstate(result: Any) -> str | None:
    from psycopg import pq

    code = result.error_field(pq.DiagnosticField.SQLSTATE)
    return None if code is None else code.decode()
