"""Source reader of a PostgresSource."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.common.types import named_rows
from firesteel.connectors.base.split_reader import SequentialSplitReader
from firesteel.connectors.postgres.connection import connect, import_psycopg
from firesteel.connectors.postgres.errors import PostgresConnectionError, is_connection_lost, translate
from firesteel.connectors.postgres.source.splits import PostgresSplit, SourceSettings, select_statement
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresReader"]

_POLL_INTERVAL_S = 0.003
_EPOCH_WAIT_S = 1.0
_CLOSE_DEADLINE_S = 30.0
_MAX_RETRIES = 3


class PostgresReader(SequentialSplitReader[PostgresSplit]):
    """Reads one split after another with a server-side cursor, which a thread of its own keeps ahead of.

    With a key the rows come in its order, and the position is the key of the last row emitted: a restored reader goes
    on behind it. Without one the position is the number of rows, and a restored reader executes the query again and
    skips as many: right only if the query gives the same rows in the same order.
    """

    def __init__(self, context: ReaderContext, settings: SourceSettings) -> None:
        super().__init__(context)
        self._settings = settings
        self._fetcher: _Fetcher | None = None
        self._rows: Sequence[Any] = ()
        self._next = 0
        self._position: Any = None
        self._shape = _Shape()
        self._read_again_at: float | None = None

    def open_split(self, split: PostgresSplit) -> None:
        """Has the split fetched from its position on."""
        self._position = split.position
        self._rows, self._next = (), 0
        self._read_again_at = None
        self._fetcher = _Fetcher(self._settings, split)

    def read_split(self, split: PostgresSplit, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits rows that have been fetched."""
        if self._next >= len(self._rows):
            status = self._take(split)
            if status is not None:
                return status
        rows = self._rows[self._next : self._next + max_records]
        self._next += len(rows)
        if split.key:
            self._position = self._shape.key_of(rows[-1])
        else:
            self._position = (self._position or 0) + len(rows)
        output.collect(split.split_id, self._shape.to_records(rows))
        return InputStatus.MORE_AVAILABLE

    def snapshot_split(self, split: PostgresSplit) -> PostgresSplit:
        """The split from behind the last row emitted."""
        return replace(split, position=self._position)

    def close_split(self) -> None:
        """Ends the fetching."""
        fetcher, self._fetcher = self._fetcher, None
        if fetcher is not None:
            fetcher.close()

    def available_at(self) -> float | None:
        """When to look whether something was fetched."""
        if self._read_again_at is not None:
            return self._read_again_at
        return None if self._fetcher is None else time.monotonic() + _POLL_INTERVAL_S

    def pending_records(self) -> int | None:
        """At least one as long as the end of a split was not seen."""
        return None if self._fetcher is None else max(1, len(self._rows) - self._next)

    def _take(self, split: PostgresSplit) -> InputStatus | None:
        """Takes the next rows from the thread; a status if there are none."""
        if self._fetcher is None:
            if self._read_again_at is not None and time.monotonic() < self._read_again_at:
                return InputStatus.NOTHING_AVAILABLE
            self.open_split(self.snapshot_split(split))
        assert self._fetcher is not None
        fetched = self._fetcher.take(_EPOCH_WAIT_S if self._context.execution.has_idle_gaps else 0)
        if fetched is None:
            return InputStatus.NOTHING_AVAILABLE
        if isinstance(fetched, _Shape):
            self._shape = fetched
            return self._take(split)
        if fetched:
            self._rows, self._next = fetched, 0
            return None
        if self._settings.poll_interval_ms is None:
            return InputStatus.END_OF_INPUT
        self.close_split()
        self._read_again_at = time.monotonic() + self._settings.poll_interval_ms / 1000
        return InputStatus.NOTHING_AVAILABLE


@dataclass(frozen=True)
class _Shape:
    """The names of a result's columns, how many of them are asked for, and where the key is."""

    names: tuple[str, ...] = ()
    key: tuple[int, ...] = ()

    @classmethod
    def of(cls, names: tuple[str, ...], settings: SourceSettings, split: PostgresSplit) -> _Shape:
        texts = split.text_keys
        own = len(names) - len(texts)
        key = tuple(own + texts.index(name) if name in texts else names.index(name) for name in split.key)
        return cls(names[: own if settings.columns is None else len(settings.columns)], key)

    def key_of(self, row: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(row[index] for index in self.key)

    def to_records(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        if rows and len(rows[0]) > len(self.names):
            width = len(self.names)
            return named_rows(self.names, (row[:width] for row in rows))
        return named_rows(self.names, rows)


class _Fetcher:
    """Fetches a split in a thread, a few batches ahead; an empty batch is the end."""

    def __init__(self, settings: SourceSettings, split: PostgresSplit) -> None:
        self._settings = settings
        self._split = split
        self._fetched: queue.Queue[Any] = queue.Queue(2)
        self._stopped = threading.Event()
        self._connection: psycopg.Connection[Any] | None = None
        self._thread = threading.Thread(target=self._run, name="firesteel-postgres-fetch", daemon=True)
        self._thread.start()

    def take(self, timeout_s: float) -> Any:
        """The shape, then batches of rows; None if there is nothing yet."""
        try:
            fetched = self._fetched.get(timeout=timeout_s) if timeout_s else self._fetched.get_nowait()
        except queue.Empty:
            return None
        if isinstance(fetched, Exception):
            raise fetched
        return fetched

    def close(self) -> None:
        """Ends the query and the thread."""
        self._stopped.set()
        connection = self._connection
        if self._thread.is_alive() and connection is not None:
            # a query that runs for long would be waited for
            with suppress(import_psycopg().Error):
                connection.cancel_safe(timeout=5.0)
        self._thread.join(_CLOSE_DEADLINE_S)

    def _run(self) -> None:
        module = import_psycopg()
        retries = 0
        while True:
            try:
                self._fetch()
            except (PostgresConnectionError, module.Error) as error:
                lost = isinstance(error, PostgresConnectionError) or is_connection_lost(error)
                if lost and retries < _MAX_RETRIES and not self._stopped.wait(min(2.0, 0.05 * 8**retries)):
                    retries += 1
                    continue
                self._put(self._translated(error))
            except Exception as error:  # noqa: BLE001 - raised in the task's thread
                self._put(error)
            return

    def _fetch(self) -> None:
        """Reads from the split's position on; notes how far it has come, should it have to begin again."""
        settings, split = self._settings, self._split
        statement, values = select_statement(settings, split)
        connection = connect(settings.connection, name="firesteel source", autocommit=False)
        self._connection = connection
        cursor = connection.cursor(name="firesteel")
        try:
            cursor.itersize = settings.fetch_size
            cursor.execute(statement, values)
            names = tuple(column.name for column in cursor.description or ())
            shape = _Shape.of(names, settings, split)
            self._put(shape)
            if not split.key and split.position:
                cursor.scroll(split.position)
            while not self._stopped.is_set():
                rows = cursor.fetchmany(settings.fetch_size)
                self._put(rows)
                if not rows:
                    return
                position = shape.key_of(rows[-1]) if split.key else (self._split.position or 0) + len(rows)
                self._split = replace(self._split, position=position)
        finally:
            self._connection = None
            connection.close()
            # after the connection: before, it would be a statement of its own, which can be cancelled, or get lost
            cursor.close()

    def _put(self, item: Any) -> None:
        while not self._stopped.is_set():
            try:
                self._fetched.put(item, timeout=0.1)
            except queue.Full:
                continue
            return

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, PostgresConnectionError):
            return error
        settings = self._settings
        doing = f"Rows of {settings.describe()} cannot be read"
        return translate(error, doing, server=settings.connection.describe(), table=settings.describe())
