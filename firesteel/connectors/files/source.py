"""A source of the records of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base.split_enumerators import SharedSplitEnumerator
from firesteel.connectors.files.discovery import (
    FileDiscoveryState,
    MonitoringSplitEnumerator,
    check_discovery_interval,
    restore_static_enumerator,
)
from firesteel.connectors.files.source_reader import FileSourceReader
from firesteel.filesystem.filesystem import FileStatus
from firesteel.filesystem.input_paths import InputPath, find_input_files, to_input_path
from firesteel.filesystem.local_paths import find_files
from firesteel.formats.bad_records import BadRecords
from firesteel.formats.file_split import FileSourceSplit
from firesteel.formats.format_reader import FileFormat
from firesteel.formats.stream_format import BulkFormat, StreamFormat
from firesteel.spi.source import Boundedness, ReaderContext, Source, SplitEnumerator, SplitEnumeratorContext

__all__ = [
    "BulkFormat",
    "FileEnumeratorProvider",
    "FileSource",
    "FileSourceBuilder",
    "FileSourceSplit",
    "FileSplitAssignerProvider",
    "StreamFormat",
]

DEFAULT_SPLIT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class FileEnumeratorProvider:
    """How files are found and cut into splits of ``split_bytes``, None for not at all."""

    split_bytes: int | None
    is_recursive: bool = True
    """Whether files in directories of a directory are found, too."""

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Finds files recursively, passes over hidden ones and cuts large ones where their format allows it."""
        return FileEnumeratorProvider(DEFAULT_SPLIT_BYTES)

    @staticmethod
    def top_level_file_enumerator() -> FileEnumeratorProvider:
        """As the default one, without the files in directories of a directory."""
        return FileEnumeratorProvider(DEFAULT_SPLIT_BYTES, is_recursive=False)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Finds files recursively and passes over hidden ones; each file is one split."""
        return FileEnumeratorProvider(None)

    def enumerate_splits(self, paths: Sequence[InputPath], file_format: FileFormat) -> list[FileSourceSplit]:
        """All splits of the files at and beneath the paths, in order."""
        splits: list[FileSourceSplit] = []
        for root in paths:
            for file in find_input_files(root):
                if not self.is_recursive and not _is_at_top(file, str(root)):
                    continue
                splits += self.split_file(file, file_format, len(splits))
        return splits

    def split_file(self, file: FileStatus | str, file_format: FileFormat, first: int = 0) -> list[FileSourceSplit]:
        """The splits of one file, numbered from ``first`` on."""
        if isinstance(file, str):
            file = FileStatus(file, Path(file).stat().st_size)
        return [
            FileSourceSplit(f"{number}:{file.path}:{start}", file.path, start, end, version=file.version)
            for number, (start, end) in enumerate(file_format.ranges(file, self.split_bytes), first)
        ]


def _is_at_top(file: FileStatus | str, root: str) -> bool:
    path = file if isinstance(file, str) else file.path
    return "/" not in path[len(root) :].strip("/")


@dataclass(frozen=True)
class FileSplitAssignerProvider:
    """Which reader gets which split."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """The next split for any reader: none is nearer to a mounted file than another."""
        return FileSplitAssignerProvider()


class FileSource(Source[FileSourceSplit]):
    """Reads all files at and beneath its paths; ends when all are read unless it monitors them.

    Directories are searched recursively; what begins with ``.`` or ``_`` is passed over there. Paths are local, the
    same on every host, or in a store: ``s3://bucket/path``. Start with ``for_record_stream_format`` or
    ``for_bulk_file_format``. With the former, files that end in ``.gz``, ``.gzip``, ``.bz2``, ``.xz``, ``.deflate``,
    ``.zst`` and ``.zstd`` are decompressed; such a file is read by one reader.
    """

    name: ClassVar[str] = "File Source"
    emits_own_records = True

    fetch_bytes: int | None = None
    """How many bytes a reader asks for at once; None for what suits the store."""

    def __init__(
        self,
        file_format: FileFormat,
        paths: tuple[InputPath, ...],
        file_enumerator: FileEnumeratorProvider,
        discovery_interval_ms: int | None = None,
        bad_records: BadRecords | None = None,
    ) -> None:
        self.file_format = file_format
        self.paths = paths
        self.file_enumerator = file_enumerator
        self.discovery_interval_ms = discovery_interval_ms
        self.bad_records = bad_records or BadRecords.fail()

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begins a source that reads files record by record."""
        if not isinstance(stream_format, StreamFormat):
            raise InvalidProgramError(
                f"FileSource.for_record_stream_format needs a StreamFormat, got {stream_format!r}.",
                hint="A BulkFormat goes to FileSource.for_bulk_file_format.",
            )
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begins a source that reads files in batches of records: Parquet, Avro."""
        if not isinstance(bulk_format, BulkFormat):
            raise InvalidProgramError(
                f"FileSource.for_bulk_file_format needs a BulkFormat, got {bulk_format!r}.",
                hint="A StreamFormat goes to FileSource.for_record_stream_format.",
            )
        return FileSourceBuilder(bulk_format, paths)

    def __repr__(self) -> str:
        paths = ", ".join(map(str, self.paths[:3])) + (", …" if len(self.paths) > 3 else "")
        interval = self.discovery_interval_ms
        monitored = "" if interval is None else f"; new files every {Duration.of_millis(interval).format()}"
        return f"{type(self).__name__}({paths}; {self.file_format.describe()}{monitored})"

    def get_boundedness(self) -> Boundedness:
        """Bounded, the files that are there at the start, unless the paths are monitored for new ones."""
        return Boundedness.BOUNDED if self.discovery_interval_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the records, if the format knows it."""
        return self.file_format.get_produced_type()

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator[FileSourceSplit]:
        """Finds the files now, or again and again; any reader may get any split."""
        if self.discovery_interval_ms is not None:
            return MonitoringSplitEnumerator(context, self.paths, self._split_file, self.discovery_interval_ms)
        return SharedSplitEnumerator(context, self.file_enumerator.enumerate_splits(self.paths, self.file_format))

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[FileSourceSplit] | FileDiscoveryState[FileSourceSplit]
    ) -> SplitEnumerator[FileSourceSplit]:
        """Continues with the splits that no reader had, and files that were not known."""
        if self.discovery_interval_ms is not None:
            return MonitoringSplitEnumerator(
                context, self.paths, self._split_file, self.discovery_interval_ms, restored=state
            )
        return restore_static_enumerator(context, state)

    def create_reader(self, context: ReaderContext) -> FileSourceReader:
        """A reader of one split after another."""
        return FileSourceReader(
            context,
            self.file_format,
            bad_records=self.bad_records,
            fetch_bytes=self.fetch_bytes,
            ask_interval_ms=self.discovery_interval_ms,
        )

    def _split_file(self, file: FileStatus | str) -> list[FileSourceSplit]:
        return self.file_enumerator.split_file(file, self.file_format)


class FileSourceBuilder:
    """Configures a FileSource."""

    def __init__(self, file_format: FileFormat, paths: tuple[str | os.PathLike[str], ...]) -> None:
        self._format = file_format
        self._paths = paths
        self._file_enumerator = FileEnumeratorProvider.default_splittable_file_enumerator()
        self._discovery_interval_ms: int | None = None
        self._bad_records = BadRecords.fail()

    def monitor_continuously(self, discovery_interval: Duration | Time | timedelta | int) -> FileSourceBuilder:
        """Reads the files that are there, then looks for new ones at this interval, without end.

        A file is read once, as it is when it is found, and known by its path from then on, however that is spelt. What
        is appended or changed later is not read. So move complete files there, or write them under a name that begins
        with ``.`` or ``_`` and rename them. (In S3 a file appears when it is complete.) Local paths must exist when the
        job starts.
        """
        self._discovery_interval_ms = check_discovery_interval(discovery_interval)
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Reads the files that are there at the start, then ends; this is the default."""
        self._discovery_interval_ms = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Sets how files are found and cut into splits."""
        self._file_enumerator = file_enumerator
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Accepted for Flink's sake: there is only one assigner."""
        return self

    def set_bad_records(self, policy: BadRecords) -> FileSourceBuilder:
        """What to do with records that cannot be read: fail, which is the default, drop, or a side output."""
        if not isinstance(policy, BadRecords):
            raise InvalidProgramError(
                f"set_bad_records needs a BadRecords, got {policy!r}.",
                hint="BadRecords.fail(), BadRecords.drop() or BadRecords.side_output(tag).",
            )
        self._bad_records = policy
        return self

    def build(self) -> FileSource:
        """The source; fails if a local path does not exist. A store is asked when the job starts."""
        if not self._paths:
            raise InvalidProgramError("FileSource needs at least one path to a file or directory.")
        paths = tuple(to_input_path(path) for path in self._paths)
        for path in paths:
            if isinstance(path, Path):
                # Only the first: listing all of a large directory is the enumerator's work.
                next(find_files(path), None)
        return FileSource(self._format, paths, self._file_enumerator, self._discovery_interval_ms, self._bad_records)
