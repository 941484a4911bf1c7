"""Top-N of rows that are updated by a key, and never move down in the order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.runtime.operators.ranks.changes import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, Changes
from firesteel.table.runtime.operators.ranks.top_n import (
    AppendOnlyTopNOperator,
    FirstRows,
    TopNOperator,
    TopNSpec,
)

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["UpdatableTopNSpec"]


@dataclass(frozen=True)
class UpdatableTopNSpec(TopNSpec):
    """Top-N of a changelog whose updates have a key; UPDATE_BEFORE is not needed."""

    update_key: tuple[int, ...] = ()

    def create(self, runtime: OperatorRuntime) -> TopNOperator:
        """Returns a new operator for one subtask."""
        if self.start == self.end == 1:
            return UpdatableTop1Operator(self)
        return UpdatableTopNOperator(self)


def _after(batch: ColumnBatch) -> Any:
    """The rows that are not UPDATE_BEFORE; None for all."""
    import numpy as np

    return None if batch.kinds is None or (batch.kinds != UPDATE_BEFORE).all() else np.flatnonzero(batch.kinds != 1)


class UpdatableTop1Operator(AppendOnlyTopNOperator):
    """The first row of each key."""

    def process_columns(self, batch: ColumnBatch) -> None:
        """As for rows that never change."""
        kept = _after(batch)
        super().process_columns(batch if kept is None else batch.take(kept))


class UpdatableTopNOperator(TopNOperator):
    """Rows behind the last one that counts are forgotten: they come back by an update."""

    def __init__(self, spec: UpdatableTopNSpec) -> None:
        super().__init__(spec)
        self._update_key = spec.update_key

    def _candidates(self, batch: ColumnBatch, codes: Any, found: list[FirstRows | None]) -> Any:
        return _after(batch)

    def _process(
        self, batch: ColumnBatch, rows: list[Any], codes: list[int], found: list[FirstRows | None], changes: Changes
    ) -> set[int]:
        before: dict[int, list[tuple[Any, ...]]] = {}
        merged = changes if self._spec.per_row else Changes(self._codec, batch.data, rows, self._spec.with_number)
        for row, sort_key, code in zip(rows, self._order.of(batch.data), codes, strict=True):
            first = self._of(found, code, row)
            if code not in before:
                before[code] = list(first.rows)
            place = self._place_of(first, row)
            if place is not None:
                self._update(merged, first, place, sort_key, row)
            elif len(first.rows) < first.end or (first.rows and sort_key < first.sort_keys[-1]):
                self._add(merged, first, sort_key, row)
        if not self._spec.per_row:
            for code, old in before.items():
                first = self._of(found, code, ())
                if self._numbered:
                    self._emit_difference(changes, old, first)
                else:
                    self._emit_updates(changes, old, first)
        return set(before)

    def _place_of(self, first: FirstRows, row: tuple[Any, ...]) -> int | None:
        key = self._key(row)
        return next((place for place, other in enumerate(first.rows) if self._key(other) == key), None)

    def _key(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([row[index] for index in self._update_key])

    def _emit_updates(self, changes: Changes, old: list[tuple[Any, ...]], first: FirstRows) -> None:
        new = {self._key(row): row for row in first.rows}
        for row in old:
            if self._key(row) not in new:
                self._emit_row(changes, DELETE, row)
        known = {self._key(row): row for row in old}
        for key, row in new.items():
            if key not in known:
                self._emit_row(changes, INSERT, row)
            elif known[key] is not row:
                self._emit_row(changes, UPDATE_BEFORE, known[key])
                self._emit_row(changes, UPDATE_AFTER, row)

    def _add(self, changes: Changes, first: FirstRows, sort_key: Any, row: tuple[Any, ...]) -> None:
        place = first.insert(sort_key, row)
        if self._numbered:
            self._emit_moved_down(changes, first, place)
        elif len(first.rows) > first.end:
            self._emit_row(changes, DELETE, first.rows[-1])
        if len(first.rows) > first.end:
            first.pop()
        if not self._numbered:
            self._emit_row(changes, INSERT, row)

    def _update(self, changes: Changes, first: FirstRows, place: int, sort_key: Any, row: tuple[Any, ...]) -> None:
        end, rows = first.end, first.rows
        if first.sort_keys[place] == sort_key:
            old, new = rows[place], place
            rows[place] = row
        else:
            old = first.pop(place)
            new = first.insert(sort_key, row)
        if not self._numbered:
            self._emit_row(changes, UPDATE_BEFORE, old)
            self._emit_row(changes, UPDATE_AFTER, row)
            return
        if new > place:  # it moved down, which only rows do that the operator before has forgotten
            self._emit(changes, UPDATE_BEFORE, old, place + 1, end)
            for index in range(place, new):
                self._emit(changes, UPDATE_BEFORE, rows[index], index + 2, end)
                self._emit(changes, UPDATE_AFTER, rows[index], index + 1, end)
            self._emit(changes, UPDATE_AFTER, row, new + 1, end)
            return
        if new == place:
            self._emit(changes, UPDATE_BEFORE, old, place + 1, end)
        for index in range(new, place):
            self._emit(changes, UPDATE_BEFORE, rows[index + 1], index + 1, end)
            if index == new:
                self._emit(changes, UPDATE_BEFORE, old, place + 1, end)
            self._emit(changes, UPDATE_AFTER, rows[index], index + 1, end)
        self._emit(changes, UPDATE_AFTER, rows[place], place + 1, end)
