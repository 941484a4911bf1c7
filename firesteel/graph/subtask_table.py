"""Table of values by vertex and subtask, with immutable copies that share unchanged parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeAlias, TypeVar

from firesteel.graph.frozen_dict import FrozenDict
from firesteel.graph.persistent_vector import PersistentVector

__all__ = ["SubtaskTable", "SubtaskValues"]

T = TypeVar("T")

SubtaskValues: TypeAlias = Mapping[str, PersistentVector[T | None]]
"""An immutable copy of a table: by vertex id, a value or None for each subtask, and perhaps None for some more."""

_GROWTH_ENTRIES = 32


class SubtaskTable(Generic[T]):
    """A mutable table, whose values come one after the other.

    >>> table: SubtaskTable[str] = SubtaskTable()
    >>> table.put("map", 1, "b")
    >>> before = table.frozen()
    >>> table.put("sink", 0, "c")
    >>> before["map"][1], "sink" in before, table.frozen()["sink"][0]
    ('b', False, 'c')
    >>> before["map"] is table.frozen()["map"]
    True
    """

    def __init__(self) -> None:
        self._rows: dict[str, PersistentVector[T | None]] = {}
        self._frozen: FrozenDict[str, PersistentVector[T | None]] | None = FrozenDict()
        """None if it is out of date."""

    def get(self, vertex_id: str, subtask: int) -> T | None:
        """The value of a subtask; None if it has none."""
        try:
            return self._rows[vertex_id][subtask]
        except LookupError:
            return None

    def put(self, vertex_id: str, subtask: int, value: T) -> None:
        """Sets the value of a subtask."""
        try:
            self._rows[vertex_id] = self._rows[vertex_id].replaced(subtask, value)
        except LookupError:
            known = tuple(self._rows.get(vertex_id, ()))
            longer = PersistentVector.of([*known, *[None] * (subtask - len(known) + _GROWTH_ENTRIES)])
            self._rows[vertex_id] = longer.replaced(subtask, value)
        self._frozen = None

    def clear(self) -> None:
        """Forgets all values."""
        self._rows.clear()
        self._frozen = None

    def frozen(self) -> SubtaskValues[T]:
        """The present values."""
        if self._frozen is None:
            self._frozen = FrozenDict(self._rows)
        return self._frozen
