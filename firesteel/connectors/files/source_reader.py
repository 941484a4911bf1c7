"""Source reader of the FileSource: reads one split after the other, in any format."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import FiresteelError
from firesteel.common.serialization import ByteArraySchema, DeserializationSchema
from firesteel.connectors.base.split_reader import SequentialSplitReader
from firesteel.connectors.files.split_fetcher import SplitFetcher
from firesteel.filesystem.input_paths import cannot_read, is_remote
from firesteel.formats.bad_records import BadRecords, RecordDecoder
from firesteel.formats.compression import DECOMPRESSION_ERRORS, is_compressed
from firesteel.formats.file_split import CheckpointedPosition, FileSourceSplit
from firesteel.formats.format_reader import FetchedBatch, FileFormat, FormatReader, SplitInput
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FileSourceReader"]

LOCAL_FETCH_BYTES = 256 * 1024
REMOTE_FETCH_BYTES = 1 << 20

_MIN_WAIT_S = 0.001
_MAX_WAIT_S = 0.02
_EPOCH_WAIT_S = 0.1


class FileSourceReader(SequentialSplitReader[FileSourceSplit]):
    """Fetches a batch, has it decoded piece by piece, and knows where each piece begins.

    Files on a disk are read in the task's own thread. For a store there is a thread that fetches ahead, and the task
    never waits for it, except in an epoch, which would otherwise end before the file has.
    """

    def __init__(
        self,
        context: ReaderContext,
        file_format: FileFormat,
        *,
        bad_records: BadRecords | None = None,
        fetch_bytes: int | None = None,
        ask_interval_ms: int | None = None,
    ) -> None:
        super().__init__(context, ask_interval_ms)
        self._format = file_format
        self._policy = bad_records or BadRecords.fail()
        self._fetch_bytes = fetch_bytes
        self._schema: DeserializationSchema = ByteArraySchema()
        self._opened_schema = False
        self._input: SplitInput | None = None
        self._fetcher: SplitFetcher | None = None
        self._reader: FormatReader | None = None
        self._batch: FetchedBatch | None = None
        self._items: Sequence[Any] = ()
        self._emitted = 0
        self._skip: int | None = None
        self._at = CheckpointedPosition(None)
        """Where to read on once all items are emitted."""
        self._wait_s = _MIN_WAIT_S
        self._available_at: float | None = None

    def open_split(self, split: FileSourceSplit) -> None:
        """Opens the file, or has it opened, where the split is to be read from."""
        self._batch, self._items, self._emitted, self._skip = None, (), 0, None
        self._at = CheckpointedPosition(split.position, split.records_to_skip)
        self._wait_s = _MIN_WAIT_S
        remote = is_remote(split.path)
        decoder = RecordDecoder(self._opened(), self._policy, self._context, split.path)
        fetch_bytes = self._fetch_bytes or (REMOTE_FETCH_BYTES if remote else LOCAL_FETCH_BYTES)
        source = SplitInput(split, fetch_bytes, decoder, skips_bad_records=self._policy.skips)
        self._input = source
        if remote:
            self._fetcher = SplitFetcher(lambda: self._format.open_split(source), split.split_id)
            return
        try:
            with self._explained(split):
                self._reader = self._format.open_split(source)
        except BaseException:
            self.close_split()
            raise

    def read_split(self, split: FileSourceSplit, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits records of what is fetched, else fetches more."""
        if self._emitted >= len(self._items):
            with self._explained(split):
                batch = self._next_batch()
                if self._fetcher is None and (batch is None or batch.is_last):
                    # on a disk, an end that comes too early is no error of the system's
                    assert self._input is not None
                    self._input.check_not_shorter()
            if batch is None:
                return self._status_without_batch()
            self._take(batch, split, output)
        begin, batch = self._emitted, self._batch
        end = min(begin + max_records, len(self._items))
        if end > begin:
            assert batch is not None
            assert self._reader is not None
            self._emitted = end
            items = self._items if end - begin == len(self._items) else self._items[begin:end]
            records = self._reader.decode(batch, items, begin, output)
            if len(records):
                output.collect(split.split_id, records)
        if end >= len(self._items) and batch is not None and batch.is_last:
            return InputStatus.END_OF_INPUT
        return InputStatus.MORE_AVAILABLE

    def snapshot_split(self, split: FileSourceSplit) -> FileSourceSplit:
        """The split from the next record on."""
        at = self._at
        if self._batch is not None and self._emitted < len(self._items):
            at = self._batch.at
            at = CheckpointedPosition(at.offset, at.records_after_offset + self._emitted)
        return replace(split, position=at.offset, records_to_skip=at.records_after_offset)

    def available_at(self) -> float | None:
        """Soon, if the store has been asked for more."""
        return self._available_at if self._fetcher is not None else None

    def close_split(self) -> None:
        """Closes the file."""
        fetcher, self._fetcher = self._fetcher, None
        reader, self._reader = self._reader, None
        source, self._input = self._input, None
        self._batch, self._items = None, ()
        if fetcher is not None:
            fetcher.close()
        elif reader is not None:
            reader.close()
        if source is not None:
            source.close()

    def _opened(self) -> DeserializationSchema:
        """The format's schema, opened once, however many files there are."""
        if not self._opened_schema:
            self._opened_schema = True
            if self._format.schema is not None:
                self._format.schema.open()
                self._schema = _OpenedSchema(self._format.schema)
        return self._schema

    def _next_batch(self) -> FetchedBatch | None:
        if self._fetcher is None:
            assert self._reader is not None
            return self._reader.fetch()
        batch = self._fetcher.take(_EPOCH_WAIT_S if self._context.execution.has_idle_gaps else 0)
        if batch is not None:
            self._reader = self._fetcher.reader
        return batch

    def _status_without_batch(self) -> InputStatus:
        if self._fetcher is None or self._fetcher.at_end:
            return InputStatus.END_OF_INPUT
        if self._context.execution.has_idle_gaps:
            return InputStatus.MORE_AVAILABLE
        self._available_at = time.monotonic() + self._wait_s
        self._wait_s = min(self._wait_s * 2, _MAX_WAIT_S)
        return InputStatus.NOTHING_AVAILABLE

    def _take(self, batch: FetchedBatch, split: FileSourceSplit, output: ReaderOutput) -> None:
        assert self._reader is not None
        self._wait_s = _MIN_WAIT_S
        if self._skip is None:
            self._skip = split.records_to_skip - self._reader.already_skipped
        self._batch, self._items = None, ()
        self._items = self._reader.unpack(batch, output)
        self._batch = batch
        self._emitted = min(self._skip, len(self._items))
        self._skip -= self._emitted
        then = batch.then
        self._at = CheckpointedPosition(then.offset, then.records_after_offset + self._skip)

    @contextmanager
    def _explained(self, split: FileSourceSplit) -> Iterator[None]:
        """Errors that name the file and what to do."""
        try:
            yield
        except FiresteelError:
            raise
        except (OSError, *DECOMPRESSION_ERRORS) as error:
            raise cannot_read(split.path, error, self._at.offset, compressed=is_compressed(split.path)) from error


class _OpenedSchema(DeserializationSchema):
    """A schema that is open already: a decoder for each file would open it again."""

    def __init__(self, schema: DeserializationSchema) -> None:
        self.deserialize = schema.deserialize  # type: ignore[method-assign]
        self.deserialize_batch = schema.deserialize_batch  # type: ignore[method-assign]

    def deserialize(self, message: bytes) -> Any:
        """The schema's own."""
        raise AssertionError("replaced in __init__")
