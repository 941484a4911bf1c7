"""Encoding of part files: record by record with an encoder, or in bulk."""

from __future__ import annotations

import io
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import BulkWriter, BulkWriterFactory, Encoder

__all__ = ["BulkContent", "ContentFormat", "ContentWriter", "RowContent"]

GZIP_LEVEL = 6


class ContentWriter(ABC):
    """Writes the records of one part file into its stream."""

    @abstractmethod
    def write(self, values: Sequence[Any]) -> None:
        """Takes records."""

    @abstractmethod
    def persist(self) -> None:
        """Puts all that was taken into the stream, which could end here; more may follow."""

    @abstractmethod
    def finish(self) -> None:
        """Puts all that was taken, and what ends the file, into the stream."""

    def abandon(self) -> None:  # noqa: B027 - optional
        """Nothing goes into the stream any more."""


class ContentFormat(ABC):
    """Makes a writer for each part file; picklable."""

    slice_records = 1024
    """How many records are written before a file's size is looked at."""
    suffix = ""
    """What names must end with for readers to know the content."""

    @abstractmethod
    def open(self, stream: BinaryIO) -> ContentWriter:
        """A writer that begins, or continues, at the end of the stream."""

    def with_text(self, to_text: Callable[[Any], str]) -> ContentFormat:
        """Returns the format for records of a declared type, whose text the function gives."""
        return self


@dataclass(frozen=True)
class RowContent(ContentFormat):
    """Records one after the other; a file can be cut after any of them."""

    encoder: Encoder
    compression: str | None = None

    def __post_init__(self) -> None:
        if self.compression not in (None, "gzip"):
            raise InvalidProgramError(
                f"FileSink: there is no compression {self.compression!r} for row formats.", hint="There is 'gzip'."
            )

    @property
    def suffix(self) -> str:  # type: ignore[override]
        """``.gz`` for what is compressed."""
        return "" if self.compression is None else ".gz"

    def with_text(self, to_text: Callable[[Any], str]) -> RowContent:
        """Returns the format with the encoder for these records."""
        return RowContent(self.encoder.with_text(to_text), self.compression)

    def open(self, stream: BinaryIO) -> ContentWriter:
        """A writer that encodes into the stream."""
        if self.compression is None:
            return _RowWriter(self.encoder, stream)
        return _GzipRowWriter(self.encoder, stream)


@dataclass(frozen=True)
class BulkContent(ContentFormat):
    """Records in a format that is complete only when the file is."""

    factory: BulkWriterFactory
    slice_records = 16_384

    def open(self, stream: BinaryIO) -> ContentWriter:
        """A writer of the factory's."""
        guarded = _GuardedStream(stream)
        return _BulkContentWriter(self.factory.create(guarded), guarded)  # type: ignore[arg-type]


class _RowWriter(ContentWriter):
    def __init__(self, encoder: Encoder, stream: BinaryIO) -> None:
        self._encoder = encoder
        self._stream = stream

    def write(self, values: Sequence[Any]) -> None:
        self._encoder.encode_batch(values, self._stream)

    def persist(self) -> None:
        return

    def finish(self) -> None:
        return


class _GzipRowWriter(_RowWriter):
    """Ends the compressed member at each checkpoint: a file of several is as good as one of one."""

    def __init__(self, encoder: Encoder, stream: BinaryIO) -> None:
        self._members = _GzipStream(stream)
        super().__init__(encoder, self._members)  # type: ignore[arg-type]

    def persist(self) -> None:
        self._members.end_member()

    def finish(self) -> None:
        self._members.end_member()


class _GzipStream(io.RawIOBase):
    """Compresses into another stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._member: Any = None
        self._position = stream.tell()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """Where the next byte goes, counting bytes before compression; 0 only at the beginning of the file."""
        return self._position

    def write(self, data: Any) -> int:
        if self._member is None:
            self._member = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        self._stream.write(self._member.compress(data))
        self._position += len(data)
        return len(data)

    def end_member(self) -> None:
        if self._member is not None:
            self._stream.write(self._member.flush())
            self._member = None


class _GuardedStream(io.RawIOBase):
    """Passes on what is written until it is shut: some libraries write what ends a file when they are let go."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream: BinaryIO | None = stream

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return 0 if self._stream is None else self._stream.tell()

    def write(self, data: Any) -> int:
        return len(data) if self._stream is None else self._stream.write(data)

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()

    def shut(self) -> None:
        self._stream = None


class _BulkContentWriter(ContentWriter):
    def __init__(self, writer: BulkWriter, stream: _GuardedStream) -> None:
        self._writer = writer
        self._stream = stream

    def write(self, values: Sequence[Any]) -> None:
        self._writer.add_elements(values)

    def persist(self) -> None:
        raise AssertionError("a file of a bulk format cannot be cut: it is rolled at every checkpoint")

    def finish(self) -> None:
        self._writer.finish()
        self._stream.shut()

    def abandon(self) -> None:
        self._stream.shut()
