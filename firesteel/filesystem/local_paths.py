"""Paths as users write them, and the files beneath them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from firesteel.common.errors import FiresteelError, InvalidProgramError

__all__ = ["FileReadError", "find_files", "is_hidden", "to_local_path"]


class FileReadError(FiresteelError):
    """A file that cannot be read; ``path`` is the file and ``offset`` the byte it happened at, if known."""

    def __init__(self, message: str, *, path: str, offset: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.offset = offset


def to_local_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a plain path or a ``file:`` URI.

    >>> str(to_local_path("file:///data/a%20b.txt"))
    '/data/a b.txt'
    """
    text = os.fspath(path)
    if text.startswith("file:"):
        return Path(unquote(urlsplit(text).path)).absolute()
    scheme, separator, _ = text.partition("://")
    if separator and scheme.isalnum():
        raise InvalidProgramError(
            f"'{text}': there is no file system for '{scheme}://'.",
            hint="Use a path that every worker sees as a local or mounted directory.",
        )
    if not text:
        raise InvalidProgramError("The path of a file or directory must not be empty.")
    return Path(text).expanduser().absolute()


def find_files(path: Path) -> Iterator[Path]:
    """The file itself, or all files beneath a directory in the order of their names.

    Directories and files whose names begin with ``.`` or ``_`` are passed over, but not a path given by name.
    """
    if not path.exists():
        raise InvalidProgramError(
            f"The input path '{path}' does not exist.",
            hint="Paths are taken relative to the directory the program was started in.",
        )
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from _files_beneath(path, frozenset())
    else:
        raise InvalidProgramError(f"The input path '{path}' is neither a file nor a directory.")


def is_hidden(name: str) -> bool:
    """Whether a file or directory of this name is passed over: it is hidden, temporary, or not yet complete."""
    return name.startswith((".", "_"))


def _files_beneath(path: Path, above: frozenset[str]) -> Iterator[Path]:
    real = os.path.realpath(path)
    if real in above:  # a link to a directory that contains it
        return
    try:
        children = sorted(path.iterdir())
    except OSError as error:
        raise InvalidProgramError(f"The input directory '{path}' cannot be listed: {error.strerror}.") from error
    for child in children:
        if is_hidden(child.name):
            continue
        if child.is_dir():
            yield from _files_beneath(child, above | {real})
        elif child.is_file():
            yield child
