"""The records of Avro container files, read block by block."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from firesteel.common.errors import FiresteelError
from firesteel.common.typeinfo import TypeInformation
from firesteel.filesystem.input_stream import READ_AHEAD
from firesteel.filesystem.local_paths import FileReadError
from firesteel.formats.avro.schema import AvroSchema, GenericRecordAvroTypeInfo, import_fastavro
from firesteel.formats.file_split import CheckpointedPosition, FileSourceSplit
from firesteel.formats.format_reader import FetchedBatch, FormatReader, SplitInput, length_of
from firesteel.formats.stream_format import BulkFormat
from firesteel.spi.source import ReaderOutput

__all__ = ["AvroBulkFormat", "AvroInputFormat", "AvroReader"]

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_SEARCH_BYTES = 64 * 1024
_RAW_BYTES = 4096
"""So much of a damaged block is kept."""


class AvroBulkFormat(BulkFormat):
    """Each record is a dict, as fastavro reads it; a large file is read in parts, which begin at sync markers.

    ``schema`` is the one to read with, as text or an ``AvroSchema``: fields that a file lacks get their default.
    Without one the records are as the file has them. A block that cannot be read counts as one bad record.
    """

    def __init__(self, schema: AvroSchema | str | None = None) -> None:
        import_fastavro()
        self.avro_schema: AvroSchema | None = AvroSchema.parse_string(schema) if isinstance(schema, str) else schema

    def create_reader(self, split: FileSourceSplit, file: BinaryIO) -> BulkFormat.Reader:
        """Not needed: ``open_split`` decodes outside the thread that reads."""
        raise NotImplementedError("Avro is read with open_split")

    def open_split(self, source: SplitInput) -> FormatReader:
        """A reader of one split."""
        return AvroReader(source, self.avro_schema)

    def is_splittable(self) -> bool:
        """A block can be found from anywhere in a file."""
        return True

    def get_produced_type(self) -> TypeInformation | None:
        """Records of the schema, which are dicts."""
        return None if self.avro_schema is None else GenericRecordAvroTypeInfo(self.avro_schema)

    def describe(self) -> str:
        """The format."""
        return "Avro"


class AvroInputFormat(AvroBulkFormat):
    """The records of the Avro files at a path; for ``env.create_input``."""

    def __init__(self, path: str, schema: AvroSchema | str | None = None) -> None:
        super().__init__(schema)
        self.path = path


@dataclass(frozen=True)
class _Block:
    raw: bytes
    """With its two numbers and its sync marker, as it is in the file."""
    offset: int
    error: str | None = None


class AvroReader(FormatReader):
    """A block is of the split in which the sync marker before it begins."""

    def __init__(self, source: SplitInput, schema: AvroSchema | None) -> None:
        self._split = split = source.split
        self._decoder = source.decoder
        self._file = source.buffered(source.open_file(READ_AHEAD), source.fetch_bytes)
        self._length = length_of(self._file)
        self._header, self._sync = self._read_header()
        self._blocks = _BlockDecoder(split.path, self._header, schema)
        self._position: int | None = split.position
        if self._position is None:
            self._position = self._find_block(max(split.start, len(self._header) - _SYNC_BYTES))
        if self._position is not None:
            self._file.seek(self._position)

    def fetch(self) -> FetchedBatch | None:
        begin, end = self._position, self._split.end
        if begin is None or begin >= self._length or (end is not None and begin - _SYNC_BYTES >= end):
            return None
        block = self._read_block(begin)
        if block.error is None:
            self._position = begin + len(block.raw)
        else:
            self._position = self._find_block(begin)
            if self._position is not None:
                self._file.seek(self._position)
        then = self._length if self._position is None else self._position
        return FetchedBatch(block, CheckpointedPosition(begin), CheckpointedPosition(then))

    def unpack(self, batch: FetchedBatch, output: ReaderOutput) -> Sequence[Any]:
        block: _Block = batch.items
        error: Exception
        if block.error is not None:
            error = ValueError(block.error)
        else:
            try:
                return self._blocks.decode(block.raw)
            except FiresteelError:
                raise
            except Exception as raised:  # noqa: BLE001 - fastavro may raise anything for invalid bytes
                error = raised
        self._decoder.reject(block.raw[:_RAW_BYTES], self._split.split_id, block.offset, error, output)
        return ()

    def _read_header(self) -> tuple[bytes, bytes]:
        """The header, and the sync marker it ends with."""
        self._file.seek(0)
        if self._file.read(len(_MAGIC)) != _MAGIC:
            raise FileReadError(
                f"The input file '{self._split.path}' is not an Avro file: it does not begin like one.",
                path=self._split.path,
                offset=0,
                hint="Only container files, which include their schema, can be read.",
            )
        try:
            while (count := self._read_long()) != 0:
                if count < 0:
                    self._read_long()
                for _ in range(2 * abs(count)):
                    self._file.seek(self._read_long(), os.SEEK_CUR)
            sync = self._file.read(_SYNC_BYTES)
        except EOFError:
            sync = b""
        if len(sync) < _SYNC_BYTES:
            raise FileReadError(
                f"The input file '{self._split.path}' ends within its header.", path=self._split.path, offset=0
            )
        length = self._file.tell()
        self._file.seek(0)
        return self._file.read(length), sync

    def _read_block(self, offset: int) -> _Block:
        try:
            self._read_long()
            size = self._read_long()
        except EOFError:
            size = -1
        data_at = self._file.tell()
        end = data_at + size + _SYNC_BYTES
        self._file.seek(offset)
        if size < 0 or end > self._length:
            raw = self._file.read(min(_RAW_BYTES, self._length - offset))
            return _Block(raw, offset, "the block is damaged, or the file ends within it")
        raw = self._file.read(end - offset)
        if not raw.endswith(self._sync):
            return _Block(raw, offset, "the block is damaged: no sync marker follows it")
        return _Block(raw, offset)

    def _find_block(self, start: int) -> int | None:
        """The position behind the first sync marker that begins from there on."""
        position, tail = start, b""
        self._file.seek(start)
        while piece := self._file.read(_SEARCH_BYTES):
            found = (tail + piece).find(self._sync)
            if found >= 0:
                return position - len(tail) + found + _SYNC_BYTES
            position += len(piece)
            tail = (tail + piece)[1 - _SYNC_BYTES :]
        return None

    def _read_long(self) -> int:
        value = shift = 0
        while shift < 64:
            byte = self._file.read(1)
            if not byte:
                raise EOFError
            value |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
        return -1


class _BlockDecoder:
    """Has fastavro decode one block after another, as if they followed upon each other in a file."""

    def __init__(self, path: str, header: bytes, schema: AvroSchema | None) -> None:
        self._path = path
        self._header = header
        self._schema = None if schema is None else schema.parsed
        self._feed = _Feed()
        self._reader: Any = None

    def decode(self, raw: bytes) -> list[Any]:
        """The records of a block."""
        fastavro = import_fastavro()
        try:
            if self._reader is None:
                self._feed.put(self._header)
                self._reader = fastavro.block_reader(self._feed, self._schema)
            self._feed.put(raw)
            return list(next(self._reader))
        except Exception as error:
            self._reader = None
            if type(error).__name__ == "SchemaResolutionError":
                raise FileReadError(
                    f"The input file '{self._path}' cannot be read with the schema given: {error}",
                    path=self._path,
                    hint="Fields that the file lacks need a default; types must fit those of the file.",
                ) from error
            if "install" in str(error):
                raise FileReadError(
                    f"The input file '{self._path}' is compressed in a way that needs a package: {error}",
                    path=self._path,
                    hint="cramjam for snappy, zstandard for zstandard, lz4 for lz4; on every host.",
                ) from error
            if isinstance(error, (StopIteration, EOFError)):
                raise OSError("the block ends before its last record") from error
            raise


class _Feed:
    """A file that has what was put into it last."""

    def __init__(self) -> None:
        self._data = b""
        self._at = 0

    def put(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read(self, size: int = -1) -> bytes:
        begin = self._at
        self._at = len(self._data) if size < 0 else begin + size
        return self._data[begin : self._at]

    def tell(self) -> int:
        return self._at
