"""Places of parsed nodes in their statement."""

from __future__ import annotations

from sqlglot import exp

from firesteel.table.bound.errors import Position
from firesteel.table.parser import nodes

__all__ = ["place_of", "position_at"]


def place_of(node: exp.Expression, sql: str) -> Position | None:
    """The line and column of a node; None without the text."""
    return position_at(nodes.offset_of(node), sql) if sql else None


def position_at(offset: int, sql: str) -> Position:
    """The line and column of an offset."""
    before = sql[:offset]
    return Position(before.count("\n") + 1, offset - before.rfind("\n"))
