"""Top-N of rows that may be taken back: all rows are kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.runtime.operators.ranks.changes import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, Changes
from firesteel.table.runtime.operators.ranks.top_n import FirstRows, TopNOperator, TopNSpec
from firesteel.table.runtime.operators.rows import identity_of

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["RetractableTopNSpec"]


@dataclass(frozen=True)
class RetractableTopNSpec(TopNSpec):
    """Top-N of a changelog with UPDATE_BEFORE and DELETE."""

    def create(self, runtime: OperatorRuntime) -> RetractableTopNOperator:
        """Returns a new operator for one subtask."""
        return RetractableTopNOperator(self)


class RetractableTopNOperator(TopNOperator):
    """A row that is taken back is found by its place in the order, and by all of its columns."""

    def __init__(self, spec: TopNSpec) -> None:
        super().__init__(spec)
        self._identity: Callable[[Any], Any] | None = identity_of([part.type for part in spec.row_type.fields])

    def _process(
        self, batch: ColumnBatch, rows: list[Any], codes: list[int], found: list[FirstRows | None], changes: Changes
    ) -> set[int]:
        kinds = [INSERT] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        before: dict[int, list[tuple[Any, ...]]] = {}
        merged = changes if self._spec.per_row else Changes(self._codec, batch.data, rows, self._spec.with_number)
        for row, sort_key, code, kind in zip(rows, self._order.of(batch.data), codes, kinds, strict=True):
            first = self._of(found, code, row)
            if code not in before:
                before[code] = first.rows[: first.end]
            if kind in (INSERT, UPDATE_AFTER):
                self._add(merged, first, sort_key, row)
            else:
                self._remove(merged, first, sort_key, row)
        if not self._spec.per_row:
            for code, old in before.items():
                first = self._of(found, code, ())
                self._emit_difference(changes, self._renewed(old, first), first)
        return set(before)

    def _renewed(self, old: list[tuple[Any, ...]], first: FirstRows) -> list[tuple[Any, ...]]:
        """The old rows; one that was taken back and came again unchanged is the new one."""
        new = first.rows[: first.end]
        known = set(map(id, new))
        free = [row for row in new if id(row) not in set(map(id, old))]
        renewed = []
        for row in old:
            if id(row) not in known:
                place = next((index for index, other in enumerate(free) if self._same(row, other)), None)
                row = row if place is None else free.pop(place)
            renewed.append(row)
        return renewed

    def _add(self, changes: Changes, first: FirstRows, sort_key: Any, row: tuple[Any, ...]) -> None:
        place = first.insert(sort_key, row)
        if place >= first.end:
            return
        if self._numbered:
            self._emit_moved_down(changes, first, place)
            return
        if len(first.rows) > first.end:
            self._emit_row(changes, DELETE, first.rows[first.end])
        self._emit_row(changes, INSERT, row)

    def _remove(self, changes: Changes, first: FirstRows, sort_key: Any, row: tuple[Any, ...]) -> None:
        rows, sort_keys, end = first.rows, first.sort_keys, first.end
        place = bisect_left(sort_keys, sort_key)
        while place < len(rows) and sort_keys[place] == sort_key and not self._same(rows[place], row):
            place += 1
        if place >= len(rows) or sort_keys[place] != sort_key:
            return  # the row expired
        removed = first.pop(place)
        if place >= end:
            return
        if not self._numbered:
            self._emit_row(changes, DELETE, removed)
            if len(rows) >= end:
                self._emit_row(changes, INSERT, rows[end - 1])
            return
        previous = removed
        last = min(len(rows), end)
        for index in range(place, last):
            self._emit(changes, UPDATE_BEFORE, previous, index + 1, end)
            self._emit(changes, UPDATE_AFTER, rows[index], index + 1, end)
            previous = rows[index]
        self._emit(changes, DELETE, previous, last + 1, end)

    def _same(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        return one == other if self._identity is None else self._identity(one) == self._identity(other)
