"""Where a source's files are: on a disk that every host sees, or in a store."""

from __future__ import annotations

import errno
import importlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.filesystem.filesystem import FileStatus, normalize, scheme_of
from firesteel.filesystem.local_paths import FileReadError, find_files, is_hidden, to_local_path
from firesteel.filesystem.stores import get_filesystem

__all__ = ["InputPath", "cannot_list", "cannot_read", "find_input_files", "is_remote", "list_remote", "to_input_path"]

InputPath: TypeAlias = Path | str
"""A local path, or the URI of a directory or file in a store."""

_S3 = ("s3", "s3a", "s3p")


def to_input_path(path: str | os.PathLike[str]) -> InputPath:
    """The absolute path of a plain path or a ``file:`` URI; the URI of what is in a store."""
    text = os.fspath(path)
    scheme, separator, rest = text.partition("://")
    if not separator or not scheme.isalnum() or scheme.lower() == "file" or not _is_known(scheme.lower()):
        return to_local_path(path)
    if scheme.lower() in _S3 and not rest.partition("/")[0]:
        raise InvalidProgramError(f"'{text}' does not contain a bucket.", hint="Use s3://bucket/path.")
    return normalize(text)


def is_remote(path: str) -> bool:
    """Whether to read the path may take a while."""
    return scheme_of(path) != "file"


def find_input_files(path: InputPath) -> Iterator[FileStatus | str]:
    """The file itself, or all files beneath a directory in the order of their names.

    Directories and files whose names begin with ``.`` or ``_`` are passed over, but not a path given by name.
    """
    if isinstance(path, Path):
        yield from map(str, find_files(path))
        return
    try:
        found = list_remote(path)
    except OSError as error:
        raise cannot_list(path, error) from error
    if not found and "/" in path.partition("://")[2]:
        raise InvalidProgramError(
            f"The input path '{path}' does not exist: there is neither a file nor a directory with this path.",
            hint="Check the bucket and the path; a source that monitors a directory may begin with an empty one.",
        )
    yield from (file for file in found if not is_hidden_beneath(path, file.path))


def list_remote(path: str) -> Sequence[FileStatus]:
    """All files at or beneath a path of a store; FileNotFoundError for what is no bucket."""
    return get_filesystem(path).list_files(path)


def is_hidden_beneath(root: str, path: str) -> bool:
    """Whether a file is passed over because of its own name or that of a directory beneath the root."""
    return any(map(is_hidden, path[len(root) :].strip("/").split("/")))


def cannot_list(path: str, error: OSError) -> InvalidProgramError:
    """The error for a directory of a store whose files cannot be listed."""
    bucket = path.partition("://")[2].partition("/")[0]
    if isinstance(error, FileNotFoundError):
        return InvalidProgramError(
            f"The input path '{path}' cannot be listed: {_reason(error)}.",
            hint=f"Check that '{bucket}' exists in the service at s3.endpoint.",
        )
    return InvalidProgramError(f"The input path '{path}' cannot be listed: {_reason(error)}.", hint=_hint(error))


def cannot_read(path: str, error: Exception, offset: int | None, *, compressed: bool) -> FiresteelError:
    """The error for a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return FileReadError(
            f"The input file '{path}' does not exist on the host that reads it.",
            path=path,
            hint="It was deleted since it was found: files must stay until the job has read them."
            if is_remote(path)
            else "Every worker must see the file under this path, until the job has ended.",
        )
    if isinstance(error, OSError) and error.errno == errno.ESTALE:
        return FileReadError(
            f"The input file '{path}' has changed: {_reason(error)}.",
            path=path,
            offset=offset,
            hint="Input files must not be modified; write new data to a new file.",
        )
    hint = _hint(error) if is_remote(path) else None
    if compressed and hint is None:
        hint = "The file has the extension of a compressed file; it may be truncated, damaged, or not compressed."
    return FileReadError(
        f"The input file '{path}' cannot be read: {_reason(error)}.", path=path, offset=offset, hint=hint
    )


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__).rstrip(".")


def _hint(error: Exception) -> str | None:
    if isinstance(error, PermissionError) or getattr(error, "errno", None) in (errno.EACCES, errno.EPERM):
        return "The credentials (s3.access-key, s3.secret-key) must allow listing the bucket and getting its objects."
    if "NoCredentials" in str(error):
        return "Set s3.access-key and s3.secret-key in the configuration, or provide credentials on the host."
    if isinstance(error, OSError) and error.errno is None:
        return "Check that the store can be reached from this host: s3.endpoint, s3.endpoint.region."
    return None


def _is_known(scheme: str) -> bool:
    if scheme in _S3:
        return True
    try:
        return scheme in importlib.import_module("fsspec").available_protocols()
    except ImportError:
        return False
