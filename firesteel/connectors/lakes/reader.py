"""The source reader of a lake's table: reads one file after the other, as columns or as rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from firesteel.connectors.base.split_reader import SequentialSplitReader
from firesteel.connectors.files.split_fetcher import SplitFetcher
from firesteel.connectors.lakes.columns import ColumnRows
from firesteel.connectors.lakes.scan import LakeScan, LakeSplit
from firesteel.formats.file_split import CheckpointedPosition
from firesteel.formats.format_reader import FetchedBatch, FormatReader
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput

__all__ = ["LakeReader"]

_WAIT_S = 0.005
_EPOCH_WAIT_S = 0.1


class _Batches(FormatReader):
    """Columns of a split, without those rows that were read before."""

    def __init__(self, rows: Iterator[ColumnRows], skip: int) -> None:
        self._rows = rows
        self._skip = skip

    def fetch(self) -> FetchedBatch | None:
        for rows in self._rows:
            if self._skip >= len(rows):
                self._skip -= len(rows)
                continue
            kept, self._skip = rows[self._skip :] if self._skip else rows, 0
            nowhere = CheckpointedPosition(None)
            return FetchedBatch(kept, nowhere, nowhere)
        return None

    def close(self) -> None:
        close = getattr(self._rows, "close", None)
        if close is not None:
            close()


class LakeReader(SequentialSplitReader[LakeSplit]):
    """Emits ColumnRows or, with ``decode``, the records that it makes of them.

    Files of a store are fetched in a thread, and the task never waits for it, except in an epoch.
    """

    def __init__(
        self, context: ReaderContext, scan: LakeScan, decode: Callable[[ColumnRows], Sequence[Any]] | None
    ) -> None:
        super().__init__(context)
        self._scan = scan
        self._decode = decode
        self._reader: FormatReader | None = None
        self._fetcher: SplitFetcher | None = None
        self._batch: ColumnRows | None = None
        self._emitted = 0
        self._position = 0
        self._available_at: float | None = None

    def open_split(self, split: LakeSplit) -> None:
        """Begins behind the rows that were read before."""
        self._position = split.position
        if self._scan.is_remote():
            self._fetcher = SplitFetcher(lambda: self._open(split), split.split_id)
        else:
            self._reader = self._open(split)

    def _open(self, split: LakeSplit) -> FormatReader:
        return _Batches(iter(self._scan.read(split)), split.position)

    def read_split(self, split: LakeSplit, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits rows of what is fetched, else fetches more."""
        if self._batch is None:
            fetched = self._next()
            if fetched is None:
                return self._status()
            self._batch, self._emitted = fetched.items, 0
        rows = self._batch[self._emitted : self._emitted + max_records]
        self._emitted += len(rows)
        self._position += len(rows)
        if self._emitted >= len(self._batch):
            self._batch = None
        if len(rows):
            output.collect(split.split_id, rows if self._decode is None else self._decode(rows))
        return InputStatus.MORE_AVAILABLE

    def _next(self) -> FetchedBatch | None:
        if self._fetcher is None:
            assert self._reader is not None
            return self._reader.fetch()
        return self._fetcher.take(_EPOCH_WAIT_S if self._context.execution.has_idle_gaps else 0)

    def _status(self) -> InputStatus:
        if self._fetcher is None or self._fetcher.at_end:
            return InputStatus.END_OF_INPUT
        if self._context.execution.has_idle_gaps:
            return InputStatus.MORE_AVAILABLE
        self._available_at = time.monotonic() + _WAIT_S
        return InputStatus.NOTHING_AVAILABLE

    def snapshot_split(self, split: LakeSplit) -> LakeSplit:
        """The split from the next row on."""
        return replace(split, position=self._position)

    def available_at(self) -> float | None:
        """Soon, if the store has been asked for more."""
        return self._available_at if self._fetcher is not None else None

    def close(self) -> None:
        """Closes the open split, and disconnects."""
        super().close()
        self._scan.close()

    def close_split(self) -> None:
        """Ends the thread."""
        fetcher, self._fetcher = self._fetcher, None
        reader, self._reader = self._reader, None
        self._batch = None
        if fetcher is not None:
            fetcher.close()
        elif reader is not None:
            reader.close()
