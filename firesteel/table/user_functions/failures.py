"""Errors of functions: with the line of the function, its arguments, and the place in the query."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.table.bound.errors import Position

__all__ = ["UserFunctionError", "failed_call", "failed_result"]

_MAX_TEXT = 100


class UserFunctionError(FiresteelError):
    """A function of the user has failed, or its result is not of its type."""

    function: str = ""
    arguments: str = ""
    position: Position | None = None


def failed_call(
    name: str, position: Position | None, error: BaseException, arguments: Sequence[Any] | None
) -> FiresteelError:
    """The error for what a function has raised. ``arguments`` are those of the row, if they are known."""
    if isinstance(error, UserFunctionError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_ours(frame.filename)]
    # the line of the user's program, not that of a library that it calls
    own = [frame for frame in own if "site-packages" not in frame.filename] or own
    where = f" at {own[-1].filename}:{own[-1].lineno}" if own else ""
    return _made(name, position, f"failed with {type(error).__name__}: {error}{where}", arguments)


def failed_result(
    name: str, position: Position | None, result: Any, type_: str, problem: str, arguments: Sequence[Any] | None
) -> FiresteelError:
    """The error for a result that is not of the type of the function."""
    said = f"returned {_short(result)} for {type_}, which does not fit: {problem}"
    return _made(name, position, said, arguments)


def _made(name: str, position: Position | None, said: str, arguments: Sequence[Any] | None) -> FiresteelError:
    place = f" ({position})" if position else ""
    text = "" if arguments is None else f"({', '.join(map(_short, arguments))})"
    row = f", for the arguments {text}" if text else ""
    found = UserFunctionError(f"The function {name}{place} {said}{row}.")
    found.function, found.arguments, found.position = name, text, position
    return found


def _is_ours(filename: str) -> bool:
    return "/firesteel/table/" in filename.replace("\\", "/")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
