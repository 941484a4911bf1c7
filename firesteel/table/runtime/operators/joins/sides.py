"""The sides of a regular join: what is known of their rows, and the rows that are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from firesteel.table.runtime.operators.rows import identity_of
from firesteel.types.logical import RowType

__all__ = ["ASSOCIATIONS", "COUNT", "ROW", "STATES", "WRITTEN", "JoinSide", "Record", "Records"]

STATES = ("left-records", "right-records")

Record = list[Any]
"""A row that is kept: the row, how often it occurs, with how many rows it is joined, and when it was written."""
ROW, COUNT, ASSOCIATIONS, WRITTEN = range(4)
Records = dict[Any, Record]
"""The rows of one key of a side."""


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

    def identity(self) -> Callable[[tuple[Any, ...]], Any]:
        """What rows are told apart by."""
        if self.unique_key is None:
            return identity_of([part.type for part in self.row_type.fields]) or _itself
        if not self.unique_key:
            return _nothing
        chosen = itemgetter(*self.unique_key)
        frozen = identity_of([self.row_type.fields[index].type for index in self.unique_key])
        if frozen is None or len(self.unique_key) == 1:
            return chosen
        return lambda row: frozen(chosen(row))


def _itself(row: tuple[Any, ...]) -> Any:
    return row


def _nothing(_: tuple[Any, ...]) -> Any:
    return ()
