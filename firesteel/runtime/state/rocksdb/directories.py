"""Local directories of RocksDB databases: each has one owner, and those of dead owners are removed."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
import uuid
from pathlib import Path

__all__ = ["OwnedDirectory", "remove_leftovers"]

_PREFIX = "firesteel-rocksdb-"
_OWNER = "owner"
_ABANDONED_AFTER_S = 60.0
"""A directory without owner is either this old, or about to get one."""


class OwnedDirectory:
    """A new directory that exists until its owner, and all temporary holders, have released it.

    The owner holds a lock on a file in it, which the operating system releases when the process ends.
    """

    def __init__(self, parent: Path, name: str):
        self._holders = 1
        self._holders_lock = threading.Lock()
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            self.path = parent / f"{_PREFIX}{name}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
            self.path.mkdir(mode=0o700)  # what is in it is the state of a job
            self._lock = os.open(self.path / _OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                # someone who removes leftovers was quicker: this one is gone
                os.close(self._lock)
            else:
                return

    def hold(self) -> None:
        """One more needs the directory."""
        with self._holders_lock:
            self._holders += 1

    def release(self) -> None:
        """One less needs the directory; after the last one it is deleted."""
        with self._holders_lock:
            self._holders -= 1
            if self._holders:
                return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        # of an attempt before, whose process may have ended only after this one had begun
        remove_leftovers(self.path.parent)


def remove_leftovers(parent: Path) -> list[Path]:
    """Deletes the directories whose owners have died; returns them."""
    removed = []
    for path in sorted(parent.glob(f"{_PREFIX}*")) if parent.is_dir() else []:
        try:
            lock = os.open(path / _OWNER, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            if _age(path) > _ABANDONED_AFTER_S:
                shutil.rmtree(path, ignore_errors=True)
                removed.append(path)
            continue
        except OSError:
            continue  # another user's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its owner lives
        else:
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
        finally:
            os.close(lock)
    return removed


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
