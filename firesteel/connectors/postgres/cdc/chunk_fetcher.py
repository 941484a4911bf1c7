"""Chunk fetcher: reads one chunk of a table in a thread of its own."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

from firesteel.connectors.postgres.cdc.capture_check import present_name, table_renamed, table_replaced
from firesteel.connectors.postgres.cdc.capture_session import connect_capture
from firesteel.connectors.postgres.cdc.captured_table import quote
from firesteel.connectors.postgres.cdc.errors import UnreadableValueError
from firesteel.connectors.postgres.cdc.options import CdcOptions
from firesteel.connectors.postgres.cdc.split import ChunkSplit
from firesteel.connectors.postgres.cdc.transaction_snapshot import TransactionSnapshot
from firesteel.connectors.postgres.connection import import_psycopg, translating

__all__ = ["ChunkFetcher", "FetchedRows"]

MAX_WAITING = 2
"""Batches of rows that are fetched ahead."""
_STOP_CHECK_S = 0.1
_JOIN_TIMEOUT_S = 5.0
"""A thread that waits for an unreachable server longer than that ends by itself later."""
_CANCEL_TIMEOUT_S = 1.0

FetchedRows = list[tuple[Any, ...]]
"""Values of the table's columns, then those of its ``key_selection``."""


class ChunkFetcher:
    """Reads the rest of a chunk in one transaction. ``snapshot`` is there before the first rows are."""

    def __init__(self, options: CdcOptions, chunk: ChunkSplit, delay_s: float = 0.0) -> None:
        self._options = options
        self._delay = delay_s
        self._chunk = chunk
        self._fetched: queue.Queue[FetchedRows] = queue.Queue(MAX_WAITING)
        self._stopping = threading.Event()
        self._has_ended = threading.Event()
        self._failure: BaseException | None = None
        self._connection: Any = None
        self.snapshot: TransactionSnapshot | None = None
        self._thread = threading.Thread(target=self._run, name=f"fetch {chunk.split_id}", daemon=True)
        self._thread.start()

    def take(self) -> FetchedRows | None:
        """The next rows, None if none are there now; raises what went wrong, after all rows before it."""
        ended = self._has_ended.is_set()
        try:
            return self._fetched.get_nowait()
        except queue.Empty:
            if ended and self._failure is not None:
                raise self._failure from None
            return None

    @property
    def is_at_end(self) -> bool:
        """Whether all rows have been taken."""
        return self._has_ended.is_set() and self._failure is None and self._fetched.empty()

    def close(self) -> None:
        """Stops the thread, also in the middle of a statement."""
        self._stopping.set()
        deadline = time.monotonic() + _JOIN_TIMEOUT_S
        while self._thread.is_alive() and time.monotonic() < deadline:
            connection = self._connection
            if connection is not None:
                try:
                    connection.cancel_safe(timeout=5.0)
                except Exception:  # noqa: BLE001, S110 - the connection may be gone already, which will do
                    pass
            # again, if the statement has begun only after that
            self._thread.join(_CANCEL_TIMEOUT_S)

    def _run(self) -> None:
        try:
            if not self._stopping.wait(self._delay):
                self._read()
        except BaseException as error:  # noqa: BLE001 - raised again in the task's thread
            self._failure = error
        finally:
            self._has_ended.set()

    def _read(self) -> None:
        table, server = self._chunk.table, self._options.connection.describe()
        psycopg = import_psycopg()
        connection = connect_capture(self._options, self._chunk.split_id, autocommit=False)
        try:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            self._connection = connection
            with translating(f"Table {table.table_id} cannot be read", server, table=table.table_id):
                self._read_rows(connection)
        finally:
            connection.close()

    def _read_rows(self, connection: Any) -> None:
        table, chunk = self._chunk.table, self._chunk
        snapshot = connection.execute(
            "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"
        ).fetchone()
        self.snapshot = TransactionSnapshot.parse(*snapshot)
        name = present_name(connection, table)
        condition, parameters = table.range_condition(chunk.low, chunk.high)
        selection = ", ".join([*(quote(column.name) for column in table.columns), *table.key_selection])
        connection.execute(
            f"DECLARE chunk NO SCROLL CURSOR FOR SELECT {selection} FROM {table.sql_name(*name)} "  # noqa: S608
            f"WHERE {condition} ORDER BY {table.key_expressions}",
            parameters,
        )
        self._check_name(connection, name)
        while not self._stopping.is_set():
            rows = self._fetch(connection)
            if not rows:
                return
            self._put(rows)

    def _check_name(self, connection: Any, name: tuple[str, str]) -> None:
        """Raises if the cursor reads another table than the captured one. It holds a lock, so the name stays."""
        table, options = self._chunk.table, self._options
        quoted = ".".join(quote(part).replace("%%", "%") for part in name)
        (oid,) = connection.execute("SELECT to_regclass(%s)::oid", [quoted]).fetchone()
        if table.oid and oid != table.oid:
            raise table_replaced(table, options.connection.describe())
        if options.schema_change_behavior == "exception" and name != (table.schema, table.name):
            raise table_renamed(table, ".".join(name), options.connection.describe())

    def _fetch(self, connection: Any) -> FetchedRows:
        table, server, psycopg = self._chunk.table, self._options.connection.describe(), import_psycopg()
        cursor = connection.execute(f"FETCH {self._options.fetch_size} FROM chunk")
        try:
            rows: FetchedRows = cursor.fetchall()
        except (psycopg.DataError, ValueError) as error:
            raise UnreadableValueError(
                f"Table {table.table_id} at {server} has a value that cannot be read: {error}",
                server=server,
                table=table.table_id,
                hint="Python has nothing for it, such as dates after the year 9999 or infinity.",
            ) from error
        return rows

    def _put(self, rows: FetchedRows) -> None:
        while not self._stopping.is_set():
            try:
                self._fetched.put(rows, timeout=_STOP_CHECK_S)
            except queue.Full:
                continue
            return
