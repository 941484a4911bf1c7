"""Task key: a vertex and the index of a subtask."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["TaskKey"]

TaskKey: TypeAlias = tuple[str, int]
"""The id of the vertex, and the subtask."""
