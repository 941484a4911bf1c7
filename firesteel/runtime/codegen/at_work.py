"""Finds the user function whose result an operator method handles, for failure reports.

If a result of a user function is refused, or cannot be iterated over, the function has returned: it is on no traceback.
Methods that handle such results name the role of the function in ``OperatorSpec.functions``, and failure reports find
it by the method's code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, TypeVar

__all__ = [
    "AGGREGATE",
    "ASYNC_FUNCTION",
    "MATCH_FUNCTION",
    "TIMESTAMP_ASSIGNER",
    "TRIGGER",
    "WINDOW_FUNCTION",
    "function_at_work",
    "handles_results_of",
]

AGGREGATE = "aggregate function"
ASYNC_FUNCTION = "async function"
MATCH_FUNCTION = "match function"
TIMESTAMP_ASSIGNER = "timestamp assigner"
TRIGGER = "trigger"
WINDOW_FUNCTION = "window function"

_Method = TypeVar("_Method", bound=Callable[..., Any])
_ROLES: dict[CodeType, tuple[str, ...]] = {}


def handles_results_of(*roles: str) -> Callable[[_Method], _Method]:
    """Marks a method that handles results of a user function: of the first of these roles that the operator has."""

    def mark(method: _Method) -> _Method:
        _ROLES[method.__code__] = roles
        return method

    return mark


def function_at_work(functions: Mapping[str, Callable[..., Any]], code: CodeType) -> Callable[..., Any] | None:
    """Returns the function whose results the code handles, or None."""
    return next((functions[role] for role in _ROLES.get(code, ()) if role in functions), None)
