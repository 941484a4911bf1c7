"""UPDATE and DELETE of the rows of a table in an external system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

__all__ = ["RowChanges"]


class RowChanges(ABC):
    """Changes rows by their primary key, all of a statement or none."""

    @property
    @abstractmethod
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key."""

    @abstractmethod
    def delete(self, keys: Sequence[tuple[Any, ...]]) -> int:
        """Deletes the rows with these keys; returns how many there were."""

    @abstractmethod
    def update(self, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> int:
        """Sets columns of rows; each row has the values of the columns, then its key. Returns how many there were."""
