"""Shared storage of a simulated cluster, with faults: slow, full, refusing, hanging or gone."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from firesteel.filesystem.filesystem import CHUNK, FileSystem, FileWriter, parent
from firesteel.filesystem.stores import registered_scheme
from firesteel.testing.simulation.machine.scheduler import Process, Scheduler

__all__ = ["HA_DIRECTORY", "SCHEME", "Storage", "StorageFault", "simulated_storage"]

SCHEME = "sim"
HA_DIRECTORY = "/sim/ha"
"""Where JobManagers find out who leads, if they do so in a directory: a path without a scheme."""
_LATENCY_US = (200, 3_000)
_SLOW_SHARE = 0.01
_SLOW_US = 200_000


@dataclass(frozen=True)
class StorageFault:
    """What is wrong with storage, for the machines it is wrong for."""

    kind: str
    """``slow``, ``refuse``, ``full``, ``hang``, ``vanish`` or ``torn``."""
    machines: frozenset[str] | None = None
    """None for all."""
    path_part: str = ""
    share: float = 1.0
    """Which part of the operations it concerns."""


class Storage:
    """Files by path. Directories are there while something is in them, or when they were made."""

    def __init__(self, simulation: Scheduler):
        self._simulation = simulation
        self.files: dict[str, bytes] = {}
        self.directories: dict[str, dict[str, None]] = {}
        self.faults: list[StorageFault] = []
        self.operations = 0
        self._numbers = itertools.count(1)
        self.on_remove: Callable[[str], None] | None = None
        """Called for each file that is deleted."""

    # -- what goes wrong ----------------------------------------------------------------------------

    def add_fault(self, fault: StorageFault) -> None:
        """From now on."""
        self.faults.append(fault)

    def remove_fault(self, fault: StorageFault) -> None:
        """No longer."""
        self.faults.remove(fault)

    def _process(self) -> Process | None:
        thread = self._simulation.this_thread()
        return None if thread is None else thread.process

    def begin(self, operation: str, path: str, *, usual: bool = True) -> bool:
        """Takes its time and raises what is to go wrong; whether the storage is there at all.

        What is not ``usual`` mostly takes no time: there is too much of it to simulate each operation.
        """
        simulation = self._simulation
        process = self._process()
        if process is None:
            return True
        self.operations += 1
        draw = simulation.random.random()
        low, high = _LATENCY_US
        if draw <= _SLOW_SHARE:
            simulation.sleep(int(draw / _SLOW_SHARE * _SLOW_US))
        elif usual:
            simulation.sleep(int(low + draw * high))
        else:
            simulation.check_alive()
        is_there = True
        for fault in list(self.faults):
            if not self._concerns(fault, process, path):
                continue
            if fault.kind == "slow":
                simulation.sleep(simulation.random.randint(100_000, 5_000_000))
            elif fault.kind == "refuse":
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            elif fault.kind == "full" and operation == "write":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            elif fault.kind == "vanish":
                if operation == "write":
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
                is_there = False
            while fault.kind == "hang" and fault in self.faults:
                simulation.sleep(500_000)
        return is_there

    def _concerns(self, fault: StorageFault, process: Process, path: str) -> bool:
        if fault.machines is not None and process.machine.name not in fault.machines:
            return False
        if fault.path_part not in path:
            return False
        return fault.share >= 1 or self._simulation.random.random() < fault.share

    # -- files --------------------------------------------------------------------------------------

    def put(self, path: str, data: bytes) -> None:
        """Makes a file, with the directories above it."""
        self.files[path] = data
        self._link(path)

    def _link(self, path: str) -> None:
        while not (above := parent(path)).endswith(":/") and path != "/":
            names = self.directories.setdefault(above, {})
            name = path.rpartition("/")[2]
            if name in names:
                return
            names[name] = None
            path = above

    def remove(self, path: str) -> None:
        """Deletes a file."""
        del self.files[path]
        self._unlink(path)
        if self.on_remove is not None:
            self.on_remove(path)

    def _unlink(self, path: str) -> None:
        names = self.directories.get(parent(path))
        if names is not None:
            names.pop(path.rpartition("/")[2], None)

    def remove_tree(self, directory: str) -> None:
        """Deletes a directory and all beneath it."""
        for name in list(self.directories.get(directory, ())):
            below = f"{directory}/{name}"
            if below in self.files:
                self.remove(below)
            if below in self.directories:
                self.remove_tree(below)
        if self.directories.pop(directory, None) is not None:
            self._unlink(directory)

    def rename_tree(self, source: str, target: str) -> None:
        """Renames a directory, with all beneath it, in one step."""
        for paths in (self.files, self.directories):
            for path in [path for path in paths if path == source or path.startswith(f"{source}/")]:
                paths[target + path[len(source) :]] = paths.pop(path)  # type: ignore[assignment]
        self._unlink(source)
        self._link(target)

    def make(self, directory: str) -> None:
        """Makes a directory."""
        if directory not in self.directories:
            self.directories[directory] = {}
            self._link(directory)

    def next_number(self) -> int:
        """A number for the name of an unfinished file."""
        return next(self._numbers)


class SimulatedFileSystem(FileSystem):
    """The storage as the product sees it."""

    def __init__(self, storage: Storage):
        self._storage = storage

    def create(self, path: str, buffer_size: int = CHUNK) -> FileWriter:
        """Starts a new file."""
        self._storage.begin("write", path)
        return _Writer(self._storage, path)

    def create_once(self, path: str, data: bytes) -> None:
        """Writes a whole file unless it is there."""
        self._storage.begin("write", path)
        if path in self._storage.files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._storage.put(path, data)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file."""
        data = self._find(path)
        return data[offset:] if length is None else data[offset : offset + length]

    def exists(self, path: str) -> bool:
        """Whether there is a file."""
        return self._storage.begin("read", path) and path in self._storage.files

    def size(self, path: str) -> int:
        """How long a file is."""
        return len(self._find(path))

    def _find(self, path: str) -> bytes:
        if not self._storage.begin("read", path) or path not in self._storage.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._storage.files[path]

    def delete(self, path: str) -> None:
        """Deletes a file."""
        if self._storage.begin("delete", path) and path in self._storage.files:
            self._storage.remove(path)

    def delete_tree(self, directory: str) -> None:
        """Deletes a directory, file by file."""
        storage = self._storage
        if not storage.begin("delete", directory):
            return
        for name in list(storage.directories.get(directory, ())):
            below = f"{directory}/{name}"
            if below in storage.directories:
                self.delete_tree(below)
            else:
                self.delete(below)
        if storage.begin("delete", directory) and not storage.directories.get(directory, {"": None}):
            storage.remove_tree(directory)

    def delete_empty(self, directory: str) -> None:
        """Deletes a directory in which nothing is."""
        if self._storage.begin("delete", directory) and self._storage.directories.get(directory) == {}:
            self._storage.remove_tree(directory)

    def list(self, directory: str) -> list[str]:
        """The names of what is in a directory."""
        return sorted(self._storage.directories.get(directory, ())) if self._storage.begin("read", directory) else []

    def makedirs(self, directory: str) -> None:
        """Makes a directory."""
        self._storage.begin("write", directory)
        self._storage.make(directory)


class _Writer(FileWriter):
    """Writes to a name of its own and renames at the end; a process that dies leaves what it has written by then."""

    def __init__(self, storage: Storage, path: str):
        self._storage = storage
        self._path = path
        directory, _, name = path.rpartition("/")
        self._unfinished = f"{directory}/.{name}.{storage.next_number():08x}.inprogress"
        self._done = False
        storage.put(self._unfinished, b"")

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._storage.begin("write", self._path)
        self._storage.put(self._unfinished, self._storage.files.get(self._unfinished, b"") + bytes(data))

    def close(self) -> None:
        if self._done:
            return
        self._storage.begin("write", self._path)
        if self._unfinished not in self._storage.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._unfinished)
        self._done = True
        data = self._storage.files[self._unfinished]
        self._storage.remove(self._unfinished)
        self._storage.put(self._path, data)

    def abort(self) -> None:
        if not self._done and self._storage.begin("delete", self._path):
            self._done = True
            if self._unfinished in self._storage.files:
                self._storage.remove(self._unfinished)


@contextmanager
def simulated_storage(storage: Storage) -> Iterator[None]:
    """While it lasts, paths that begin with ``sim://``, or are local, are in that storage."""
    create = lambda: SimulatedFileSystem(storage)
    with registered_scheme(SCHEME, create), registered_scheme("file", create):
        yield
