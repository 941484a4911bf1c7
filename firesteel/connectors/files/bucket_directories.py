"""The directories of a FileSink's buckets on a local disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from firesteel.common.errors import FileWriteError

__all__ = ["BucketDirectories", "again_if_removed", "make_directories", "sync_directory"]

T = TypeVar("T")

_MAX_ATTEMPTS = 10


class BucketDirectories:
    """Makes the directory of a bucket before records go there, and tries what a commit does with it.

    A bucket that cannot be a directory is found with the record it belongs to. Found at the commit, it would be in a
    checkpoint, and no job could go on from that.
    """

    def __init__(self, base_path: Path) -> None:
        self._base = base_path
        self._made: list[Path] = []
        """In the order in which they were made."""
        self._unsynced: dict[Path, None] = {}

    def path_of(self, bucket_id: str, directory: str, name: str, staging: Path) -> Path:
        """Where a part file of a bucket will be, if a file from the staging directory can be moved there."""
        target = self._base / directory / name
        try:
            again_if_removed(lambda: self._try(target, staging))
        except (OSError, ValueError) as error:
            raise FileWriteError(
                f"The bucket '{_shown(bucket_id)}' cannot be a directory beneath '{self._base}': "
                f"{getattr(error, 'strerror', None) or error}.",
                path=_shown(str(target.parent)),
                hint="A BucketAssigner returns a relative path; the name of a directory has at most 255 bytes. "
                "Filter out records for which it cannot return one, or shorten the path.",
            ) from error
        return target

    def sync(self) -> None:
        """Makes the directories durable that were made since the last time."""
        while self._unsynced:
            directory, _ = self._unsynced.popitem()
            # another writer may have removed it, which was empty
            with suppress(FileNotFoundError):
                sync_directory(directory)

    def remove_if_empty(self) -> None:
        """Removes the directories that were made and in which nothing is."""
        while self._made:
            with suppress(OSError):
                self._made.pop().rmdir()

    def _try(self, target: Path, staging: Path) -> None:
        made, changed = make_directories(target.parent)
        self._made += made
        self._unsynced.update(dict.fromkeys(changed))
        device = target.parent.stat().st_dev
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if device != staging.stat().st_dev:
            raise OSError(errno.EXDEV, "it is on another file system than the base path")
        # whether a file may have this path, which is longer than that of its directory
        with suppress(FileNotFoundError):
            target.lstat()


def again_if_removed(action: Callable[[], T]) -> T:
    """The result of an action on a bucket's directory, which another writer that ends removes if it is empty."""
    for _ in range(_MAX_ATTEMPTS - 1):
        with suppress(FileNotFoundError):
            return action()
    return action()


def make_directories(directory: Path) -> tuple[list[Path], list[Path]]:
    """Makes a directory and those above it: those that were made, and those that have new entries."""
    missing: list[Path] = []
    while not directory.is_dir():
        missing.append(directory)
        if directory.parent == directory:
            break
        directory = directory.parent
    made: list[Path] = []
    for path in reversed(missing):
        try:
            path.mkdir()
            made.append(path)
        except FileExistsError:
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
    return made, [path.parent for path in made]


def sync_directory(directory: str | os.PathLike[str]) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _shown(text: str) -> str:
    """A name in a message, of which not all characters can be written."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= 200 else f"{text[:200]}…"
