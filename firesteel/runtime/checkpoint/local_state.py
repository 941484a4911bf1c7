"""Local recovery: copies of state files on a slot's host, so that a restart on that host downloads nothing.

The copies of a job are found by every slot of the host. There is a directory for each checkpoint; a copy is named by
its checksum and length, and one that several checkpoints use is linked into each of their directories::

    <root>/<job id>/.lock                      held by every process that uses the copies
    <root>/<job id>/chk-<n>/<checksum>-<length>

A copy is only a hint: the reader compares the checksum, and reads from the checkpoint storage if it does not match.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from firesteel.runtime.model.state_handles import FileSegment

__all__ = ["LocalCopy", "LocalStateStore", "default_root"]

_log = logging.getLogger(__name__)

STALE_AFTER_S = 3600.0
"""How long no process may have used a job's copies before another job removes them: longer than any restart."""

_LOCK = ".lock"


def default_root() -> Path:
    """Where copies are if no directory is configured: a directory of this user's among the temporary ones."""
    return Path(tempfile.gettempdir()) / f"firesteel-local-state-{os.getuid()}"


class LocalStateStore:
    """The local copies of one job's state. Any number of processes use the same directory, with any number of threads.

    A failing disk never fails the job: there is then no copy, and the reason is logged.
    """

    def __init__(self, job_id: str, root: Path | str | None = None, *, stale_after_s: float = STALE_AFTER_S):
        self._root = Path(root) if root is not None else default_root()
        self._job = self._root / job_id
        self._lock: int | None = None
        try:
            self._open()
            self._remove_stale(stale_after_s)
        except OSError as error:
            _log.warning("No local copies of state are kept in %s: %s", self._root, error)

    @property
    def is_usable(self) -> bool:
        """Whether copies are kept and found."""
        return self._lock is not None

    @property
    def directory(self) -> Path:
        """Where the copies of this job are."""
        return self._job

    def create(self, checkpoint_id: int) -> LocalCopy | None:
        """Starts a copy of bytes that are being written; None if the disk does not let us."""
        if not self.is_usable:
            return None
        try:
            return LocalCopy(self._checkpoint(checkpoint_id))
        except OSError as error:
            _log.warning("No local copy of state in %s: %s", self._job, error)
            return None

    def add(self, checkpoint_id: int, source: Path, segment: FileSegment) -> None:
        """Keeps a local file that holds exactly the bytes of a segment: linked if possible, else copied."""
        if not self.is_usable:
            return
        try:
            _link_or_copy(source, self._checkpoint(checkpoint_id) / _name(segment))
        except OSError as error:
            _log.warning("No local copy of %s in %s: %s", segment.path, self._job, error)

    def retain(self, checkpoint_id: int, segments: Iterable[FileSegment]) -> None:
        """Keeps the copies of segments for that checkpoint too, as far as there are any."""
        if not self.is_usable:
            return
        try:
            directory = self._checkpoint(checkpoint_id)
        except OSError as error:
            _log.warning("Local copies are not kept in %s: %s", self._job, error)
            return
        for segment in segments:
            target = directory / _name(segment)
            found = None if target.exists() else self.find(segment)
            if found is not None:
                with suppress(OSError):
                    os.link(found, target)

    def find(self, segment: FileSegment) -> Path | None:
        """A file that should hold the bytes of a segment: to be verified before it is used."""
        name = _name(segment)
        for checkpoint_id in sorted(self._checkpoints(), reverse=True):
            path = self._job / f"chk-{checkpoint_id}" / name
            if path.is_file():
                return path
        return None

    def remove(self, segment: FileSegment) -> None:
        """Forgets the copies of a segment, because they are not what they should be."""
        for checkpoint_id in self._checkpoints():
            (self._job / f"chk-{checkpoint_id}" / _name(segment)).unlink(missing_ok=True)

    def confirm(self, checkpoint_id: int) -> None:
        """A checkpoint is complete: copies that only older ones use are removed."""
        for other in self._checkpoints():
            if other < checkpoint_id:
                shutil.rmtree(self._job / f"chk-{other}", ignore_errors=True)
        with suppress(OSError):
            os.utime(self._job / _LOCK)

    def abort(self, checkpoint_id: int) -> None:
        """A checkpoint was given up: its copies are removed."""
        shutil.rmtree(self._job / f"chk-{checkpoint_id}", ignore_errors=True)

    def close(self) -> None:
        """This process uses the copies no longer; they stay for the next attempt."""
        if self._lock is not None:
            with suppress(OSError):
                os.utime(self._job / _LOCK)
            os.close(self._lock)
            self._lock = None

    def delete(self) -> None:
        """The job has ended: removes all its copies."""
        if self.is_usable:
            shutil.rmtree(self._job, ignore_errors=True)
            self.close()
            with suppress(OSError):
                self._root.rmdir()

    def _open(self) -> None:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = self._root.stat()
        if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            # state is unpickled: no other user may write there
            raise PermissionError(f"{self._root} must belong to this user and be writable by no other")
        while self._lock is None:
            self._job.mkdir(parents=True, exist_ok=True)
            lock = _lock_file(self._job / _LOCK, fcntl.LOCK_SH)
            if _is_named(lock, self._job / _LOCK):
                self._lock = lock
            else:
                os.close(lock)

    def _remove_stale(self, stale_after_s: float) -> None:
        for job in self._root.iterdir():
            if job == self._job:
                continue
            # a lock that is held, or a directory that another process is just removing
            with suppress(OSError):
                if time.time() - (job / _LOCK).stat().st_mtime < stale_after_s:
                    continue
                lock = _lock_file(job / _LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(job, ignore_errors=True)
                os.close(lock)

    def _checkpoint(self, checkpoint_id: int) -> Path:
        directory = self._job / f"chk-{checkpoint_id}"
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def _checkpoints(self) -> list[int]:
        try:
            names = os.listdir(self._job) if self.is_usable else []  # noqa: PTH208 - names are what is asked for
        except OSError:
            return []
        return [int(name[4:]) for name in names if name.startswith("chk-") and name[4:].isdigit()]


class LocalCopy:
    """Bytes on their way into the store. A copy that cannot be written is none: it fails nothing."""

    def __init__(self, directory: Path):
        self._directory = directory
        self._path = directory / f".{uuid.uuid4().hex}"
        self._file: BinaryIO | None = self._path.open("xb")

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._file is not None:
            try:
                self._file.write(data)
            except OSError as error:
                _log.warning("Could not keep a local copy of state in %s: %s", self._directory, error)
                self.abort()

    def finish(self, segment: FileSegment) -> None:
        """The copy is complete and can be found."""
        if self._file is not None:
            try:
                self._file.close()
                self._path.replace(self._directory / _name(segment))
            except OSError as error:
                _log.warning("Could not keep a local copy of state in %s: %s", self._directory, error)
                self.abort()

    def abort(self) -> None:
        """The copy is given up."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
        self._path.unlink(missing_ok=True)


def _name(segment: FileSegment) -> str:
    return f"{segment.checksum}-{segment.length}"


def _lock_file(path: Path, kind: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, kind)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_named(descriptor: int, path: Path) -> bool:
    """Whether the lock is on the file of that name, and not on one that was removed meanwhile."""
    try:
        return os.fstat(descriptor).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _link_or_copy(source: Path, target: Path) -> None:
    with suppress(FileExistsError):
        try:
            os.link(source, target)
        except FileExistsError:
            raise
        except OSError:
            temporary = target.with_name(f".{uuid.uuid4().hex}")
            try:
                shutil.copyfile(source, temporary)
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
