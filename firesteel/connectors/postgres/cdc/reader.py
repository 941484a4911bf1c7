"""Source reader of change data capture: reads chunks of tables and the log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from firesteel.connectors.postgres.cdc.change_record import ChangeRecord, DebeziumDeserializationSchema
from firesteel.connectors.postgres.cdc.chunk_fetcher import ChunkFetcher, FetchedRows
from firesteel.connectors.postgres.cdc.enumerator import ChunkFinished, ChunksRecorded
from firesteel.connectors.postgres.cdc.log_decoder import LogDecoder
from firesteel.connectors.postgres.cdc.options import CdcOptions
from firesteel.connectors.postgres.cdc.replication_stream import ReplicationStream
from firesteel.connectors.postgres.cdc.split import CdcSplit, ChunkSplit, LogPosition, LogSplit
from firesteel.connectors.postgres.errors import PostgresConnectionError
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput, SourceReader

__all__ = ["CdcReader"]

MIN_WAIT_S = 0.001
MAX_WAIT_S = 0.02
FIRST_RECONNECT_DELAY_S = 0.2
MAX_RECONNECT_DELAY_S = 10.0


class _Patience:
    """How often in a row a connection may fail, and how long to wait each time."""

    def __init__(self, max_retries: int) -> None:
        self._max = max_retries
        self._failures = 0

    def failed(self) -> float | None:
        """A connection is lost: the seconds to wait, None if it was once too often."""
        self._failures += 1
        if self._failures > self._max:
            return None
        return min(FIRST_RECONNECT_DELAY_S * 5.0 ** (self._failures - 1), MAX_RECONNECT_DELAY_S)

    def succeeded(self) -> None:
        """Something was read."""
        self._failures = 0


class _ChunkReading:
    """A chunk of which some rows have been emitted."""

    def __init__(self, options: CdcOptions, split: ChunkSplit) -> None:
        self.split = split
        self._options = options
        self._patience = _Patience(options.connect_max_retries)
        self._fetcher = ChunkFetcher(options, split)
        self._rows: FetchedRows = []
        self._emitted = 0
        self._key_of = split.table.key_of()
        self._columns = len(split.table.columns)
        self._has_extra = bool(split.table.key_selection)
        self._last_row: tuple[Any, ...] | None = None

    def take(self, limit: int) -> list[tuple[Any, ...]]:
        """Rows to emit."""
        if self._emitted >= len(self._rows):
            self._rows, self._emitted = self._fetch(), 0
        rows = self._rows[self._emitted : self._emitted + limit]
        if not rows:
            return rows
        self._emitted += len(rows)
        self._last_row = rows[-1]
        return [row[: self._columns] for row in rows] if self._has_extra else rows

    @property
    def is_at_end(self) -> bool:
        return self._emitted >= len(self._rows) and self._fetcher.is_at_end

    def finish(self) -> ChunkSplit:
        assert self._fetcher.snapshot is not None
        return self.split.finish(self._fetcher.snapshot)

    def state(self) -> ChunkSplit:
        """What is left to be read, and in which snapshot the rows before were."""
        if self._last_row is None:
            return self.split
        assert self._fetcher.snapshot is not None
        return self.split.read_up_to(self._key_of(self._last_row), self._fetcher.snapshot)

    def close(self) -> None:
        self._fetcher.close()

    def _fetch(self) -> FetchedRows:
        try:
            rows = self._fetcher.take()
        except PostgresConnectionError:
            delay = self._patience.failed()
            if delay is None:
                raise
            self._fetcher.close()
            # the rest in another transaction, as after a restart
            self.split, self._last_row = self.state(), None
            self._fetcher = ChunkFetcher(self._options, self.split, delay)
            return []
        if rows is None:
            return []
        self._patience.succeeded()
        return rows


class _LogReading:
    """The log from a position on, over as many connections as it takes."""

    def __init__(self, options: CdcOptions, split: LogSplit) -> None:
        self._options = options
        self._split = split
        self._decoder = LogDecoder(split, options)
        self._stream = ReplicationStream(options, split.position.lsn)
        self._patience = _Patience(options.connect_max_retries)

    def take(self, limit: int, out: list[ChangeRecord]) -> bool:
        """Appends changes; returns whether there was anything in the log."""
        try:
            frames = self._stream.take(limit)
        except PostgresConnectionError:
            delay = self._patience.failed()
            if delay is None:
                raise
            self._reconnect(delay)
            return False
        decode = self._decoder.decode
        for frame in frames:
            decode(frame, out)
        if frames:
            self._patience.succeeded()
        return bool(frames)

    def state(self) -> LogSplit:
        return replace(self._split, position=self._decoder.position, parts=self._decoder.parts)

    @property
    def position(self) -> LogPosition:
        return self._decoder.position

    def confirm(self, lsn: int) -> None:
        self._stream.confirm(lsn)

    @property
    def is_caught_up(self) -> bool:
        return self._stream.is_caught_up

    @property
    def lag_bytes(self) -> int:
        return max(self._stream.server_lsn - self._decoder.position.lsn, 0)

    def close(self) -> None:
        self._stream.close()

    def _reconnect(self, delay_s: float) -> None:
        self._stream.close()
        # the server sends the tables again
        self._decoder = LogDecoder(self.state(), self._options)
        self._stream = ReplicationStream(self._options, self._decoder.position.lsn, delay_s)


class CdcReader(SourceReader[CdcSplit]):
    """Reads one chunk after the other, and the log if it is given it.

    The position is confirmed to the server when a checkpoint that contains it is complete, or
    some checkpoints later.
    """

    def __init__(
        self, context: ReaderContext, options: CdcOptions, deserializer: DebeziumDeserializationSchema
    ) -> None:
        self._context = context
        self._options = options
        self._deserializer = deserializer
        self._waiting: deque[ChunkSplit] = deque()
        self._chunk: _ChunkReading | None = None
        self._finished: dict[str, ChunkSplit] = {}
        self._log_split: LogSplit | None = None
        self._log: _LogReading | None = None
        self._no_more_splits = False
        self._wait_s = MIN_WAIT_S
        self._available_at = 0.0
        self._in_checkpoints: deque[tuple[int, int]] = deque()
        """Checkpoint and position in the log, of those not confirmed."""

    def start(self) -> None:
        """Requests a split unless some were restored, and reports finished ones again."""
        for chunk in self._finished.values():
            self._context.send_source_event(ChunkFinished(chunk))
        if self._options.reads_log:
            self._context.get_metrics_group().gauge("replicationLagBytes", self._lag_bytes)
        self._ask_if_empty()

    def add_splits(self, splits: Sequence[CdcSplit]) -> None:
        """Chunks and the log."""
        for split in splits:
            if isinstance(split, LogSplit):
                self._log_split = split
            elif split.is_finished:
                self._finished[split.split_id] = split
            else:
                self._waiting.append(split)
        self._wait_s = MIN_WAIT_S

    def notify_no_more_splits(self) -> None:
        """The reader ends after what it has."""
        self._no_more_splits = True

    def handle_source_event(self, event: Any) -> None:
        """Forgets finished chunks that the enumerator has."""
        if isinstance(event, ChunksRecorded):
            for split_id in event.split_ids:
                self._finished.pop(split_id, None)

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits rows of the current chunk, or changes of the log."""
        if self._chunk is None and self._waiting:
            self._chunk = _ChunkReading(self._options, self._waiting.popleft())
        if self._chunk is not None:
            progressed = self._poll_chunk(self._chunk, output, max_records)
        elif self._log_split is not None:
            progressed = self._poll_log(self._log_split, output, max_records)
        elif self._no_more_splits:
            return InputStatus.END_OF_INPUT
        else:
            return InputStatus.NOTHING_AVAILABLE
        if progressed:
            self._wait_s = MIN_WAIT_S
            return InputStatus.MORE_AVAILABLE
        self._available_at = time.monotonic() + self._wait_s
        self._wait_s = min(self._wait_s * 2, MAX_WAIT_S)
        return InputStatus.NOTHING_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> list[CdcSplit]:
        """The chunk that is being read, those that wait, those the enumerator may not know as finished, the log."""
        splits: list[CdcSplit] = []
        if self._chunk is not None:
            splits.append(self._chunk.state())
        splits += self._waiting
        splits += self._finished.values()
        if self._log is not None:
            splits.append(self._log.state())
            self._in_checkpoints.append((checkpoint_id, self._log.position.lsn))
        elif self._log_split is not None:
            splits.append(self._log_split)
        return splits

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Lets the server go on, up to where an older checkpoint is."""
        complete = [pair for pair in self._in_checkpoints if pair[0] <= checkpoint_id]
        delay = self._options.lsn_commit_checkpoints_delay
        if self._log is None or len(complete) <= delay:
            return
        _checkpoint, lsn = complete[-1 - delay]
        while self._in_checkpoints and self._in_checkpoints[0][1] <= lsn and len(complete) > delay:
            self._in_checkpoints.popleft()
            complete.pop(0)
        self._log.confirm(lsn)

    def available_at(self) -> float | None:
        """Soon after something came, later the longer there is nothing."""
        return self._available_at if self._has_split() else None

    def pending_records(self) -> int | None:
        """How many are there is not known, only whether there may be some."""
        if self._chunk is not None or self._waiting:
            return 1
        if self._log_split is not None:
            return 0 if self._log is not None and self._log.is_caught_up else 1
        return 0

    def close(self) -> None:
        """Ends the connections."""
        if self._chunk is not None:
            self._chunk.close()
            self._chunk = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def _poll_chunk(self, chunk: _ChunkReading, output: ReaderOutput, max_records: int) -> bool:
        split = chunk.split
        rows = chunk.take(max_records)
        if rows:
            table = split.table
            like = ChangeRecord(
                table.database, table.schema, table.name, table.column_names, "r", None, None, split.timestamp_ms
            )
            values = self._deserializer.deserialize_rows(like, rows)
            output.collect(split.split_id, values, [split.timestamp_ms] * len(values))
        if not chunk.is_at_end:
            return bool(rows)
        finished = chunk.finish()
        chunk.close()
        self._chunk = None
        self._finished[split.split_id] = finished
        output.release_split(split.split_id)
        self._context.send_source_event(ChunkFinished(finished))
        self._ask_if_empty()
        return True

    def _poll_log(self, split: LogSplit, output: ReaderOutput, max_records: int) -> bool:
        if self._log is None:
            self._log = _LogReading(self._options, split)
        changes: list[ChangeRecord] = []
        progressed = self._log.take(max_records, changes)
        if changes:
            deserialize = self._deserializer.deserialize
            values: list[Any] = []
            timestamps: list[int] = []
            for change in changes:
                deserialize(change, values)
                timestamps += [change.timestamp_ms] * (len(values) - len(timestamps))
            output.collect(split.split_id, values, timestamps)
        return progressed

    def _has_split(self) -> bool:
        return self._chunk is not None or bool(self._waiting) or self._log_split is not None

    def _ask_if_empty(self) -> None:
        if not self._has_split() and not self._no_more_splits:
            self._context.send_split_request()

    def _lag_bytes(self) -> int:
        return 0 if self._log is None else self._log.lag_bytes
