"""Split enumerator of change data capture: assigns the chunks of all captured tables, then the log."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.connectors.postgres.cdc.capture_check import ServerIds
from firesteel.connectors.postgres.cdc.capture_setup import (
    PreparedCapture,
    check_capture,
    cut_into_chunks,
    look_at_capture,
    prepare_capture,
)
from firesteel.connectors.postgres.cdc.captured_table import CapturedTable, Key
from firesteel.connectors.postgres.cdc.options import CdcOptions
from firesteel.connectors.postgres.cdc.split import CdcSplit, ChunkPart, ChunkSplit, LogPosition, LogSplit
from firesteel.spi.source import SplitEnumerator, SplitEnumeratorContext

__all__ = ["CdcEnumerator", "CdcEnumeratorState", "ChunkFinished", "ChunksRecorded"]

SETTLE_MS = 60_000
"""How long rows have to go through a job that takes no checkpoints."""


@dataclass(frozen=True)
class ChunkFinished:
    """A reader has emitted all rows of a chunk."""

    chunk: ChunkSplit


@dataclass(frozen=True)
class ChunksRecorded:
    """A completed checkpoint of the enumerator has these finished chunks: the reader can forget them."""

    split_ids: tuple[str, ...]


@dataclass
class CdcEnumeratorState:
    """All an enumerator knows. A chunk is pending, unfinished with a reader, or finished."""

    prepared: PreparedCapture | None = None
    to_cut: list[CapturedTable] = field(default_factory=list)
    pending: list[CdcSplit] = field(default_factory=list)
    unfinished: set[str] = field(default_factory=set)
    """Chunks of which not all rows have been emitted, pending or not."""
    finished: dict[str, list[ChunkPart]] = field(default_factory=dict)
    log_is_assigned: bool = False

    def copy(self) -> CdcEnumeratorState:
        """For a checkpoint."""
        return CdcEnumeratorState(
            self.prepared,
            list(self.to_cut),
            list(self.pending),
            set(self.unfinished),
            {table: list(parts) for table, parts in self.finished.items()},
            self.log_is_assigned,
        )


class CdcEnumerator(SplitEnumerator[CdcSplit]):
    """Prepares the server, cuts one table after the other into chunks, and gives out the log when all are read.

    As long as the log is read it compares the tables with what was captured, with every heartbeat: of a table that
    takes another one's name nothing is in the log.

    A reader keeps a chunk it has finished in its own checkpoints until one of the enumerator's has it, so it does not
    matter on which side of a checkpoint the news was under way: what comes twice is known by the chunk's id.

    With several readers the log waits for a checkpoint that has all chunks as finished: then all rows have gone
    through the job before the first change does, as the log's reader could overtake another one's rows. A job without
    checkpoints only waits for some time.
    """

    def __init__(
        self, context: SplitEnumeratorContext, options: CdcOptions, state: CdcEnumeratorState | None = None
    ) -> None:
        self._context = context
        self._options = options
        self._state = state or CdcEnumeratorState()
        self._pending = deque(self._state.pending)
        self._waiting: list[int] = []
        self._is_checked = False
        self._unrecorded: dict[int, list[str]] = {}
        """Finished chunks by the reader that has told of them."""
        self._in_checkpoints: dict[int, dict[int, list[str]]] = {}
        self._takes_checkpoints = False
        self._has_waited: bool | None = None
        """Whether the time is over; None if it has not begun."""

    def start(self) -> None:
        """Prepares the server, or checks that it still is."""
        if self._state.prepared is None:
            options = self._options
            self._context.call_async(lambda: prepare_capture(options), self._on_prepared)
        else:
            options, prepared = self._options, self._state.prepared
            self._context.call_async(lambda: check_capture(options, prepared), self._on_checked)

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Answers as soon as there is an answer."""
        if subtask not in self._waiting:
            self._waiting.append(subtask)
        self._assign()

    def add_splits_back(self, splits: list[CdcSplit], subtask: int) -> None:
        """Takes back what a failed reader had."""
        self._pending.extendleft(reversed(splits))
        self._assign()

    def handle_source_event(self, subtask: int, event: Any) -> None:
        """A chunk is finished."""
        if not isinstance(event, ChunkFinished):
            raise TypeError(f"a reader of captured changes sent {event!r}")
        chunk, state = event.chunk, self._state
        self._unrecorded.setdefault(subtask, []).append(chunk.split_id)
        if chunk.split_id in state.unfinished:
            state.unfinished.remove(chunk.split_id)
            state.finished.setdefault(chunk.table.table_id, []).extend(chunk.parts)
            self._assign()

    def snapshot_state(self, checkpoint_id: int) -> CdcEnumeratorState:
        """All of it."""
        self._takes_checkpoints = True
        self._in_checkpoints[checkpoint_id] = {subtask: list(ids) for subtask, ids in self._unrecorded.items()}
        self._state.pending = list(self._pending)
        return self._state.copy()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Sends readers the finished chunks that they need not keep."""
        recorded = self._in_checkpoints.get(checkpoint_id, {})
        self._in_checkpoints = {key: value for key, value in self._in_checkpoints.items() if key > checkpoint_id}
        for subtask, split_ids in recorded.items():
            left = [split_id for split_id in self._unrecorded.get(subtask, ()) if split_id not in set(split_ids)]
            known = len(left) < len(self._unrecorded.get(subtask, ()))
            self._unrecorded[subtask] = left
            if known:
                self._context.send_event_to_reader(subtask, ChunksRecorded(tuple(split_ids)))
        self._assign()

    def _on_prepared(self, prepared: PreparedCapture | None, error: Exception | None) -> None:
        if error is not None:
            raise error
        assert prepared is not None
        state = self._state
        state.prepared = prepared
        state.to_cut = list(prepared.tables) if self._options.reads_tables else []
        self._on_checked(None, None)

    def _on_checked(self, _result: Any, error: Exception | None) -> None:
        if error is not None:
            raise error
        self._is_checked = True
        if self._options.reads_log:
            self._look_again()
        self._cut_next()
        self._assign()

    def _look_again(self) -> None:
        """Compares the tables with what was captured, a heartbeat from now."""
        options, prepared = self._options, self._state.prepared
        assert prepared is not None
        interval_ms = max(int(options.heartbeat_interval_s * 1000), 1)
        self._context.call_async(
            lambda: look_at_capture(options, prepared), self._on_looked, initial_delay_ms=interval_ms
        )

    def _on_looked(self, ids: ServerIds | None, error: Exception | None) -> None:
        if error is not None:
            raise error
        assert self._state.prepared is not None
        if ids is not None:
            self._state.prepared = replace(self._state.prepared, ids=ids)
        self._look_again()

    def _cut_next(self) -> None:
        if self._state.to_cut:
            table, options, parallelism = self._state.to_cut[0], self._options, self._context.current_parallelism()
            self._context.call_async(lambda: cut_into_chunks(options, table, parallelism), self._on_cut)

    def _on_cut(self, ranges: list[tuple[Key | None, Key | None]] | None, error: Exception | None) -> None:
        if error is not None:
            raise error
        assert ranges is not None
        state = self._state
        assert state.prepared is not None
        table = state.to_cut.pop(0)
        for number, (low, high) in enumerate(ranges):
            split_id = f"{table.table_id}:{number}"
            self._pending.append(ChunkSplit(split_id, table, low, high, state.prepared.timestamp_ms))
            state.unfinished.add(split_id)
        self._cut_next()
        self._assign()

    def _assign(self) -> None:
        """Gives waiting readers what there is for them."""
        if not self._is_checked:
            return
        while self._waiting and self._pending:
            self._context.assign_split(self._pending.popleft(), self._waiting.pop(0))
        if self._pending or self._state.to_cut:
            return
        if not self._options.reads_log:
            self._dismiss()
        elif self._state.log_is_assigned:
            if self._options.close_idle_readers:
                self._dismiss()
        elif not self._state.unfinished and self._waiting and self._are_rows_through():
            self._waiting.sort()
            self._context.assign_split(self._log_split(), self._waiting.pop(0))
            self._state.log_is_assigned = True
            self._assign()

    def _are_rows_through(self) -> bool:
        if self._context.current_parallelism() == 1 or not any(self._unrecorded.values()):
            return True
        if self._has_waited is None:
            self._has_waited = False
            self._context.call_async(lambda: None, self._on_waited, initial_delay_ms=SETTLE_MS)
        return self._has_waited and not self._takes_checkpoints

    def _on_waited(self, _result: Any, _error: Exception | None) -> None:
        self._has_waited = True
        self._assign()

    def _dismiss(self) -> None:
        for subtask in self._waiting:
            self._context.signal_no_more_splits(subtask)
        self._waiting.clear()

    def _log_split(self) -> LogSplit:
        prepared = self._state.prepared
        assert prepared is not None
        parts = {table: tuple(parts) for table, parts in self._state.finished.items()}
        self._state.finished.clear()
        return LogSplit(LogPosition(prepared.start_lsn), prepared.tables, parts)
