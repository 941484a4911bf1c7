"""At-least-once writers: appended rows, upserts, and any statement, in batches."""

from __future__ import annotations

import threading
import time
import uuid
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import RecordSerializationError
from firesteel.common.types import Row, RowKind
from firesteel.connectors.postgres.connection import describe_table
from firesteel.connectors.postgres.errors import PostgresError
from firesteel.connectors.postgres.session import Session, end_sessions, find_sessions
from firesteel.connectors.postgres.sink.row_conversion import CopyFormat, values_of
from firesteel.connectors.postgres.sink.settings import SinkSettings
from firesteel.connectors.postgres.statements import UpsertStatements, columns_of, to_placeholders
from firesteel.connectors.postgres.table_description import need_table
from firesteel.spi.sink import SinkWriter, WriterContext

if TYPE_CHECKING:
    import psycopg

__all__ = ["AppendWriter", "BatchWriter", "StatementWriter", "UpsertWriter"]

_INSERT = RowKind.INSERT


class BatchWriter(SinkWriter[Any]):
    """Collects records and writes them in batches: when there are enough, at a checkpoint, and after an interval.

    Writes in the mailbox's thread, a batch at a time, which takes milliseconds. Only the interval needs a thread of its
    own; a lock keeps the two apart.
    """

    def __init__(self, context: WriterContext, settings: SinkSettings) -> None:
        self.settings = settings
        self.table_name = describe_table(settings.table)
        sink, attempt = context.sink_id[:16], context.attempt_id[:16]
        self._writer_id = uuid.uuid4().hex[:12]
        self._sessions = f"firesteel {sink} %", f"firesteel {sink} {attempt} %"
        self._own_session = f"firesteel {sink} {attempt} {self._writer_id}"
        self.session = Session(
            settings.connection, self._own_session, max_retries=settings.max_retries, prepare=self._enter
        )
        self._is_open = False
        self._rows: list[Any] = []
        self._first_at = 0.0
        """When the first of the rows came."""
        self._lock = threading.Lock()
        self._interval: _IntervalThread | None = None
        self._sent = context.get_metrics_group().counter("numRecordsSend")
        try:
            self.session.run(self.open, "The sink cannot be opened", table=self.table_name)
        except BaseException:
            self.session.close()
            raise
        self._is_open = True
        if settings.batch_interval_ms > 0 and not settings.stages:
            self._interval = _IntervalThread(settings.batch_interval_ms / 1000, self._write_if_due)

    @abstractmethod
    def open(self, connection: psycopg.Connection[Any]) -> None:
        """Checks the table and gets ready; called with the first connection."""

    def prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Sets up a further connection."""

    @abstractmethod
    def to_rows(self, values: Sequence[Any]) -> list[Any]:
        """What is kept of records until they are written."""

    @abstractmethod
    def write_rows(self, rows: list[Any]) -> None:
        """Writes a batch, wholly or not at all."""

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Collects records; writes them when there are enough."""
        rows = self.to_rows(values)
        if self._interval is None:
            self._add(rows)
            return
        with self._lock:
            self._interval.check()
            if not self._rows:
                self._first_at = time.monotonic()
            self._add(rows)

    def flush(self, end_of_input: bool) -> None:
        """Writes what has been collected."""
        with self._lock:
            if self._interval is not None:
                self._interval.check()
            self._write_all()

    def close(self) -> None:
        """Closes the connection; what was not written comes again after the restart."""
        if self._interval is not None:
            self._interval.stop()
        self.session.close()

    def _enter(self, connection: psycopg.Connection[Any]) -> None:
        if not self._is_open:
            end_sessions(connection, self.session.server, *self._sessions)
            return
        if find_sessions(connection, *self._sessions):
            raise PostgresError(
                f"Another attempt of the job writes to {self.table_name} ({self.session.server}): this one was taken "
                "for dead.",
                server=self.session.server,
                table=self.table_name,
            )
        # what is left of the connection that was lost
        end_sessions(connection, self.session.server, self._own_session, "")
        self.prepare(connection)

    def _add(self, rows: list[Any]) -> None:
        self._rows += rows
        size = self.settings.batch_size
        while len(self._rows) >= size:
            self._write(self._rows[:size])
            del self._rows[:size]

    def _write_all(self) -> None:
        if self._rows:
            self._write(self._rows)
            self._rows = []

    def _write(self, rows: list[Any]) -> None:
        self.write_rows(rows)
        self._sent.inc(len(rows))

    def _write_if_due(self) -> None:
        with self._lock:
            if self._rows and time.monotonic() - self._first_at >= self.settings.batch_interval_ms / 1000:
                self._write_all()


class AppendWriter(BatchWriter):
    """Copies batches into the table. One that was being written when the connection was lost is written again."""

    def open(self, connection: psycopg.Connection[Any]) -> None:
        """Checks the table."""
        table = need_table(connection, self.settings.table, self.session.server)
        table.check_privileges(connection, "INSERT")
        columns = table.select(self.settings.columns)
        self.columns = tuple(column.name for column in columns)
        self.target = columns_of(self.settings.table, self.columns)
        self.format = CopyFormat(columns)

    def to_rows(self, values: Sequence[Any]) -> list[Any]:
        """The records' values; of changes only insertions can be appended."""
        mapper, columns = self.settings.mapper, self.columns
        if mapper is not None:
            return [values_of(mapper(value), columns) for value in values]
        for value in values:
            if value.__class__ is Row and value._row_kind is not _INSERT:
                raise RecordSerializationError(
                    f"A record of kind {value._row_kind.name} cannot be appended to {self.table_name}.",
                    record=repr(value)[:200],
                    hint="Use upsert mode for a stream of changes.",
                )
        return [values_of(value, columns) for value in values]

    def write_rows(self, rows: list[Any]) -> None:
        """Copies the rows in one transaction."""
        self.session.run(
            lambda connection: self.format.write(connection, self.target, rows),
            f"Records cannot be written to {self.table_name}",
            table=self.table_name,
        )


class UpsertWriter(BatchWriter):
    """Inserts, updates and deletes rows by their key.

    A batch is one transaction, and doing it again changes nothing: after a failure the records since the checkpoint
    come again, and the last of each key is what stays. Until they have all come, a reader may see a key's value of
    before the failure go back to an earlier one.
    """

    def open(self, connection: psycopg.Connection[Any]) -> None:
        """Checks the table and its key."""
        settings = self.settings
        table = need_table(connection, settings.table, self.session.server)
        key = table.key(settings.key)
        columns = table.select(settings.columns)
        self.columns = tuple(column.name for column in columns)
        if missing := [name for name in key if name not in self.columns]:
            raise table.missing_key(missing)
        privileges = ["INSERT", "SELECT"] + (["UPDATE"] if len(key) < len(columns) else [])
        table.check_privileges(connection, *privileges)
        self._key = frozenset(key)
        self._format = CopyFormat(columns, extra=("integer", "boolean"))
        self._statements = UpsertStatements(settings.table, columns, key)
        self.prepare(connection)

    def prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Creates the temporary table."""
        connection.execute(self._statements.create)

    def to_rows(self, values: Sequence[Any]) -> list[Any]:
        """Pairs of whether the key is to be deleted, and the values; UPDATE_BEFORE is skipped."""
        mapper, columns = self.settings.mapper, self.columns
        rows: list[Any] = []
        for value in values:
            kind = value._row_kind if isinstance(value, Row) else _INSERT
            if kind is RowKind.UPDATE_BEFORE:
                continue
            if kind is RowKind.DELETE:
                rows.append((True, self._key_of(value) if mapper is None else values_of(mapper(value), columns)))
            else:
                rows.append((False, values_of(value if mapper is None else mapper(value), columns)))
        return rows

    def write_rows(self, rows: list[Any]) -> None:
        """Applies the rows in one transaction, the last of each key."""
        copied = [(number, delete, *values) for number, (delete, values) in enumerate(rows)]
        deletes = any(delete for delete, _ in rows)

        def upsert(connection: psycopg.Connection[Any]) -> None:
            with connection.transaction():
                self._format.write(connection, self._statements.target, copied)
                if deletes:
                    connection.execute(self._statements.delete)
                connection.execute(self._statements.upsert)

        self.session.run(upsert, f"Records cannot be written to {self.table_name}", table=self.table_name)

    def _key_of(self, record: Row) -> Sequence[Any]:
        """The values of a row to delete, of which only those of the key must be there."""
        names = record._fields
        if names is None:
            return values_of(record, self.columns)
        wanted = [name for name in self.columns if name in self._key or name in names]
        found = dict(zip(wanted, values_of(record, tuple(wanted)), strict=True))
        return [found.get(name) for name in self.columns]


class StatementWriter(BatchWriter):
    """Executes a statement with each record's values, a batch in a transaction."""

    def open(self, connection: psycopg.Connection[Any]) -> None:
        """Reads the statement."""
        assert self.settings.statement is not None
        self._statement, self._count = to_placeholders(self.settings.statement)
        self._columns = tuple(str(number + 1) for number in range(self._count))

    def to_rows(self, values: Sequence[Any]) -> list[Any]:
        """The records' values, adapted to what the driver takes."""
        from psycopg.types.json import Jsonb

        columns, mapper, rows = self._columns, self.settings.mapper, []
        for value in values:
            record = mapper(value) if mapper is not None else value
            # by position, as in JDBC: the placeholders have no names
            found = values_of(record._values if isinstance(record, Row) else record, columns)
            rows.append([Jsonb(item) if isinstance(item, dict) else item for item in found])
        return rows

    def write_rows(self, rows: list[Any]) -> None:
        """Executes the statement for each row."""

        def execute(connection: psycopg.Connection[Any]) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(self._statement, rows)

        self.session.run(execute, f"The statement of the sink failed: {self.settings.statement}")


class _IntervalThread:
    """Looks every so often whether a batch has waited long enough."""

    def __init__(self, interval_s: float, action: Any) -> None:
        self._interval_s = interval_s
        self._action = action
        self._stopped = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="firesteel-postgres-interval", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises what went wrong in the thread."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Ends the thread, after the batch it may be writing."""
        self._stopped.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s / 2):
            try:
                self._action()
            except Exception as error:  # noqa: BLE001 - raised in the task's thread
                self._failure = error
                return
