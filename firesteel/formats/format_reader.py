"""Interface of file formats: how a file is split, and a reader for one split."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from firesteel.common.serialization import DeserializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.filesystem.filesystem import FileStatus
from firesteel.filesystem.input_stream import READ_AHEAD
from firesteel.filesystem.local_paths import FileReadError
from firesteel.filesystem.stores import get_filesystem
from firesteel.formats.bad_records import RecordDecoder
from firesteel.formats.compression import decompressed, is_compressed
from firesteel.formats.file_split import CheckpointedPosition, FileSourceSplit
from firesteel.spi.source import ReaderOutput

__all__ = ["FetchedBatch", "FileFormat", "FormatReader", "SplitInput"]

_COMPRESSED_BYTES = 256 * 1024


@dataclass
class FetchedBatch:
    """What a reader fetched at once: items in order, each of which becomes at most one record."""

    items: Any
    """A sequence, or what ``unpack`` makes one of."""
    at: CheckpointedPosition
    """Where the first item is."""
    then: CheckpointedPosition
    """Where the one behind the last is."""
    is_last: bool = False
    """Whether it is known that nothing follows."""
    data: Any = None
    """What else the reader needs to decode the items."""


class FormatReader(ABC):
    """Reads one split. ``fetch`` may wait for the store and is called in another thread than the rest, if it does."""

    already_skipped = 0
    """How many of the split's ``records_to_skip`` do not come any more."""

    @abstractmethod
    def fetch(self) -> FetchedBatch | None:
        """The next items; None at the end of the split."""

    def unpack(self, batch: FetchedBatch, output: ReaderOutput) -> Sequence[Any]:
        """The items of a batch, as a sequence."""
        items: Sequence[Any] = batch.items
        return items

    def decode(self, batch: FetchedBatch, items: Sequence[Any], first: int, output: ReaderOutput) -> Sequence[Any]:
        """The records of some items of a batch, beginning with its ``first``-th."""
        return items

    def close(self) -> None:  # noqa: B027 - optional
        """Releases what the reader holds, except the streams it was given."""


class SplitInput:
    """What a reader is given to read a split: the file, and what to do with bad records."""

    def __init__(
        self, split: FileSourceSplit, fetch_bytes: int, decoder: RecordDecoder, *, skips_bad_records: bool
    ) -> None:
        self.split = split
        self.fetch_bytes = fetch_bytes
        """How many bytes to read at once."""
        self.decoder = decoder
        self.skips_bad_records = skips_bad_records
        self._opened: list[BinaryIO] = []
        self._file: BinaryIO | None = None

    def open_stream(self) -> BinaryIO:
        """The file's bytes, decompressed, to be read from front to back."""
        file = self.open_file(READ_AHEAD)
        if not is_compressed(self.split.path):
            return file
        stream = decompressed(self.split.path, self.buffered(file, _COMPRESSED_BYTES))
        self._opened.append(stream)
        return stream

    def buffered(self, stream: BinaryIO, size: int) -> BinaryIO:
        """A stream that is read in pieces of this size, however little is asked for."""
        buffered = cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, stream), size))
        self._opened.append(buffered)
        return buffered

    def open_file(self, read_ahead: int = 0) -> BinaryIO:
        """The file as it is, to be read anywhere."""
        split = self.split
        file = get_filesystem(split.path).open(split.path, version=split.version, read_ahead=read_ahead)
        self._opened.append(file)
        self._file = file
        self.check_not_shorter()
        return file

    def check_not_shorter(self) -> None:
        """FileReadError if the file lacks bytes that it had when it was found."""
        split, file = self.split, self._file
        if split.end is None or file is None or file.closed or is_compressed(split.path):
            return
        size = length_of(file)
        if size < split.end:
            raise FileReadError(
                f"The input file '{split.path}' has {size} bytes but had at least {split.end} when it was found.",
                path=split.path,
                offset=split.position,
                hint="The file was changed after it was found; input files must not be modified.",
            )

    def close(self) -> None:
        """Closes what was opened."""
        self._file = None
        while self._opened:
            self._opened.pop().close()


class FileFormat(ABC):
    """How the bytes of files become records; picklable."""

    @abstractmethod
    def open_split(self, source: SplitInput) -> FormatReader:
        """A reader that begins at the start of the split; may wait for the store."""

    @abstractmethod
    def is_splittable(self) -> bool:
        """Whether a file can be read from any byte on."""

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the records, if it is known."""
        return None

    @property
    def schema(self) -> DeserializationSchema | None:
        """What decodes the items, if a schema does."""
        return None

    def describe(self) -> str:
        """The format in a few words."""
        return type(self).__name__

    def ranges(self, file: FileStatus, split_bytes: int | None) -> list[tuple[int, int | None]]:
        """The first and the last byte, that one excluded, of each split of a file."""
        if is_compressed(file.path):
            return [(0, None)]
        step = split_bytes if split_bytes and self.is_splittable() else max(file.size, 1)
        return [(start, min(start + step, file.size)) for start in range(0, file.size, step)]


def length_of(file: BinaryIO) -> int:
    """How long an open file is; the position stays."""
    position = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(position)
    return size
