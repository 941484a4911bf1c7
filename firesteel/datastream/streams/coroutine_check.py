"""Refuses functions that are declared as ``async def`` where nothing would await them."""

from __future__ import annotations

import inspect
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.graph.transformation import PhysicalTransformation, Transformation

__all__ = ["refuse_coroutines", "refuse_coroutines_of"]

_OWN_PACKAGE = "firesteel."


def refuse_coroutines(operation: str, function: Any) -> None:
    """Raises an error if a function, or a method that would be called of it, is a coroutine function."""
    name = _coroutine_name(function)
    if name is not None:
        raise InvalidProgramError(
            f"{operation} cannot call {name}: it is declared as 'async def', and nothing would await it.",
            hint="Implement AsyncFunction and use AsyncDataStream.unordered_wait or ordered_wait; everywhere else a "
            "function is declared with 'def'.",
        )


def refuse_coroutines_of(transformation: Transformation) -> None:
    """Raises an error if an operator has a function that is a coroutine function, unless it awaits it."""
    if isinstance(transformation, PhysicalTransformation) and not transformation.operator_spec.awaits_functions:
        for part in vars(transformation.operator_spec).values():
            refuse_coroutines(transformation.name, part)


def _coroutine_name(function: Any) -> str | None:
    if _is_coroutine_function(function):
        return getattr(function, "__qualname__", repr(function))
    kind = type(function)
    if kind.__module__ == "builtins" or kind.__module__.startswith(_OWN_PACKAGE):
        return None
    # those that Firesteel calls: it has declared them in a class of its own
    called = {name for base in kind.__mro__ if base.__module__.startswith(_OWN_PACKAGE) for name in vars(base)}
    for name in sorted({"__call__", *(name for name in called if not name.startswith("_"))}):
        if _is_coroutine_function(getattr(kind, name, None)):
            return f"{kind.__qualname__}.{name}"
    return None


def _is_coroutine_function(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
