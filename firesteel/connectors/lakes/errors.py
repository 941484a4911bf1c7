"""Errors of tables in lakes, and of libraries that are not installed."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from firesteel.common.errors import FiresteelError, InvalidProgramError

__all__ = [
    "LakeConflictError",
    "LakeError",
    "LakeReadError",
    "LakeTableNotFoundError",
    "MissingLibraryError",
    "SchemaMismatchError",
    "nearest",
    "require_library",
]


class MissingLibraryError(InvalidProgramError):
    """The library of a table format is not installed where it is needed."""


class LakeTableNotFoundError(InvalidProgramError):
    """There is no such table."""


class SchemaMismatchError(InvalidProgramError):
    """The columns of a program are not those of the table."""

    def __init__(self, message: str, *, columns: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.columns = tuple(columns)


class LakeError(FiresteelError):
    """A table cannot be read or written."""

    only_gives_up_checkpoint = False


class LakeReadError(LakeError):
    """A table has changed in a way that a stream of its rows cannot follow."""


class LakeConflictError(LakeError):
    """Another writer changed the table first; the commit can be made again on what it has become."""

    is_transient = True


def require_library(module: str, extra: str, what: str) -> Any:
    """The module of a library, which is loaded only where ``what`` is used."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingLibraryError(
            f"{what} needs {module.partition('.')[0]}, which cannot be imported: {error}.",
            hint=f"Install it where the program and its tasks run: pip install 'firesteel[{extra}]'.",
        ) from error


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A hint with the name that is most like one that was not found.

    >>> nearest("ordres", ["orders", "customers"])
    "Did you mean 'orders'?"
    """
    found = difflib.get_close_matches(name, sorted(known), 1)
    return f"Did you mean '{found[0]}'?" if found else None
