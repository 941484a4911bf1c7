"""A place for checkpoints on any file system, with what a test needs to look into it and to do harm to it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firesteel.config.configuration import Configuration
from firesteel.filesystem.filesystem import FileSystem, join
from firesteel.filesystem.stores import close_filesystems, configure_filesystems, get_filesystem
from tests.support.services.s3_server import S3Server

__all__ = ["CheckpointStore", "local_store", "s3_store"]


class CheckpointStore:
    """A directory of a test's own."""

    def __init__(self, base: str):
        self.base = base

    @property
    def filesystem(self) -> FileSystem:
        return get_filesystem(self.base)

    def path(self, *names: str) -> str:
        return join(self.base, *names)

    def files(self) -> list[str]:
        """Everything that is there, relative to the directory."""
        return [path[len(self.base) + 1 :] for path in self._walk(self.base)]

    def _walk(self, directory: str) -> Iterator[str]:
        for name in self.filesystem.list(directory):
            path = join(directory, name)
            if self.filesystem.exists(path):
                yield path
            else:
                yield from self._walk(path)

    def damage(self, path: str, *, keep: int | None = None, flip: int | None = None) -> None:
        """Cuts a file off after ``keep`` bytes, or changes the byte at ``flip``."""
        data = bytearray(self.filesystem.read(path))
        if flip is not None:
            data[flip] ^= 0xFF
        self.filesystem.delete(path)
        self.filesystem.write(path, (bytes(data if keep is None else data[:keep]),))


@contextmanager
def local_store(directory: Path) -> Iterator[CheckpointStore]:
    """A store on the local disk."""
    yield CheckpointStore(str(directory / "store"))


@contextmanager
def s3_store(server: S3Server) -> Iterator[CheckpointStore]:
    """A store in a bucket; the connections are closed at the end."""
    configure_filesystems(server.configuration)
    try:
        yield CheckpointStore(f"{server.create_bucket()}/{uuid.uuid4().hex}")
    finally:
        close_filesystems()
        configure_filesystems(Configuration())
