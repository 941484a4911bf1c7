"""State files in S3 and other stores that fsspec knows (``hdfs://``, ``gs://``, …)."""

from __future__ import annotations

import errno
import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from typing import Any, BinaryIO, cast

from firesteel.common.errors import CheckpointDirectoryError, CheckpointStorageError
from firesteel.config import s3_options
from firesteel.config.configuration import Configuration
from firesteel.filesystem.filesystem import CHUNK, FileStatus, FileSystem, FileWriter
from firesteel.filesystem.input_stream import READ_AHEAD, RangedInputStream

__all__ = ["FsspecFileSystem"]

_S3 = ("s3", "s3a", "s3p")
"""Flink's schemes for S3."""

_MAX_ATTEMPTS = 3
"""How often a request is made before the service counts as unreachable."""

_READ_AT_ONCE = 8 << 20
_PART_BYTES = 8 << 20
"""Bytes of one request. A file of less is one request; S3 takes no part below 5 MB."""


class FsspecFileSystem(FileSystem):
    """A store in which a file appears when it is complete; there are no directories, only names with slashes."""

    def __init__(self, scheme: str, settings: Mapping[str, str]):
        self._scheme = scheme
        self._store = _open_store(scheme, settings)

    def create(self, path: str, buffer_size: int = CHUNK) -> FileWriter:
        """Starts a new file."""
        with _as_os_errors():
            return _StoreWriter(self._store.open(self._key(path), "wb", block_size=_PART_BYTES))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file; fewer than ``length`` if it ends before."""
        key = self._key(path)
        if offset == 0 and length is None:
            with _as_os_errors():
                return bytes(self._store.cat_file(key))
        if length == 0:
            return b""
        try:
            with _as_os_errors():
                return bytes(self._store.cat_file(key, start=offset, end=None if length is None else offset + length))
        except FileNotFoundError:
            raise
        except OSError:
            # S3 refuses a range that begins beyond the end
            if self.size(path) <= offset:
                return b""
            raise

    def read_chunks(self, path: str, offset: int, length: int) -> Iterator[bytes]:
        """Bytes of a file piece by piece; fewer than ``length`` if it ends before."""
        end = offset + length
        while offset < end:
            data = self.read(path, offset, min(_READ_AT_ONCE, end - offset))
            if not data:
                return
            for start in range(0, len(data), CHUNK):
                yield data[start : start + CHUNK]
            offset += len(data)

    def exists(self, path: str) -> bool:
        """Whether there is a file."""
        # fsspec's own exists() and isfile() take a store that does not answer for a file that is not there
        try:
            with _as_os_errors():
                return bool(self._store.info(self._key(path))["type"] == "file")
        except FileNotFoundError:
            return False

    def size(self, path: str) -> int:
        """How long a file is."""
        with _as_os_errors():
            return int(self._store.size(self._key(path)))

    def status(self, path: str) -> FileStatus:
        """What is known of a file."""
        with _as_os_errors():
            info = self._store.info(self._key(path))
        if info["type"] != "file":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return FileStatus(path, int(info["size"]), _version_of(info), _modified_ms(info))

    def list_files(self, directory: str) -> Sequence[FileStatus]:
        """All files beneath a directory, in the order of their paths; the file itself if it is one."""
        key = self._key(directory)
        with _as_os_errors():
            found = self._store.find(key, detail=True)
        prefix = directory[: len(directory) - len(key)]
        return [
            FileStatus(prefix + name, int(info["size"]), _version_of(info))
            for name, info in sorted(found.items())
            if info["type"] == "file" and not name.endswith("/")
        ]

    def open(self, path: str, *, version: str | None = None, read_ahead: int = READ_AHEAD) -> BinaryIO:
        """A stream of a file's bytes, of the version it has now and no other."""
        with _as_os_errors():
            file = self._store.open(self._key(path), "rb", cache_type="none")
        if version is not None and _version_of(file.details) != version:
            raise OSError(errno.ESTALE, "it was replaced by another file", path)

        def fetch(offset: int, length: int) -> bytes:
            with _as_os_errors():
                file.seek(offset)
                return bytes(file.read(length))

        return cast(BinaryIO, RangedInputStream(fetch, int(file.size), read_ahead, file.close))

    def delete(self, path: str) -> None:
        """Deletes a file; one that is missing is as good as deleted."""
        with _as_os_errors(), suppress(FileNotFoundError):
            self._store.rm_file(self._key(path))

    def delete_tree(self, directory: str) -> None:
        """Deletes everything beneath a directory."""
        with _as_os_errors(), suppress(FileNotFoundError):
            self._store.rm(self._key(directory), recursive=True)

    def delete_empty(self, directory: str) -> None:
        """Deletes a directory if the store has directories and nothing is in it."""
        if self._scheme not in _S3:
            with suppress(OSError), _as_os_errors():
                self._store.rmdir(self._key(directory))

    def list(self, directory: str) -> list[str]:
        """The names of what is in a directory, sorted; none if it does not exist."""
        key = self._key(directory)
        with _as_os_errors():
            try:
                found = self._store.ls(key, detail=False)
            except FileNotFoundError:
                return []
        names = (str(name).rstrip("/") for name in found)
        return sorted(name.rpartition("/")[2] for name in names if name != key)

    def makedirs(self, directory: str) -> None:
        """Creates a directory where the store has directories; never a bucket."""
        if self._scheme not in _S3:
            with _as_os_errors():
                self._store.makedirs(self._key(directory), exist_ok=True)

    def close(self) -> None:
        """Closes the connections."""
        client, loop = getattr(self._store, "_s3", None), getattr(self._store, "loop", None)
        if client is not None and loop is not None:
            with suppress(Exception):
                importlib.import_module("fsspec.asyn").sync(loop, client.close)

    def _key(self, path: str) -> str:
        if self._scheme in _S3:
            return path.partition("://")[2]
        return str(self._store._strip_protocol(path))


class _StoreWriter(FileWriter):
    def __init__(self, file: Any):
        self._file = file

    def write(self, data: bytes | bytearray | memoryview) -> None:
        with _as_os_errors():
            self._file.write(data)

    def close(self) -> None:
        with _as_os_errors():
            self._file.close()

    def abort(self) -> None:
        if self._file.closed:
            return
        with suppress(Exception):
            self._file.discard()
        # without this, the garbage collector would finish the file
        self._file.closed = True


def _version_of(info: Mapping[str, Any]) -> str | None:
    version = info.get("ETag")
    return None if version is None else str(version)


def _modified_ms(info: Mapping[str, Any]) -> int | None:
    """When a file was written; each store has another name for it."""
    found = info.get("LastModified") or info.get("last_modified") or info.get("mtime")
    if isinstance(found, datetime):
        found = found.timestamp()
    return int(found * 1000) if isinstance(found, (int, float)) else None


@contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, CheckpointStorageError) as error:
        if type(error).__name__ == "FileExpired":  # of s3fs, which need not be installed
            raise OSError(errno.ESTALE, "it was replaced by another file while it was read") from error
        raise
    except Exception as error:
        # each store has exceptions of its own: no credentials, no connection, refused
        raise OSError(None, f"{type(error).__name__}: {error}") from error


def _open_store(scheme: str, settings: Mapping[str, str]) -> Any:
    try:
        fsspec = importlib.import_module("fsspec")
        if scheme in _S3:
            return fsspec.filesystem("s3", **_s3_arguments(settings))
        return fsspec.filesystem(scheme, skip_instance_cache=True, use_listings_cache=False)
    except ImportError as error:
        hint = "pip install 'firesteel[s3]'" if scheme in _S3 else f"pip install fsspec and its package for {scheme}://"
        raise CheckpointDirectoryError(
            f"Paths that begin with {scheme}:// need a package that is not installed: {error}.",
            path=f"{scheme}://",
            hint=f"{hint}, on every host.",
        ) from error
    except ValueError as error:
        raise CheckpointDirectoryError(
            f"There is no file system for {scheme}://: {error}.",
            path=f"{scheme}://",
            hint="Use a local path, s3://, or a scheme that fsspec supports.",
        ) from error


@lru_cache(1)
def _s3_session(pid: int) -> Any:  # noqa: ARG001 - one for each process
    """What is known of the service itself: to read it takes longer than to connect, so that is done only once."""
    return importlib.import_module("aiobotocore.session").get_session()


def _s3_arguments(settings: Mapping[str, str]) -> dict[str, Any]:
    configuration = Configuration.from_dict(settings)
    client = {"region_name": configuration.get(s3_options.S3_REGION)} if configuration.get(s3_options.S3_REGION) else {}
    arguments: dict[str, Any] = {
        "endpoint_url": configuration.get(s3_options.S3_ENDPOINT),
        "key": configuration.get(s3_options.S3_ACCESS_KEY),
        "secret": configuration.get(s3_options.S3_SECRET_KEY),
        "token": configuration.get(s3_options.S3_SESSION_TOKEN),
        "client_kwargs": client,
        "config_kwargs": {"retries": {"mode": "standard", "max_attempts": _MAX_ATTEMPTS}},
        "session": _s3_session(os.getpid()),
        "skip_instance_cache": True,
        "use_listings_cache": False,
    }
    if configuration.get(s3_options.S3_PATH_STYLE_ACCESS):
        arguments["config_kwargs"]["s3"] = {"addressing_style": "path"}
    return arguments
