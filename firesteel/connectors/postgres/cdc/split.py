"""Splits of change data capture: chunks of tables first, then the log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from firesteel.connectors.postgres.cdc.captured_table import CapturedTable, Key
from firesteel.connectors.postgres.cdc.transaction_snapshot import TransactionSnapshot

__all__ = ["LOG_SPLIT_ID", "CdcSplit", "ChunkPart", "ChunkSplit", "LogPosition", "LogSplit"]

LOG_SPLIT_ID = "log"


@dataclass(frozen=True)
class ChunkPart:
    """Rows with keys behind ``low`` and up to ``high`` that were read in one transaction."""

    low: Key | None
    high: Key | None
    snapshot: TransactionSnapshot


@dataclass(frozen=True)
class ChunkSplit:
    """A range of a table's rows by primary key.

    A reader that continues a chunk after a restart reads the rest in a transaction of its own, so a chunk consists
    of parts: those that have been read, and the rows behind ``low``.
    """

    split_id: str
    table: CapturedTable
    low: Key | None
    high: Key | None
    timestamp_ms: int
    """The event time of its rows: when the capture began, so that no change in the log is before them."""
    parts: tuple[ChunkPart, ...] = ()
    is_finished: bool = False

    def read_up_to(self, key: Key, snapshot: TransactionSnapshot) -> ChunkSplit:
        """The chunk with one more part read, up to the key."""
        return replace(self, low=key, parts=(*self.parts, ChunkPart(self.low, key, snapshot)))

    def finish(self, snapshot: TransactionSnapshot) -> ChunkSplit:
        """The chunk with all its rows read."""
        return replace(self, parts=(*self.parts, ChunkPart(self.low, self.high, snapshot)), is_finished=True)


@dataclass(frozen=True)
class LogPosition:
    """Which changes of the log have been emitted: all of transactions that end before ``lsn``, and some of the next."""

    lsn: int
    commit_lsn: int = 0
    """Names the transaction that has been emitted in part; 0 if there is none."""
    changes: int = 0
    """How many of its changes have been emitted."""


@dataclass(frozen=True)
class LogSplit:
    """The log from a position on. ``parts`` are the rows that were read before, by table."""

    position: LogPosition
    tables: tuple[CapturedTable, ...]
    parts: dict[str, tuple[ChunkPart, ...]]
    split_id: str = LOG_SPLIT_ID


CdcSplit: TypeAlias = ChunkSplit | LogSplit
"""What a reader is given."""
