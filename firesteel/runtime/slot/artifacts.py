"""Python files and archives of a job: importable while it is unpickled, then removed from the import path."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from firesteel.common.errors import FiresteelError
from firesteel.runtime.dependencies.prepared import prepare_dependencies

__all__ = ["ArtifactsUnavailableError", "importable"]

_LOCK_TIMEOUT_S = 60.0
_import_lock = threading.Lock()
"""The search path and the loaded modules belong to the whole process: one job at a time."""


class ArtifactsUnavailableError(FiresteelError):
    """The files of a job cannot be made importable here, or not now."""

    is_transient = True


@contextmanager
def importable(artifacts: Mapping[str, bytes]) -> Iterator[None]:
    """While it lasts, the Python files and packages of a job come first on the module search path.

    Afterwards the modules that were loaded from them are forgotten: the next job may bring others of the same names.
    Within one process one such block follows the other.
    """
    dependencies = prepare_dependencies(artifacts)  # before the lock: pip may take its time
    if dependencies is None:
        yield
        return
    with dependencies, _alone():
        yield from _imported(dependencies.search_path)


@contextmanager
def _alone() -> Iterator[None]:
    if not _import_lock.acquire(timeout=_LOCK_TIMEOUT_S):
        raise ArtifactsUnavailableError(
            f"The files of another job are still being loaded after {_LOCK_TIMEOUT_S:g} s.",
            hint="A module of that job does not come to the end of its import. Cancel it, and submit this one again.",
        )
    try:
        yield
    finally:
        _import_lock.release()


def _imported(entries: Sequence[str]) -> Iterator[None]:
    compiled = _compiled_in(entries)
    hidden = _take_out(_names_in(entries) - compiled)
    sys.path[:0] = entries
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for entry in entries:
            if entry in sys.path:
                sys.path.remove(entry)
            sys.path_importer_cache.pop(entry, None)
        loaded = [name for name, module in list(sys.modules.items()) if _is_beneath(module, entries)]
        for name in loaded:
            if name.partition(".")[0] not in compiled:
                sys.modules.pop(name, None)
        sys.modules.update(hidden)


def _names_in(entries: Sequence[str]) -> set[str]:
    """The modules that the job ships, without those of the interpreter and of Firesteel, which it cannot replace."""
    names = {path.name.partition(".")[0] for entry in entries for path in Path(entry).iterdir()}
    return {name for name in names if name not in sys.stdlib_module_names and name != "firesteel"}


def _compiled_in(entries: Sequence[str]) -> set[str]:
    """Packages with extension modules, of which a process cannot load a second version: the first one stays."""
    paths = [path for entry in entries for path in Path(entry).iterdir()]
    return {
        path.name.partition(".")[0]
        for path in paths
        if path.suffix == ".so" or (path.is_dir() and any(path.rglob("*.so")))
    }


def _take_out(names: set[str]) -> dict[str, ModuleType]:
    """Modules of the same names that this process has loaded itself: the job is to see its own."""
    found = [name for name in list(sys.modules) if name.partition(".")[0] in names and name != "__main__"]
    return {name: sys.modules.pop(name) for name in found}


def _is_beneath(module: object, entries: Sequence[str]) -> bool:
    places = [getattr(module, "__file__", None), *_paths_of(module)]
    directories = tuple(f"{entry}{os.sep}" for entry in entries)
    return any(isinstance(place, str) and place.startswith(directories) for place in places)


def _paths_of(module: object) -> list[object]:
    try:
        return list(getattr(module, "__path__", ()))
    except Exception:  # noqa: BLE001 - what others put among the modules may be anything
        return []
