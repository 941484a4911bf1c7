"""A source of the lines of text files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from firesteel.common.connector import Boundedness, ReaderContext, Source, SplitEnumerator, SplitEnumeratorContext
from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time
from firesteel.connectors.file_discovery import (
    FileDiscoveryState,
    MonitoringSplitEnumerator,
    check_discovery_interval,
    restore_static_enumerator,
)
from firesteel.connectors.local_paths import find_files, to_local_path
from firesteel.connectors.split_enumerators import SharedSplitEnumerator
from firesteel.connectors.text_line_format import StreamFormat, is_compressed
from firesteel.connectors.text_line_reader import FileSourceSplit, TextLineReader

__all__ = [
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

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Finds files recursively, passes over hidden ones and cuts large ones that are not compressed."""
        return FileEnumeratorProvider(DEFAULT_SPLIT_BYTES)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Finds files recursively and passes over hidden ones; each file is one split."""
        return FileEnumeratorProvider(None)

    def enumerate_splits(self, paths: tuple[Path, ...], stream_format: StreamFormat) -> list[FileSourceSplit]:
        """All splits of the files at and beneath the paths, in order."""
        splits: list[FileSourceSplit] = []
        for root in paths:
            for file in find_files(root):
                splits += self.split_file(str(file), stream_format, len(splits))
        return splits

    def split_file(self, path: str, stream_format: StreamFormat, first: int = 0) -> list[FileSourceSplit]:
        """The splits of one file, numbered from ``first`` on."""
        if is_compressed(path):
            return [FileSourceSplit(f"{first}:{path}", path)]
        size = Path(path).stat().st_size
        step = self.split_bytes if self.split_bytes and stream_format.splittable else max(size, 1)
        return [
            FileSourceSplit(f"{number}:{path}:{start}", path, start, min(start + step, size))
            for number, start in enumerate(range(0, size, step), first)
        ]


@dataclass(frozen=True)
class FileSplitAssignerProvider:
    """Which reader gets which split."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """The next split for whichever reader asks: none is nearer to a mounted file than another."""
        return FileSplitAssignerProvider()


class FileSource(Source[FileSourceSplit]):
    """Reads all files at and beneath its paths, each line a record; ends when all are read unless it monitors them.

    Directories are searched recursively; what begins with ``.`` or ``_`` is passed over there. Files ending
    in ``.gz``, ``.gzip``, ``.bz2`` and ``.xz`` are decompressed. Start with ``for_record_stream_format``.
    """

    name: ClassVar[str] = "File Source"

    def __init__(
        self,
        stream_format: StreamFormat,
        paths: tuple[Path, ...],
        file_enumerator: FileEnumeratorProvider,
        discovery_interval_ms: int | None = None,
    ) -> None:
        self.stream_format = stream_format
        self.paths = paths
        self.file_enumerator = file_enumerator
        self.discovery_interval_ms = discovery_interval_ms

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Begins a source that reads files record by record."""
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: Any, *paths: str | os.PathLike[str]) -> FileSourceBuilder:
        """Not there yet: bulk formats such as Parquet."""
        raise NotImplementedError("FileSource.for_bulk_file_format: there are no bulk formats yet")

    def __repr__(self) -> str:
        paths = ", ".join(map(str, self.paths[:3])) + (", …" if len(self.paths) > 3 else "")
        interval = self.discovery_interval_ms
        monitored = "" if interval is None else f"; new files every {Duration.of_millis(interval).format()}"
        return f"FileSource({paths}; text lines in {self.stream_format.charset_name}{monitored})"

    def get_boundedness(self) -> Boundedness:
        """Bounded, the files that are there at the start, unless the paths are monitored for new ones."""
        return Boundedness.BOUNDED if self.discovery_interval_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator[FileSourceSplit]:
        """Finds the files now, or again and again; any reader may get any split."""
        if self.discovery_interval_ms is not None:
            return MonitoringSplitEnumerator(context, self.paths, self._split_file, self.discovery_interval_ms)
        return SharedSplitEnumerator(context, self.file_enumerator.enumerate_splits(self.paths, self.stream_format))

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[FileSourceSplit] | FileDiscoveryState[FileSourceSplit]
    ) -> SplitEnumerator[FileSourceSplit]:
        """Goes on with the splits that no reader had, and files that were not known."""
        if self.discovery_interval_ms is not None:
            return MonitoringSplitEnumerator(
                context, self.paths, self._split_file, self.discovery_interval_ms, restored=state
            )
        return restore_static_enumerator(context, state)

    def create_reader(self, context: ReaderContext) -> TextLineReader:
        """A reader of one file after another."""
        return TextLineReader(context, self.stream_format, ask_interval_ms=self.discovery_interval_ms)

    def _split_file(self, path: str) -> list[FileSourceSplit]:
        return self.file_enumerator.split_file(path, self.stream_format)


class FileSourceBuilder:
    """Configures a FileSource."""

    def __init__(self, stream_format: StreamFormat, paths: tuple[str | os.PathLike[str], ...]) -> None:
        self._stream_format = stream_format
        self._paths = paths
        self._file_enumerator = FileEnumeratorProvider.default_splittable_file_enumerator()
        self._discovery_interval_ms: int | None = None

    def monitor_continuously(self, discovery_interval: Duration | Time | timedelta | int) -> FileSourceBuilder:
        """Reads the files that are there, then looks for new ones at this interval, without end.

        A file is read once, as it is when it is found, and known by its path from then on: what is appended or changed
        later is not read. So move complete files there, or write them under a name that begins with ``.`` or ``_`` and
        rename them. The paths must exist when the job starts.
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

    def build(self) -> FileSource:
        """The source; fails if a path does not exist."""
        if not self._paths:
            raise InvalidProgramError("FileSource needs at least one path to a file or directory.")
        paths = tuple(to_local_path(path) for path in self._paths)
        for path in paths:
            # Only the first: listing all of a large directory is the enumerator's work.
            next(find_files(path), None)
        return FileSource(self._stream_format, paths, self._file_enumerator, self._discovery_interval_ms)
