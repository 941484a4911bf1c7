"""The name of a task: its vertex and the number of its subtask."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["TaskKey"]

TaskKey: TypeAlias = tuple[str, int]
"""The id of the vertex, and the subtask."""
