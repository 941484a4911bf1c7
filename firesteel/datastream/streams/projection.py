"""Built-in functions of stream operations."""

from __future__ import annotations

from typing import Any

from firesteel.common.types import Row

__all__ = ["Projection", "identity", "row_to_text"]


class Projection:
    """Projects a tuple to some of its fields."""

    def __init__(self, field_indexes: tuple[int, ...]):
        self.field_indexes = field_indexes

    def __call__(self, value: Any) -> tuple[Any, ...]:
        """The chosen fields."""
        return tuple([value[index] for index in self.field_indexes])


def identity(value: Any) -> Any:
    """The record itself."""
    return value


def row_to_text(value: Any) -> str:
    """A row as Flink prints it, with its kind of change: ``+I[1,a]``."""
    if not isinstance(value, Row):
        return str(value)
    return f"{value.get_row_kind()}[{','.join(map(str, value))}]"
