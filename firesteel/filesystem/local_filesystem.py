"""State files on the local disk, or on a network file system that is mounted like one."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from firesteel.filesystem.filesystem import CHUNK, FileStatus, FileSystem, FileWriter
from firesteel.filesystem.input_stream import READ_AHEAD

__all__ = ["IN_PROGRESS", "LocalFileSystem"]

IN_PROGRESS = ".inprogress"
"""How the name of a file ends that is not complete."""

_MAX_ATTEMPTS = 10
"""How often an operation is tried that others, who work in the same directory, can get in the way of."""


class LocalFileSystem(FileSystem):
    """Files are written under another name, synced once and renamed, so that a name always stands for a whole file."""

    is_local = True

    def create(self, path: str, buffer_size: int = CHUNK) -> FileWriter:
        """Starts a new file, with the directories above it."""
        return _LocalWriter(path, buffer_size)

    def create_once(self, path: str, data: bytes) -> None:
        """Writes a whole file at once, durably and atomically; FileExistsError if it is there already."""
        writer = _LocalWriter(path, CHUNK, replace=False)
        try:
            writer.write(data)
            writer.close()
        finally:
            writer.abort()

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file; fewer than ``length`` if it ends before."""
        with Path(path).open("rb") as file:
            file.seek(offset)
            return file.read(-1 if length is None else length)

    def read_chunks(self, path: str, offset: int, length: int) -> Iterator[bytes]:
        """Bytes of a file piece by piece; fewer than ``length`` if it ends before."""
        with Path(path).open("rb", buffering=0) as file:
            file.seek(offset)
            while length > 0 and (chunk := file.read(min(CHUNK, length))):
                yield chunk
                length -= len(chunk)

    def exists(self, path: str) -> bool:
        """Whether there is a file."""
        # is_file() would take a file that may not be looked at for one that is not there
        try:
            return stat.S_ISREG(Path(path).stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def size(self, path: str) -> int:
        """How long a file is."""
        return Path(path).stat().st_size

    def status(self, path: str) -> FileStatus:
        """What is known of a file."""
        found = Path(path).stat()
        return FileStatus(path, found.st_size, modified_ms=found.st_mtime_ns // 1_000_000)

    def open(self, path: str, *, version: str | None = None, read_ahead: int = READ_AHEAD) -> BinaryIO:
        """The file itself: the operating system reads ahead."""
        return cast(BinaryIO, Path(path).open("rb", buffering=0))

    def delete(self, path: str) -> None:
        """Deletes a file; one that is missing is as good as deleted."""
        Path(path).unlink(missing_ok=True)

    def delete_tree(self, directory: str) -> None:
        """Deletes a directory and all beneath it; one that is missing is as good as deleted."""
        for attempt in range(_MAX_ATTEMPTS):
            try:
                shutil.rmtree(directory)
            except OSError as error:
                # others delete there too, or write: a subtask that was not notified yet
                if error.errno not in (errno.ENOENT, errno.ENOTEMPTY) or attempt == _MAX_ATTEMPTS - 1:
                    raise
            if not Path(directory).exists():
                return

    def delete_empty(self, directory: str) -> None:
        """Deletes a directory if it is there and nothing is in it."""
        with suppress(OSError):
            Path(directory).rmdir()

    def list(self, directory: str) -> list[str]:
        """The names of what is in a directory, sorted; none if it does not exist."""
        try:
            return sorted(os.listdir(directory))  # noqa: PTH208 - names are what is asked for
        except FileNotFoundError:
            return []

    def makedirs(self, directory: str) -> None:
        """Creates a directory with those above it."""
        _make_directory(Path(directory))


class _LocalWriter(FileWriter):
    def __init__(self, path: str, buffer_size: int, *, replace: bool = True):
        self._path = Path(path)
        self._replace = replace
        self._temporary = self._path.with_name(f".{self._path.name}.{uuid.uuid4().hex[:8]}{IN_PROGRESS}")
        self._file = self._open(max(buffer_size, 2))

    def _open(self, buffer_size: int) -> BinaryIO:
        created: list[Path] = []
        for attempt in range(_MAX_ATTEMPTS):
            try:
                file = self._temporary.open("xb", buffering=buffer_size)
                break
            except FileNotFoundError:
                # may be deleted again in between, if another subtask gives up the same checkpoint
                created = _make_directory(self._path.parent)
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
        for directory in created:
            _sync_directory(directory.parent)
        return file

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._file.write(data)

    def close(self) -> None:
        if self._file.closed:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if self._replace:
            self._temporary.replace(self._path)
        else:
            # a link, unlike a rename, is refused if the name is taken
            os.link(self._temporary, self._path)
            self._temporary.unlink()
        _sync_directory(self._path.parent)

    def abort(self) -> None:
        with suppress(OSError):
            self._file.close()
        self._temporary.unlink(missing_ok=True)


def _make_directory(directory: Path) -> list[Path]:
    """Creates a directory with those above it; which ones were missing."""
    missing = list(itertools.takewhile(lambda each: not each.is_dir(), (directory, *directory.parents)))
    directory.mkdir(parents=True, exist_ok=True)
    return missing


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
