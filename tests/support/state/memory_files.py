"""State files in a dictionary: what backends write to and read from in tests without storage."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from typing_extensions import Self

from firesteel.common.errors import CorruptStateError
from firesteel.runtime.model.state_handles import FileSegment, InlineBytes, KeyedStateHandle, StateBytes

_numbers = itertools.count(1)


class MemoryStore:
    """The bytes of all state files, by path."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def delete(self, path: str) -> None:
        """Deletes a file if it is there."""
        self.files.pop(path, None)

    def retain(self, handles: Iterable[KeyedStateHandle]) -> None:
        """Deletes every file that none of the handles needs."""
        needed = {path for handle in handles for path in paths_of(handle)}
        for path in list(self.files):
            if path not in needed:
                del self.files[path]


def paths_of(handle: KeyedStateHandle) -> set[str]:
    """The files a handle needs."""
    return {part.data.path for part in handle.parts if isinstance(part.data, FileSegment)}


class MemorySnapshotFiles:
    """Stands in for SnapshotFiles."""

    def __init__(self, store: MemoryStore, inline_threshold: int = 64):
        self._store = store
        self._inline_threshold = inline_threshold
        self._written: list[str] = []
        self.bytes_written = 0

    def write(self, data: bytes | Iterable[bytes], *, shared: bool) -> StateBytes:
        """Keeps bytes, small ones inline."""
        whole = data if isinstance(data, bytes) else b"".join(data)
        self.bytes_written += len(whole)
        if len(whole) <= self._inline_threshold:
            return InlineBytes(whole)
        path = f"memory:/{'shared' if shared else 'exclusive'}/{next(_numbers)}"
        self._store.files[path] = whole
        self._written.append(path)
        return FileSegment(path, 0, len(whole), str(hash(whole)))

    def write_stream(self, shared: bool) -> _Stream:
        """A stream whose bytes are kept once it is finished."""
        return _Stream(self, shared)

    def upload(self, local: Path, *, shared: bool) -> FileSegment:
        """Keeps a local file."""
        threshold, self._inline_threshold = self._inline_threshold, -1
        try:
            segment = self.write(local.read_bytes(), shared=shared)
        finally:
            self._inline_threshold = threshold
        assert isinstance(segment, FileSegment)
        return segment

    def finish(self) -> None:
        """Everything is kept already."""

    def discard(self) -> None:
        """Deletes what was written."""
        for path in self._written:
            self._store.delete(path)


class _Stream:
    def __init__(self, files: MemorySnapshotFiles, shared: bool):
        self._files = files
        self._shared = shared
        self._buffer = io.BytesIO()

    def write(self, data: bytes) -> None:
        self._buffer.write(data)

    def tell(self) -> int:
        return self._buffer.tell()

    def finish(self) -> StateBytes:
        return self._files.write(self._buffer.getvalue(), shared=self._shared)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class MemoryStateFileReader:
    """Stands in for StateFileReader."""

    def __init__(self, store: MemoryStore):
        self._store = store

    def read(self, data: StateBytes) -> bytes:
        """The bytes; CorruptStateError if they are not as they were written."""
        if isinstance(data, InlineBytes):
            return data.data
        found = self._store.files.get(data.path)
        if found is None:
            raise CorruptStateError(f"State file {data.path} is missing.", path=data.path)
        part = found[data.offset : data.offset + data.length]
        if len(part) != data.length or str(hash(part)) != data.checksum:
            raise CorruptStateError(f"State file {data.path} is corrupt.", path=data.path)
        return part

    def open(self, data: StateBytes) -> io.BytesIO:
        """The bytes as a stream."""
        return io.BytesIO(self.read(data))

    def download(self, segment: FileSegment, target: Path) -> None:
        """Writes the bytes to a local file."""
        target.write_bytes(self.read(segment))

    def download_all(self, transfers: Iterable[tuple[FileSegment, Path]]) -> None:
        """Writes several local files."""
        for segment, target in transfers:
            self.download(segment, target)

    def prefetch(self, segments: Iterator[FileSegment]) -> None:
        """Nothing to fetch."""

    def close(self) -> None:
        """Nothing is open."""
