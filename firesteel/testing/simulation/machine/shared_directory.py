"""High availability in a directory that the machines of a simulated cluster share, and whose renames are atomic."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

from typing_extensions import Self

from firesteel.cluster.ha import filesystem_election, filesystem_store, process_identity
from firesteel.testing.simulation.machine.scheduler import Process, Scheduler
from firesteel.testing.simulation.machine.standard_library import replaced
from firesteel.testing.simulation.machine.storage import Storage

__all__ = ["simulated_shared_directory"]

_START_TIME = 19
"""The place of a process's start time in what `process_identity` reads of it."""


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class _Path:
    """As much of a `pathlib.Path` as the store and the election use, on simulated storage."""

    def __init__(self, storage: Storage, path: str):
        self._storage = storage
        self._path = path

    def __truediv__(self, name: str) -> _Path:
        return _Path(self._storage, f"{self._path}/{name}")

    def __str__(self) -> str:
        return self._path

    __fspath__ = __str__

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    @property
    def parent(self) -> _Path:
        return _Path(self._storage, self._path.rpartition("/")[0] or "/")

    def with_name(self, name: str) -> _Path:
        return self.parent / name

    def _begin(self, operation: str) -> None:
        if not self._storage.begin(operation, self._path, usual=False):
            raise _error(errno.ENOENT, self._path)

    def _is_there(self) -> bool:
        return self._storage.begin("read", self._path, usual=False)

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        self._begin("write")
        directories = self._storage.directories
        if self._path in directories:
            if not exist_ok:
                raise _error(errno.EEXIST, self._path)
            return
        if not parents and str(self.parent) not in directories:
            raise _error(errno.ENOENT, self._path)
        self._storage.make(self._path)

    def exists(self) -> bool:
        return self._is_there() and (self._path in self._storage.files or self._path in self._storage.directories)

    def is_dir(self) -> bool:
        return self._is_there() and self._path in self._storage.directories

    def read_bytes(self) -> bytes:
        self._begin("read")
        if self._path not in self._storage.files:
            raise _error(errno.ENOENT, self._path)
        return self._storage.files[self._path]

    def write_bytes(self, data: bytes) -> None:
        self._check_parent()
        self._storage.put(self._path, data)

    def _check_parent(self) -> None:
        self._begin("write")
        if str(self.parent) not in self._storage.directories:
            raise _error(errno.ENOENT, self._path)

    @contextmanager
    def open(self, _mode: str) -> Iterator[Any]:
        """Creates a file; what is written is there at once."""
        self._check_parent()
        if self._path in self._storage.files:
            raise _error(errno.EEXIST, self._path)
        self._storage.put(self._path, b"")

        def write(data: bytes) -> None:
            self.write_bytes(data)

        yield SimpleNamespace(write=write, flush=lambda: None, fileno=lambda: self)

    def rename(self, target: _Path) -> None:
        self._begin("write")
        if str(target.parent) not in self._storage.directories:
            raise _error(errno.ENOENT, str(target))
        if self._path in self._storage.files:
            data = self._storage.files[self._path]
            self._storage.remove(self._path)
            self._storage.put(str(target), data)
        elif self._path not in self._storage.directories:
            raise _error(errno.ENOENT, self._path)
        elif self._storage.directories.get(str(target)):
            raise _error(errno.ENOTEMPTY, str(target))
        else:
            self._storage.rename_tree(self._path, str(target))

    def unlink(self, missing_ok: bool = False) -> None:
        self._begin("delete")
        if self._path in self._storage.files:
            self._storage.remove(self._path)
        elif not missing_ok:
            raise _error(errno.ENOENT, self._path)

    def glob(self, pattern: str) -> list[_Path]:
        names = self._storage.directories.get(self._path, {}) if self._is_there() else {}
        return [self / name for name in sorted(names) if fnmatchcase(name, pattern)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        """Nothing is open."""


class _OperatingSystem:
    """The functions of `os` that the store uses."""

    O_RDONLY = os.O_RDONLY
    O_DIRECTORY = os.O_DIRECTORY

    def __init__(self, storage: Storage):
        self._storage = storage

    def listdir(self, path: _Path) -> list[str]:
        path._begin("read")
        if str(path) not in self._storage.directories:
            raise _error(errno.ENOENT, str(path))
        return list(self._storage.directories[str(path)])

    def open(self, path: _Path, _flags: int) -> _Path:
        path._begin("read")
        if str(path) not in self._storage.directories:
            raise _error(errno.ENOENT, str(path))
        return path

    def fsync(self, _descriptor: _Path) -> None:
        """What is written is durable."""

    def close(self, _descriptor: _Path) -> None:
        """Nothing is open."""

    def link(self, source: _Path, target: _Path) -> None:
        target.write_bytes(source.read_bytes())


@contextmanager
def simulated_shared_directory(simulation: Scheduler, storage: Storage) -> Iterator[None]:
    """While it lasts, elections and stores in a directory are on that storage, and see simulated processes."""

    def path(text: str) -> _Path:
        return _Path(storage, text.rstrip("/"))

    def remove_tree(directory: _Path, ignore_errors: bool = False) -> None:
        try:
            directory._begin("delete")
        except OSError:
            if not ignore_errors:
                raise
        else:
            storage.remove_tree(str(directory))

    def status(pid: int) -> list[str] | None:
        process = simulation.processes.get(pid)
        if process is None or not process.alive or process.machine is not _here(simulation).machine:
            return None
        return ["S", *["0"] * (_START_TIME - 1), str(pid)]

    system = _OperatingSystem(storage)
    storage.make("/")
    with ExitStack() as stack:
        stack.enter_context(replaced(filesystem_election, Path=path))
        stack.enter_context(
            replaced(filesystem_store, Path=path, os=system, shutil=SimpleNamespace(rmtree=remove_tree))
        )
        stack.enter_context(
            replaced(
                process_identity,
                _status=status,
                _read=lambda _path: f"boot-{_here(simulation).machine}-{_here(simulation).machine.boots}",
                _link=lambda _path: f"pid:[{_here(simulation).machine}]",
            )
        )
        yield


def _here(simulation: Scheduler) -> Process:
    thread = simulation.this_thread()
    assert thread is not None
    return thread.process
