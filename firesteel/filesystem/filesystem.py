"""Where state files are kept: one interface to the local disk and to object stores.

``stores.get_filesystem`` picks the implementation by the path's scheme. What it returns reports every failure as a
CheckpointStorageError that names the path and a remedy; only a missing file is a FileNotFoundError, because
its meaning depends on the caller.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import mmh3

from firesteel.common.errors import CheckpointDirectoryError, CheckpointStorageError
from firesteel.filesystem.input_stream import READ_AHEAD, RangedInputStream
from firesteel.process import fault_points

__all__ = [
    "CHUNK",
    "FileStatus",
    "FileSystem",
    "FileWriter",
    "checksum",
    "file_chunks",
    "join",
    "new_checksum",
    "normalize",
    "parent",
    "reported",
    "scheme_of",
]

CHUNK = 1 << 20
"""Bytes that are read or hashed at once: few enough that the interpreter lock is never held for long."""


def new_checksum() -> Any:
    """A checksum to feed with ``update(bytes)``; ``digest().hex()`` is what :func:`checksum` gives for all at once."""
    return mmh3.mmh3_x64_128()


def checksum(data: bytes | bytearray | memoryview) -> str:
    """The checksum of state: 128 bits, as hexadecimal digits."""
    return str(mmh3.mmh3_x64_128_digest(data).hex())


def scheme_of(path: str) -> str:
    """The scheme of a path, ``file`` if it has none.

    >>> scheme_of("s3://bucket/checkpoints"), scheme_of("/tmp/checkpoints")
    ('s3', 'file')
    """
    scheme, separator, _ = path.partition("://")
    return scheme.lower() if separator else "file"


def normalize(path: str) -> str:
    """A path as state handles have it: absolute, without a scheme if it is local, without a slash at the end.

    >>> normalize("file:///data//checkpoints/"), normalize("s3://bucket/checkpoints/")
    ('/data/checkpoints', 's3://bucket/checkpoints')
    """
    if scheme_of(path) == "file":
        local = path[len("file:") :] if path.lower().startswith("file:") else path
        return os.path.abspath("/" + local.lstrip("/") if local.startswith("//") else local)  # noqa: PTH100 - no links
    scheme, _, rest = path.partition("://")
    return f"{scheme.lower()}://{rest.rstrip('/')}"


def join(directory: str, *names: str) -> str:
    """A path beneath a directory."""
    return "/".join((directory.rstrip("/"), *names))


def parent(path: str) -> str:
    """The directory a normalized path is in."""
    return path.rpartition("/")[0] or "/"


def file_chunks(local: Path) -> Iterator[bytes]:
    """The bytes of a local file, piece by piece."""
    with local.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK):
            yield chunk


@dataclass(frozen=True)
class FileStatus:
    """What a store knows of a file without reading it."""

    path: str
    size: int
    version: str | None = None
    """Another one when the file was replaced, where the store has versions (S3: the ETag)."""
    modified_ms: int | None = None
    """When it was written, where the store says so."""


class FileWriter(ABC):
    """A new file that exists once it is closed, and not before."""

    @abstractmethod
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Appends bytes."""

    @abstractmethod
    def close(self) -> None:
        """Makes the file durable and visible."""

    @abstractmethod
    def abort(self) -> None:
        """Gives the file up; nothing is left of it. Harmless after close or abort."""


class FileSystem(ABC):
    """What checkpoints need of a store. Paths are normalized; files are written once and never changed.

    Implementations raise OSError (FileNotFoundError for what does not exist).
    """

    is_local = False
    """Whether reading costs no network as far as is known."""

    @abstractmethod
    def create(self, path: str, buffer_size: int = CHUNK) -> FileWriter:
        """Starts a new file, with the directories above it."""

    @abstractmethod
    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file; fewer than ``length`` if it ends before."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file."""

    @abstractmethod
    def size(self, path: str) -> int:
        """How long a file is."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Deletes a file; one that is missing is as good as deleted."""

    @abstractmethod
    def delete_tree(self, directory: str) -> None:
        """Deletes a directory and all beneath it; one that is missing is as good as deleted."""

    @abstractmethod
    def delete_empty(self, directory: str) -> None:
        """Deletes a directory if it is there and nothing is in it."""

    @abstractmethod
    def list(self, directory: str) -> list[str]:
        """The names of what is in a directory, sorted; none if it does not exist."""

    @abstractmethod
    def makedirs(self, directory: str) -> None:
        """Creates a directory with those above it, where the store has directories."""

    def create_once(self, path: str, data: bytes) -> None:
        """Writes a whole file at once, durably and atomically; FileExistsError if it is there already."""
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self.write(path, (data,))

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """Writes a whole file: durably, and complete or not at all."""
        writer = self.create(path)
        try:
            for chunk in chunks:
                writer.write(chunk)
            writer.close()
        except BaseException:
            writer.abort()
            raise

    def read_chunks(self, path: str, offset: int, length: int) -> Iterator[bytes]:
        """Bytes of a file piece by piece; fewer than ``length`` if it ends before."""
        end = offset + length
        while offset < end:
            chunk = self.read(path, offset, min(CHUNK, end - offset))
            if not chunk:
                return
            yield chunk
            offset += len(chunk)

    def status(self, path: str) -> FileStatus:
        """What is known of a file."""
        return FileStatus(path, self.size(path))

    def list_files(self, directory: str) -> Sequence[FileStatus]:
        """All files beneath a directory, in the order of their paths; the file itself if it is one.

        FileNotFoundError if there is neither, as far as the store has directories.
        """
        if self.exists(directory):
            return [self.status(directory)]
        return tuple(file for name in self.list(directory) for file in self.list_files(join(directory, name)))

    def open(self, path: str, *, version: str | None = None, read_ahead: int = READ_AHEAD) -> BinaryIO:
        """A stream of a file's bytes that can seek and reads nothing twice; no buffer lies above it.

        With a version, a file that has another one by now is not read: an OSError with ESTALE. ``read_ahead`` is how
        many bytes are asked for at least at once, 0 if a reader jumps about in the file.
        """
        return cast(
            BinaryIO, RangedInputStream(lambda at, length: self.read(path, at, length), self.size(path), read_ahead)
        )

    def upload(self, local: Path, path: str) -> None:
        """Copies a local file into the store."""
        self.write(path, file_chunks(local))

    def download(self, path: str, local: Path) -> None:
        """Copies a file of the store to the local disk."""
        with local.open("wb") as file:
            file.writelines(self.read_chunks(path, 0, self.size(path)))

    def close(self) -> None:  # noqa: B027 - optional
        """Releases connections."""


def reported(filesystem: FileSystem) -> FileSystem:
    """The file system, with errors that name the path and a hint, and with the fault points of storage."""
    return _Reported(filesystem)


class _Reported(FileSystem):
    """Any file system, with errors that name the path and a hint, and with the fault points of storage."""

    def __init__(self, inner: FileSystem):
        self._inner = inner
        self.is_local = inner.is_local

    def create(self, path: str, buffer_size: int = CHUNK) -> FileWriter:
        with _reported("write", path):
            fault_points.reach("storage.write")
            return _ReportedWriter(self._inner.create(path, buffer_size), path)

    def create_once(self, path: str, data: bytes) -> None:
        with _reported("write", path):
            fault_points.reach("storage.write")
            self._inner.create_once(path, data)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with _reported("read", path):
            fault_points.reach("storage.read")
            return self._inner.read(path, offset, length)

    def read_chunks(self, path: str, offset: int, length: int) -> Iterator[bytes]:
        with _reported("read", path):
            fault_points.reach("storage.read")
            yield from self._inner.read_chunks(path, offset, length)

    # what a source reads is not state: its reader handles an OSError

    def status(self, path: str) -> FileStatus:
        return self._inner.status(path)

    def list_files(self, directory: str) -> Sequence[FileStatus]:
        return self._inner.list_files(directory)

    def open(self, path: str, *, version: str | None = None, read_ahead: int = READ_AHEAD) -> BinaryIO:
        return self._inner.open(path, version=version, read_ahead=read_ahead)

    def exists(self, path: str) -> bool:
        with _reported("read", path):
            return self._inner.exists(path)

    def size(self, path: str) -> int:
        with _reported("read", path):
            return self._inner.size(path)

    def delete(self, path: str) -> None:
        with _reported("delete", path):
            fault_points.reach("storage.delete")
            self._inner.delete(path)

    def delete_tree(self, directory: str) -> None:
        with _reported("delete", directory):
            fault_points.reach("storage.delete")
            self._inner.delete_tree(directory)

    def delete_empty(self, directory: str) -> None:
        with _reported("delete", directory):
            self._inner.delete_empty(directory)

    def list(self, directory: str) -> list[str]:
        with _reported("list", directory):
            return self._inner.list(directory)

    def makedirs(self, directory: str) -> None:
        with _reported("create the directory", directory):
            self._inner.makedirs(directory)

    def close(self) -> None:
        self._inner.close()


class _ReportedWriter(FileWriter):
    """A writer whose errors name the path."""

    def __init__(self, inner: FileWriter, path: str):
        self._inner = inner
        self._path = path

    def write(self, data: bytes | bytearray | memoryview) -> None:
        with _reported("write", self._path):
            self._inner.write(data)

    def close(self) -> None:
        with _reported("write", self._path):
            self._inner.close()

    def abort(self) -> None:
        with _reported("delete", self._path):
            self._inner.abort()


_HINTS = {
    errno.ENOSPC: "The disk is full: free space on it, or set execution.checkpointing.dir to another place.",
    errno.EDQUOT: "The disk quota is used up: free space, or set execution.checkpointing.dir to another place.",
    errno.EFBIG: "The file exceeds the file size limit of the process: see `ulimit -f`.",
    errno.EACCES: "The user that runs the job needs read, write and delete permissions there, on every host.",
    errno.EPERM: "The user that runs the job needs read, write and delete permissions there, on every host.",
    errno.EROFS: "The file system is read-only: set execution.checkpointing.dir to another place.",
    errno.ENOTDIR: "A part of the path is a file, not a directory.",
    errno.EMFILE: "The process has too many files open: see `ulimit -n`.",
    errno.EEXIST: "Another job, or an earlier run of this one, wrote there: give each job its own directory.",
}
_WRONG_PATH = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.EINVAL,
    }
)
"""Errors that are due to the path or to its permissions, not to the state of the store."""
_DEFAULT_HINT = "Check that the store can be reached from this host and that the path is right."


@contextmanager
def _reported(action: str, path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        if action not in ("read", "delete"):
            raise CheckpointDirectoryError(f"Cannot {action} {path}: no such directory.", path=path) from None
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        number = error.errno or (errno.EACCES if isinstance(error, PermissionError) else 0)
        hint = _HINTS.get(number, _DEFAULT_HINT)
        kind = CheckpointDirectoryError if number in _WRONG_PATH else CheckpointStorageError
        raise kind(f"Cannot {action} {path}: {reason}.", path=path, hint=hint) from error
