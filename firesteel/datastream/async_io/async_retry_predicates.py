"""Conditions under which an async function is called again."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any] | None) -> bool:
    """Whether a result has no records."""
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Whether there was an exception."""
    return error is not None


def exception_type_predicate(error: BaseException | None, expected_error_type: type[BaseException]) -> bool:
    """Whether an exception is of a type; ``functools.partial`` sets the type."""
    return isinstance(error, expected_error_type)
