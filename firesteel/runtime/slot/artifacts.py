"""Python files and archives of a job: importable while it is unpickled, then removed from the import path."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import io
import os
import shutil
import stat
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from firesteel.common.errors import FiresteelError

__all__ = ["ArtifactError", "ArtifactsUnavailableError", "importable"]

ARCHIVES = (".zip", ".whl", ".egg")
MAX_EXTRACTED_BYTES = 2 * 1024**3
_LOCK_TIMEOUT_S = 60.0
_FILES = "files"
_import_lock = threading.Lock()
"""The search path and the loaded modules belong to the whole process: one job at a time."""


class ArtifactError(FiresteelError):
    """A file that is shipped with a job is invalid."""


class ArtifactsUnavailableError(ArtifactError):
    """The files of a job cannot be made importable here, or not now."""

    is_transient = True


@contextmanager
def importable(artifacts: Mapping[str, bytes]) -> Iterator[None]:
    """While it lasts, the files and what is in the archives come first on the module search path.

    Afterwards the modules that were loaded from them are forgotten: the next job may bring others of the same names.
    Within one process one such block follows the other.
    """
    if not artifacts:
        yield
        return
    if not _import_lock.acquire(timeout=_LOCK_TIMEOUT_S):
        raise ArtifactsUnavailableError(
            f"The files of another job are still being loaded after {_LOCK_TIMEOUT_S:g} s.",
            hint="A module of that job does not come to the end of its import. Cancel it, and submit this one again.",
        )
    try:
        with _unpacked(artifacts) as directory:
            yield from _imported(directory)
    finally:
        _import_lock.release()


def _imported(directory: Path) -> Iterator[None]:
    entries = [str(directory / _FILES), *(str(path) for path in sorted(directory.iterdir()) if path.name != _FILES)]
    hidden = _take_out(_names_in(entries))
    sys.path[:0] = entries
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for entry in entries:
            if entry in sys.path:
                sys.path.remove(entry)
            sys.path_importer_cache.pop(entry, None)
        loaded = [name for name, module in list(sys.modules.items()) if _is_beneath(module, directory)]
        for name in loaded:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


def _names_in(entries: list[str]) -> set[str]:
    """The modules that the job ships, without those of the interpreter and of Firesteel, which it cannot replace."""
    names = {path.name.partition(".")[0] for entry in entries for path in Path(entry).iterdir()}
    return {name for name in names if name not in sys.stdlib_module_names and name != "firesteel"}


def _take_out(names: set[str]) -> dict[str, ModuleType]:
    """Modules of the same names that this process has loaded itself: the job is to see its own."""
    found = [name for name in list(sys.modules) if name.partition(".")[0] in names and name != "__main__"]
    return {name: sys.modules.pop(name) for name in found}


def _is_beneath(module: object, directory: Path) -> bool:
    places = [getattr(module, "__file__", None), *_paths_of(module)]
    return any(isinstance(place, str) and place.startswith(f"{directory}{os.sep}") for place in places)


def _paths_of(module: object) -> list[object]:
    try:
        return list(getattr(module, "__path__", ()))
    except Exception:  # noqa: BLE001 - what others put among the modules may be anything
        return []


# -- where they are ------------------------------------------------------------------------------------


@contextmanager
def _unpacked(artifacts: Mapping[str, bytes]) -> Iterator[Path]:
    """A directory that holds the files, shared by all processes of this machine that use the same ones just now."""
    base = _base_directory()
    digest = hashlib.sha256()
    for name, content in sorted(artifacts.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    place = base / digest.hexdigest()
    try:
        with _held(base, place.name, fcntl.LOCK_SH) as held:
            assert held
            if not place.exists():
                _unpack(artifacts, base, place)
            _remove_abandoned(base)
            yield place
    finally:
        with _held(base, place.name, fcntl.LOCK_EX | fcntl.LOCK_NB) as alone:
            if alone:
                _remove(base, place.name)
        with suppress(OSError):  # others have files there
            base.rmdir()


def _base_directory() -> Path:
    """A directory of this user alone: what is in it is executed."""
    base = Path(tempfile.gettempdir()) / f"firesteel-artifacts-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    status = base.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ArtifactsUnavailableError(
            f"{base} is not a directory of this user alone.", hint="Remove it, or set TMPDIR."
        )
    return base


@contextmanager
def _held(base: Path, name: str, how: int) -> Iterator[bool]:
    """Locks a directory, until this process ends at the latest; returns whether the lock was acquired."""
    path = base / f"{name}.lock"
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            _base_directory()  # the last process that used it has removed it
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


def _remove(base: Path, name: str) -> None:
    """Removes a directory and its lock; the caller must hold the lock exclusively."""
    shutil.rmtree(base / name, ignore_errors=True)
    (base / f"{name}.lock").unlink(missing_ok=True)


def _remove_abandoned(base: Path) -> None:
    """Removes what processes that were killed have left."""
    for lock in base.glob("*.lock"):
        with _held(base, lock.stem, fcntl.LOCK_EX | fcntl.LOCK_NB) as alone:
            if alone:
                _remove(base, lock.stem)


def _unpack(artifacts: Mapping[str, bytes], base: Path, place: Path) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=base))
    try:
        (unfinished / _FILES).mkdir()
        for number, (name, content) in enumerate(artifacts.items()):
            if Path(name).name != name or name in ("", ".", ".."):
                raise ArtifactError(f"{name!r} is not the name of a file.")
            if name.endswith(ARCHIVES):
                _extract(name, content, unfinished / f"{number:03}-{name}")
            else:
                (unfinished / _FILES / name).write_bytes(content)
        try:
            unfinished.rename(place)
        except OSError:
            if not place.exists():  # else another process was faster
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _extract(name: str, content: bytes, target: Path) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > MAX_EXTRACTED_BYTES:
                raise ArtifactError(f"{name} has {size} bytes when it is unpacked; {MAX_EXTRACTED_BYTES} are allowed.")
            archive.extractall(target)  # members whose names lead elsewhere end up in here all the same
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ArtifactError(f"{name} is not a zip archive: {error}.") from None
