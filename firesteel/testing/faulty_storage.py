"""Checkpoint storage with injected faults, in every process of a job.

What goes wrong stands in a control file, which is read at each operation::

    faults = StorageFaults(tmp_path / "faults")
    env.get_config()…set_string(*faults.setting)     # every process of the job looks into that file
    faults.set("fail write")                         # from now on
    faults.clear()

A fault is ``<what> [<operations>] [in <part of a path>] [once]``. What: ``fail`` (an I/O error), ``full`` (no space
left, for writes), ``slow:<seconds>`` (each operation waits), ``truncate`` (files lose their end, when they are
written or when they are read, without an error). Operations: ``write``, ``read``, ``delete``; all if none is named.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from firesteel.filesystem.filesystem import CHUNK, FileSystem, FileWriter
from firesteel.filesystem.stores import WRAPPER_KEY, WRAPPER_VARIABLE

__all__ = ["FaultyFileSystem", "StorageFaults", "wrap"]

_ACTIONS = ("fail", "full", "slow", "truncate", "none")
_OPERATIONS = ("write", "read", "delete")


@dataclass(frozen=True)
class _Fault:
    action: str
    seconds: float
    operations: tuple[str, ...]
    path_part: str
    once: bool

    @staticmethod
    def parse(text: str) -> _Fault:
        words = text.split()
        action, _, seconds = (words[0] if words else "none").partition(":")
        rest = words[1:]
        path_part = ""
        if "in" in rest:
            at = rest.index("in")
            path_part = rest[at + 1]
            del rest[at : at + 2]
        once = "once" in rest
        operations = tuple(word for word in rest if word != "once")
        if action not in _ACTIONS or not set(operations) <= set(_OPERATIONS):
            raise ValueError(f"not a fault of storage: {text!r}")
        return _Fault(action, float(seconds or 0), operations or _OPERATIONS, path_part, once)


class StorageFaults:
    """Defines the faults; picklable, and the same in every process that has the control file."""

    def __init__(self, control: Path):
        self._control = control

    @property
    def setting(self) -> tuple[str, str]:
        """The configuration key and value that make the storage of a job obey the control file."""
        return WRAPPER_KEY, f"{wrap.__module__}:{wrap.__name__}?{self._control}"

    @property
    def environment(self) -> dict[str, str]:
        """The same as an environment variable."""
        return {WRAPPER_VARIABLE: self.setting[1]}

    def set(self, fault: str) -> None:
        """From now on storage behaves like that."""
        _Fault.parse(fault)
        temporary = self._control.with_name(self._control.name + ".new")
        temporary.write_text(fault, encoding="utf-8")
        temporary.replace(self._control)

    def clear(self) -> None:
        """From now on storage works."""
        self._control.unlink(missing_ok=True)

    def wrap(self, filesystem: FileSystem) -> FileSystem:
        """The file system with the faults; for ``register_wrapper`` in this process."""
        return FaultyFileSystem(filesystem, self)

    def happens(self, operation: str, path: str) -> str:
        """Executes the part of a fault before an operation: waits or raises; returns the fault that is left, if any."""
        try:
            fault = _Fault.parse(self._control.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return "none"
        if operation not in fault.operations or fault.path_part not in path or fault.action == "none":
            return "none"
        if fault.once:
            try:
                self._control.unlink()
            except FileNotFoundError:
                return "none"
        if fault.action == "fail":
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        if fault.action == "full" and operation == "write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if fault.action == "slow":
            time.sleep(fault.seconds)
        return fault.action


def wrap(filesystem: FileSystem, control: str) -> FileSystem:
    """The file system with the faults that a control file names."""
    return FaultyFileSystem(filesystem, StorageFaults(Path(control)))


class FaultyFileSystem(FileSystem):
    """A file system that obeys a control file."""

    def __init__(self, inner: FileSystem, faults: StorageFaults):
        self._inner = inner
        self._faults = faults
        self.is_local = inner.is_local

    def create(self, path: str, buffer_size: int = CHUNK) -> FileWriter:
        """Starts a new file."""
        self._faults.happens("write", path)
        return _FaultyWriter(self._inner.create(path, buffer_size), path, self._faults)

    def create_once(self, path: str, data: bytes) -> None:
        """Writes a whole file at once."""
        truncated = self._faults.happens("write", path) == "truncate"
        self._inner.create_once(path, data[: len(data) // 2] if truncated else data)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file."""
        truncated = self._faults.happens("read", path) == "truncate"
        data = self._inner.read(path, offset, length)
        return data[: len(data) // 2] if truncated else data

    def read_chunks(self, path: str, offset: int, length: int) -> Iterator[bytes]:
        """Bytes of a file piece by piece."""
        truncated = self._faults.happens("read", path) == "truncate"
        return self._inner.read_chunks(path, offset, length // 2 if truncated else length)

    def exists(self, path: str) -> bool:
        """Whether there is a file."""
        self._faults.happens("read", path)
        return self._inner.exists(path)

    def size(self, path: str) -> int:
        """How long a file is."""
        truncated = self._faults.happens("read", path) == "truncate"
        size = self._inner.size(path)
        return size // 2 if truncated else size

    def delete(self, path: str) -> None:
        """Deletes a file."""
        self._faults.happens("delete", path)
        self._inner.delete(path)

    def delete_tree(self, directory: str) -> None:
        """Deletes a directory and all beneath it."""
        self._faults.happens("delete", directory)
        self._inner.delete_tree(directory)

    def delete_empty(self, directory: str) -> None:
        """Deletes a directory if it is empty."""
        self._inner.delete_empty(directory)

    def list(self, directory: str) -> list[str]:
        """The names of what is in a directory."""
        self._faults.happens("read", directory)
        return self._inner.list(directory)

    def makedirs(self, directory: str) -> None:
        """Creates a directory."""
        self._faults.happens("write", directory)
        self._inner.makedirs(directory)

    def close(self) -> None:
        """Releases connections."""
        self._inner.close()


class _FaultyWriter(FileWriter):
    """Holds the last piece back, because its end is what a truncated file lacks."""

    def __init__(self, inner: FileWriter, path: str, faults: StorageFaults):
        self._inner = inner
        self._path = path
        self._faults = faults
        self._last = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._faults.happens("write", self._path)
        self._inner.write(self._last)
        self._last = bytes(data)

    def close(self) -> None:
        truncated = self._faults.happens("write", self._path) == "truncate"
        self._inner.write(self._last[: len(self._last) // 2] if truncated else self._last)
        self._last = b""
        self._inner.close()

    def abort(self) -> None:
        self._inner.abort()
