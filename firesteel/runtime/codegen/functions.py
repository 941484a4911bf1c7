"""User functions as callables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["method_of"]


def method_of(function: Any, name: str) -> Callable[..., Any]:
    """A Function object's method, or the bare callable itself."""
    method: Callable[..., Any] | None = getattr(function, name, None)
    return method if callable(method) else function
