"""Files that are read and written as columns, not line by line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, ClassVar

from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.config.option import ConfigOption
from firesteel.formats.stream_format import BulkFormat
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.options import option_of
from firesteel.types.logical import RowType

__all__ = ["GROUP_BYTES", "BatchWriter", "BulkFiles", "Part", "compression_of", "writing_with"]

GROUP_BYTES = 32 * 1024 * 1024
"""Bytes of columns that are gathered before they are written."""


class Part:
    """Rows of one partition."""

    __slots__ = ("bucket", "payload")

    def __init__(self, bucket: str, payload: Any) -> None:
        self.bucket = bucket
        self.payload = payload
        """Lines, or a RecordBatch."""


class BulkFiles(ABC):
    """A format of files. Formats are immutable, hashable and picklable."""

    name: ClassVar[str]

    @abstractmethod
    def reader(self, row_type: RowType) -> BulkFormat:
        """What reads columns of files as column batches; a column that a file lacks is null."""

    @abstractmethod
    def writer(self, row_type: RowType) -> BulkWriterFactory:
        """What writes files of parts whose payload is a RecordBatch."""

    def check_types(self, row_type: RowType) -> None:  # noqa: B027 - some have all types
        """Raises ValidationError for a type that files cannot have."""


class BatchWriter(BulkWriter):
    """Gathers batches of columns, and writes them as one piece of the file."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self._batches: list[Any] = []
        self._bytes = 0

    def add_element(self, element: Part) -> None:
        self._batches.append(element.payload)
        self._bytes += element.payload.nbytes
        if self._bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._batches:
            self.write(self._batches)
            self._batches, self._bytes = [], 0

    def finish(self) -> None:
        self.flush()
        self.end()

    @abstractmethod
    def write(self, batches: Sequence[Any]) -> None:
        """Writes RecordBatches of one schema."""

    @abstractmethod
    def end(self) -> None:
        """Writes the end of the file."""


def compression_of(options: Mapping[str, str], option: ConfigOption[str], known: Mapping[str, str]) -> str:
    """The name that a library has for the compression that an option names."""
    name = option_of(options, option)
    if name.upper() not in known:
        raise ValidationError(
            f"Invalid value for option '{option.key}'.\n\n'{name}' is no compression.",
            hint=f"Known: {', '.join(known)}.",
        )
    return known[name.upper()]


class writing_with(BulkWriterFactory):  # noqa: N801 - used as a function
    """A factory of writers of a class with these arguments."""

    def __init__(self, writer: type[BatchWriter], *arguments: Any) -> None:
        self._writer = writer
        self._arguments = arguments

    def create(self, stream: BinaryIO) -> BulkWriter:
        """A writer into that stream."""
        return self._writer(stream, *self._arguments)
