"""Directories of dependencies on one machine, shared by the processes that use the same ones, and removed after use."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from firesteel.common.errors import FiresteelError

__all__ = ["DirectoryUnavailableError", "base_directory", "held_directory", "keep_for_a_while"]

GRACE_S = 600.0
_KEPT = ".kept"


class DirectoryUnavailableError(FiresteelError):
    """The directory for dependencies cannot be used, or not now."""

    is_transient = True


def base_directory() -> Path:
    """A directory of this user alone: what is in it is executed."""
    base = Path(tempfile.gettempdir()) / f"firesteel-artifacts-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    status = base.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise DirectoryUnavailableError(
            f"{base} is not a directory of this user alone.", hint="Remove it, or set TMPDIR."
        )
    return base


@contextmanager
def held_directory(name: str, build: Callable[[Path], None]) -> Iterator[Path]:
    """The directory of that name, built by ``build`` if it is missing; within the context no process removes it.

    It appears at once and complete. Of several processes that need it at the same time, one builds it. The last one
    to leave the context removes it.
    """
    base = base_directory()
    place = base / name
    try:
        with _locked(base, name, fcntl.LOCK_SH) as held:
            assert held
            if not place.exists():
                with _locked(base, f"{name}.build", fcntl.LOCK_EX):
                    try:
                        if not place.exists():
                            _build(base, place, build)
                    finally:
                        (base / f"{name}.build.lock").unlink(missing_ok=True)
            _remove_abandoned(base)
            yield place
    finally:
        if not _is_kept(place):
            _remove_unless_held(base, name)
        with suppress(OSError):  # others have files there
            base.rmdir()


def keep_for_a_while(place: Path) -> None:
    """Has a directory stay although no process holds it now: those that need it are about to start."""
    place.with_name(place.name + _KEPT).touch()


def _is_kept(place: Path) -> bool:
    try:
        return time.time() - place.with_name(place.name + _KEPT).stat().st_mtime < GRACE_S
    except FileNotFoundError:
        return False


def _build(base: Path, place: Path, build: Callable[[Path], None]) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=base))
    try:
        build(unfinished)
        unfinished.rename(place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _locked(base: Path, name: str, how: int) -> Iterator[bool]:
    """Locks a directory, until this process ends at the latest; returns whether the lock was acquired."""
    path = base / f"{name}.lock"
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            base_directory()  # the last process that used it has removed it
            continue
        try:
            fcntl.flock(descriptor, how)
            current = path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())
        except BlockingIOError:
            os.close(descriptor)
            yield False
            return
        except FileNotFoundError:
            current = False
        if current:
            break
        os.close(descriptor)  # its previous owner has removed it
    try:
        yield True
    finally:
        os.close(descriptor)


def _remove_unless_held(base: Path, name: str) -> None:
    """Removes a directory and its lock, unless a process holds it."""
    with _locked(base, name, fcntl.LOCK_EX | fcntl.LOCK_NB) as alone:
        if alone:
            shutil.rmtree(base / name, ignore_errors=True)
            (base / f"{name}{_KEPT}").unlink(missing_ok=True)
            (base / f"{name}.lock").unlink(missing_ok=True)


def _remove_abandoned(base: Path) -> None:
    """Removes what processes that were killed have left."""
    for lock in base.glob("*.lock"):
        if not _is_kept(base / lock.stem):
            _remove_unless_held(base, lock.stem)
