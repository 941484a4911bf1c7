"""The sides of a regular join: what is known of their rows, and the rows that are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.types.logical import RowType

__all__ = ["STATES", "JoinSide", "Record", "has_null_key"]

STATES = ("left-records", "right-records")

Record = list[Any]
"""A row that is kept: the row, how often it occurs, with how many rows it is joined, and when it was written."""


@dataclass(frozen=True)
class JoinSide:
    """What is known of one side of a join."""

    row_type: RowType
    keys: tuple[int, ...]
    unique_key: tuple[int, ...] | None = None
    """Columns which identify a row beside the join key, perhaps none; None if there may be equal rows."""
    ttl_ms: int = 0
    """Time that a row is kept after it was written; 0 for ever."""
    is_insert_only: bool = False

    @property
    def only_grows(self) -> bool:
        """Whether rows are never removed nor replaced."""
        return self.is_insert_only and not self.ttl_ms


def has_null_key(key: Any, null_safe: tuple[bool, ...]) -> bool:
    """Whether a key, as ``distinct_keys`` gives it, has a null that is equal to nothing."""
    if len(null_safe) == 1:
        return key is None and not null_safe[0]
    return any(part is None and not safe for part, safe in zip(key, null_safe, strict=True))
