"""OVER by a column that is no time attribute: a row changes the results of the rows after it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.runtime.operators.over.spec import OverSpec
from firesteel.table.runtime.operators.ranks.changes import INSERT, UPDATE_AFTER, UPDATE_BEFORE
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec, identity_of
from firesteel.table.runtime.operators.sort_keys import SortKeys
from firesteel.table.user_functions.scope import scoped

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["SortedOverOperator", "SortedOverSpec"]

Row = tuple[Any, ...]
_KEYS, _ROWS, _RESULTS, _ACCUMULATORS = range(4)
"""State of a key: sort keys in order, the rows and their results in the same order, and accumulators of all rows."""


@dataclass(frozen=True)
class SortedOverSpec(OverSpec):
    """OVER by a column of any type, from the first row of the partition on."""

    def create(self, runtime: OperatorRuntime) -> SortedOverOperator:
        """Returns a new operator for one subtask."""
        return SortedOverOperator(self)


class SortedOverOperator(KeyedColumnOperator):
    """Keeps all rows of a partition. Rows that come after all others are added to what has been accumulated."""

    def __init__(self, spec: OverSpec) -> None:
        super().__init__(spec.group.partition, "over", spec.ttl_ms)
        self._spec = spec
        self._order = SortKeys(spec.row_type, spec.group.order)
        self._codec = RowCodec(spec.row_type)
        self._output_codec = RowCodec(spec.output_type)
        self._calls = spec.calls(scoped(self, spec.session))
        self._rows_frame = spec.group.frame.rows
        identity = identity_of([part.type for part in spec.row_type.fields])
        self._identity: Callable[[Row], Any] = identity or (lambda row: row)
        self._kinds: list[int] = []
        self._emitted: list[Row] = []

    def process_columns(self, batch: ColumnBatch) -> None:
        """Adds and removes rows; emits the results that are new or others than before."""
        import numpy as np

        codes, keys = self._keys_of(batch)
        states = self._objects.load(keys)
        kinds = [INSERT] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        rows = zip(self._order.of(batch.data), self._codec.decode(batch.data), kinds, strict=True)
        by_code: dict[int, list[Any]] = {}
        for code, change in zip(codes.tolist(), rows, strict=True):
            by_code.setdefault(code, []).append(change)
        for code, changes in by_code.items():
            state = states[code] or [[], [], [], self._calls.create()]
            for part in [[change] for change in changes] if self._spec.per_row else [changes]:
                self._change(state, part)
            self._objects.store(keys[code], state if state[_ROWS] else None)
        if self._kinds:
            numbers, rows_, self._kinds, self._emitted = self._kinds, self._emitted, [], []
            kinds_array = np.array(numbers, np.int8)
            data = self._output_codec.encode(rows_)
            self.emit(ColumnBatch(data, kinds_array if kinds_array.any() else None, self._spec.output_rowtime))

    def _change(self, state: list[Any], changes: Iterable[tuple[Any, Row, int]]) -> None:
        sort_keys, rows, results, _ = state
        before = len(rows)
        last = sort_keys[-1] if sort_keys else None
        is_append = True
        kinds: dict[int, int] = {}
        for sort_key, row, kind in changes:
            if kind in (INSERT, UPDATE_AFTER):
                place = bisect_right(sort_keys, sort_key)
                is_append = is_append and place >= before
                sort_keys.insert(place, sort_key)
                rows.insert(place, row)
                results.insert(place, None)
                kinds[id(row)] = kind
                continue
            found = self._find(sort_keys, rows, sort_key, row)
            if found is None:
                continue  # the row expired
            is_append = False
            old, known = results.pop(found), rows.pop(found)
            del sort_keys[found]
            if kinds.pop(id(known), None) is None:
                self._emit(kind, known, old)
        if is_append:
            # rows that are equal to the last one change its result in a RANGE
            peers = before if self._rows_frame or last is None else bisect_left(sort_keys, last)
            self._compute(state, before, peers, kinds)
        else:
            state[_ACCUMULATORS] = self._calls.create()
            self._compute(state, 0, 0, kinds)

    def _find(self, sort_keys: list[Any], rows: list[Row], sort_key: Any, row: Row) -> int | None:
        identity = self._identity(row)
        place = bisect_left(sort_keys, sort_key)
        while place < len(rows) and sort_keys[place] == sort_key:
            if self._identity(rows[place]) == identity:
                return place
            place += 1
        return None

    def _compute(self, state: list[Any], added: int, first: int, kinds: dict[int, int]) -> None:
        """Accumulates the rows from ``added`` on, and sets the results of those from ``first`` on."""
        sort_keys, rows, _, accumulators = state
        place = first
        while place < len(rows):
            end = place + 1 if self._rows_frame else bisect_right(sort_keys, sort_keys[place])
            for row in rows[max(place, added) : end]:
                self._calls.add(accumulators, [row[column] for column in self._calls.columns])
            found = self._calls.results(accumulators)
            for index in range(place, end):
                self._set(state, index, found, kinds)
            place = end

    def _set(self, state: list[Any], index: int, found: Row, kinds: dict[int, int]) -> None:
        row, old = state[_ROWS][index], state[_RESULTS][index]
        if old is None:
            self._emit(kinds[id(row)], row, found)
        elif not _same(old, found):
            self._emit(UPDATE_BEFORE, row, old)
            self._emit(UPDATE_AFTER, row, found)
        state[_RESULTS][index] = found

    def _emit(self, kind: int, row: Row, results: Row) -> None:
        self._kinds.append(kind)
        self._emitted.append((*row, *results))


def _same(one: Row, other: Row) -> bool:
    """NaN is NaN, but 1 is not 1.0."""
    return one == other or repr(one) == repr(other)
