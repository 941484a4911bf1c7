"""Which file systems a job uses: each job has its own, made with its own settings.

A process may run several jobs, and every thread of a job works with that job's stores: code that starts a thread, or
submits work to one, binds it (`Stores.bind`). So one job's credentials are never another's.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar
from weakref import WeakSet

from firesteel.filesystem.filesystem import FileSystem, reported, scheme_of

if TYPE_CHECKING:
    from firesteel.config.configuration import Configuration

__all__ = [
    "StorageWrapper",
    "Stores",
    "close_filesystems",
    "configure_filesystems",
    "current_stores",
    "get_filesystem",
    "register_wrapper",
    "registered_scheme",
]

WRAPPER_VARIABLE = "FIRESTEEL_STORAGE_WRAPPER"
WRAPPER_KEY = "testing.storage-wrapper"
"""Environment variable and configuration key of ``module:function?argument``: see :func:`register_wrapper`."""

_S3_PREFIXES = ("fs.s3a.", "s3a.", "s3.")
"""How Flink's keys for S3 may begin; the last one counts most."""

P = ParamSpec("P")
T = TypeVar("T")
StorageWrapper: TypeAlias = Callable[[FileSystem], FileSystem]

_all: WeakSet[Stores]
_registered: StorageWrapper | None = None
_schemes: dict[str, Callable[[], FileSystem]] = {}


class Stores:
    """The file systems of one job: one per scheme and process, connected when they are needed.

    ``settings`` are those of object stores, with keys that begin with ``s3.``.
    """

    def __init__(self, settings: dict[str, str] | None = None):
        self.settings = settings or {}
        self._filesystems: dict[tuple[int, str], FileSystem] = {}
        self._lock = threading.Lock()
        _all.add(self)

    @classmethod
    def of(cls, configuration: Configuration) -> Stores:
        """The stores of a job with that configuration."""
        entries = configuration.to_dict()
        settings = {key: value for key, value in entries.items() if key == WRAPPER_KEY}
        for prefix in _S3_PREFIXES:
            settings.update({f"s3.{key[len(prefix) :]}": entries[key] for key in entries if key.startswith(prefix)})
        return cls(settings)

    def get(self, path: str) -> FileSystem:
        """The file system a path belongs to."""
        # a connection does not survive a fork: Spark's workers are forked
        key = (os.getpid(), scheme_of(path))
        found = self._filesystems.get(key)
        if found is not None:
            return found
        with self._lock:
            if key not in self._filesystems:
                self._filesystems[key] = reported(self._wrapped(self._make(key[1])))
            return self._filesystems[key]

    def use(self) -> None:
        """Has this thread work with these stores from now on."""
        _current.set(self)

    def bind(self, function: Callable[P, T]) -> Callable[P, T]:
        """The function, which works with these stores in any thread."""

        def bound(*args: P.args, **kwargs: P.kwargs) -> T:
            before = _current.set(self)
            try:
                return function(*args, **kwargs)
            finally:
                _current.reset(before)

        return bound

    def close(self) -> None:
        """Closes the connections of this process; they are opened again when needed."""
        pid = os.getpid()
        for key in [key for key in list(self._filesystems) if key[0] == pid]:
            found = self._filesystems.pop(key, None)
            if found is not None:
                found.close()

    def forget(self, scheme: str) -> None:
        """Recreates the file system of a scheme when it is needed next."""
        for key in [key for key in list(self._filesystems) if key[1] == scheme]:
            self._filesystems.pop(key, None)

    def _make(self, scheme: str) -> FileSystem:
        create = _schemes.get(scheme)
        if create is not None:
            return create()
        if scheme == "file":
            from firesteel.filesystem.local_filesystem import LocalFileSystem

            return LocalFileSystem()
        from firesteel.filesystem.fsspec_filesystem import FsspecFileSystem

        return FsspecFileSystem(scheme, self.settings)

    def _wrapped(self, filesystem: FileSystem) -> FileSystem:
        if _registered is not None:
            filesystem = _registered(filesystem)
        named = self.settings.get(WRAPPER_KEY) or os.environ.get(WRAPPER_VARIABLE)
        if named:
            function, _, argument = named.partition("?")
            module, _, name = function.partition(":")
            wrapped: FileSystem = getattr(importlib.import_module(module), name)(filesystem, argument)
            return wrapped
        return filesystem


_all = WeakSet()
_none = Stores()
"""Without settings: those of the environment and the AWS profile."""
_current: ContextVar[Stores] = ContextVar("firesteel_stores", default=_none)


def current_stores() -> Stores:
    """The stores that this thread works with."""
    return _current.get()


def get_filesystem(path: str) -> FileSystem:
    """The file system a path belongs to, of the job that this thread works for."""
    return _current.get().get(path)


def configure_filesystems(configuration: Configuration) -> Stores:
    """Has this thread work with the stores of a configuration from now on (``s3.*``)."""
    stores = Stores.of(configuration)
    if stores.settings == _current.get().settings:
        return _current.get()  # connected already
    _current.set(stores)
    return stores


def close_filesystems() -> None:
    """Closes all connections of this process to stores; they are opened again when needed."""
    for stores in list(_all):
        stores.close()


@contextmanager
def registered_scheme(scheme: str, create: Callable[[], FileSystem]) -> Iterator[None]:
    """While it lasts, paths of a scheme are in file systems that a function makes. For tests."""
    before = _schemes.get(scheme)

    def register(function: Callable[[], FileSystem] | None) -> None:
        if function is None:
            _schemes.pop(scheme, None)
        else:
            _schemes[scheme] = function
        for stores in list(_all):
            stores.forget(scheme)

    register(create)
    try:
        yield
    finally:
        register(before)


def register_wrapper(wrapper: StorageWrapper | None) -> None:
    """Has every file system of this process pass through a function, or no longer.

    For tests of what happens when a store misbehaves. In another process, the environment variable
    ``FIRESTEEL_STORAGE_WRAPPER`` or the configuration key ``testing.storage-wrapper`` does the same: it names
    ``module:function?argument``, and ``function(file system, argument)`` gives the file system to use.
    """
    global _registered
    close_filesystems()
    _registered = wrapper
