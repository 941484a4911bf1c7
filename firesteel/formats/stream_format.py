"""Interfaces of custom formats: record by record from a stream, or batch by batch from a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, BinaryIO

from firesteel.common.serialization import DeserializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.formats.compression import is_compressed
from firesteel.formats.file_split import CheckpointedPosition, FileSourceSplit
from firesteel.formats.format_reader import FetchedBatch, FileFormat, FormatReader, SplitInput, length_of

__all__ = ["BulkFormat", "SimpleStreamFormat", "StreamFormat"]

_BATCH_RECORDS = 1024


class StreamFormat(FileFormat):
    """Reads records one after the other from a stream, which is decompressed if the file's name says so.

    A format of one's own implements ``create_reader``. If it can begin anywhere in a file (``is_splittable``), its
    reader is to give the records that begin from where the stream is up to ``split_end``. A reader that can tell a
    position spares a restored job reading what it had read before: then implement ``restore_reader`` too.
    See :class:`SimpleStreamFormat` for formats that do neither.
    """

    class Reader(ABC):
        """Reads the records of one split."""

        @abstractmethod
        def read(self) -> Any:
            """The next record; None at the end."""

        def read_batch(self, max_records: int) -> list[Any]:
            """The next records, fewer than ``max_records`` only at the end; may be overridden to be faster."""
            records: list[Any] = []
            while len(records) < max_records and (record := self.read()) is not None:
                records.append(record)
            return records

        def get_checkpointed_position(self) -> CheckpointedPosition | None:
            """Where the next record is; None if the records from the beginning are to be counted."""
            return None

        def close(self) -> None:  # noqa: B027 - optional
            """Releases what the reader holds; the stream is closed by the source."""

    @abstractmethod
    def create_reader(self, stream: BinaryIO, file_length: int, split_end: int) -> StreamFormat.Reader:
        """A reader of the records from where the stream is. (Flink's has a configuration as first argument.)"""

    def restore_reader(
        self, stream: BinaryIO, restored_offset: int, file_length: int, split_end: int
    ) -> StreamFormat.Reader:
        """A reader that goes on at an offset that one of its kind has told; the stream is where the split begins."""
        raise NotImplementedError(f"{type(self).__name__} returns positions but cannot resume from one")

    def is_splittable(self) -> bool:
        """Whether a reader can begin anywhere in a file."""
        return False

    def open_split(self, source: SplitInput) -> FormatReader:
        """A reader of one split, for the source."""
        return _StreamFormatReader(self, source)

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Each line is a record, a ``str`` without its line end.

        Bytes that are not text in the charset fail the job. (Flink puts a replacement character.)
        """
        from firesteel.formats.text.text_line import TextLineInputFormat

        return TextLineInputFormat(charset_name)

    @staticmethod
    def schema_line_format(schema: DeserializationSchema) -> StreamFormat:
        r"""Each line is a message that the schema makes a record of, without its line end (``\n`` or ``\r\n``).

        Empty lines are passed over. Not in Flink, where only tables are read so.
        """
        from firesteel.formats.text.schema_line import SchemaLineFormat

        return SchemaLineFormat(schema)

    @staticmethod
    def json_line_format(type_info: TypeInformation | None = None) -> StreamFormat:
        """Each line is a JSON value: a Row of this type, or what ``json.loads`` gives. Empty lines are passed over."""
        from firesteel.formats.text.schema_line import json_line_format

        return json_line_format(type_info)


class SimpleStreamFormat(StreamFormat):
    """A format whose files are read from their beginning; a restored job reads again what it had read, and drops it."""

    @abstractmethod
    def create_reader(  # type: ignore[override]
        self, stream: BinaryIO
    ) -> StreamFormat.Reader:
        """A reader of all records of the stream."""

    def open_split(self, source: SplitInput) -> FormatReader:
        """A reader of one split, for the source."""
        return _StreamFormatReader(_Whole(self), source)


class BulkFormat(FileFormat):
    """Reads batches of records from a file that it can seek in.

    ``create_reader`` gets the split and its file, open. It is to give the records of the byte range of the split if
    the format is splittable; how is its own business. A reader that can tell a position spares a restored job reading
    what it had read before: then implement ``restore_reader`` too.
    """

    class Reader(ABC):
        """Reads the records of one split."""

        @abstractmethod
        def read_batch(self) -> Sequence[Any] | None:
            """The next records; None at the end."""

        def get_checkpointed_position(self) -> CheckpointedPosition | None:
            """Where the next batch begins; None if the records from the beginning are to be counted."""
            return None

        def close(self) -> None:  # noqa: B027 - optional
            """Releases what the reader holds; the file is closed by the source."""

    @abstractmethod
    def create_reader(self, split: FileSourceSplit, file: BinaryIO) -> BulkFormat.Reader:
        """A reader of the records of a split. (Flink's has a configuration, and opens the file itself.)"""

    def restore_reader(self, split: FileSourceSplit, file: BinaryIO) -> BulkFormat.Reader:
        """A reader that goes on at ``split.position``; the records to skip after it are skipped by the source."""
        raise NotImplementedError(f"{type(self).__name__} returns positions but cannot resume from one")

    def is_splittable(self) -> bool:
        """Whether a part of a file can be read."""
        return False

    def open_split(self, source: SplitInput) -> FormatReader:
        """A reader of one split, for the source."""
        return _BulkFormatReader(self, source)


class _Whole(StreamFormat):
    def __init__(self, simple: SimpleStreamFormat) -> None:
        self._simple = simple

    def create_reader(self, stream: BinaryIO, file_length: int, split_end: int) -> StreamFormat.Reader:
        return self._simple.create_reader(stream)


class _CountingReader(FormatReader):
    """Derives positions by counting the records after the last offset that the user's reader returned."""

    def __init__(self, split: FileSourceSplit) -> None:
        self._at = CheckpointedPosition(split.position, 0)

    def _batch(self, items: Sequence[Any], told: CheckpointedPosition | None) -> FetchedBatch:
        at = self._at
        self._at = told or CheckpointedPosition(at.offset, at.records_after_offset + len(items))
        return FetchedBatch(items, at, self._at)


class _StreamFormatReader(_CountingReader):
    def __init__(self, stream_format: StreamFormat, source: SplitInput) -> None:
        split = source.split
        super().__init__(split)
        raw = source.open_stream()
        # the end of a compressed file is not known before it is read
        length = 2**63 - 1 if is_compressed(split.path) else length_of(raw)
        end = length if split.end is None else split.end
        raw.seek(split.start)
        stream = source.buffered(raw, source.fetch_bytes)
        if split.position is None:
            self._reader = stream_format.create_reader(stream, length, end)
        else:
            self._reader = stream_format.restore_reader(stream, split.position, length, end)

    def fetch(self) -> FetchedBatch | None:
        records = self._reader.read_batch(_BATCH_RECORDS)
        return self._batch(records, self._reader.get_checkpointed_position()) if records else None

    def close(self) -> None:
        self._reader.close()


class _BulkFormatReader(_CountingReader):
    def __init__(self, bulk_format: BulkFormat, source: SplitInput) -> None:
        super().__init__(source.split)
        file = source.open_file()
        if source.split.position is None:
            self._reader = bulk_format.create_reader(source.split, file)
        else:
            self._reader = bulk_format.restore_reader(source.split, file)

    def fetch(self) -> FetchedBatch | None:
        records = self._reader.read_batch()
        return None if records is None else self._batch(records, self._reader.get_checkpointed_position())

    def close(self) -> None:
        self._reader.close()
