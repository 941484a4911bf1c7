"""Top-N: the first rows of each key in an order, as its rows change."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.plan.nodes import SortKey
from firesteel.table.runtime.operators.ranks.changes import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, Changes
from firesteel.table.runtime.operators.ranks.columnar_top_n import ColumnarTopNOperator, is_columnar
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.table.runtime.operators.sort_keys import SortKeys
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["AppendOnlyTopNOperator", "AppendOnlyTopNSpec", "FirstRows", "TopNOperator", "TopNSpec"]


@dataclass(frozen=True)
class TopNSpec(OperatorSpec):
    """What all operators of Top-N are made with."""

    keys: tuple[int, ...]
    row_type: RowType
    output_type: RowType
    """The row type, and the number as last column if it is emitted."""
    order: tuple[SortKey, ...]
    start: int
    end: int | None
    end_column: int | None
    update_before: bool
    per_row: bool = False
    """Whether every row is a change of its own; else changes of a batch are merged."""
    output_rowtime: int | None = None
    ttl_ms: int = 0

    @property
    def with_number(self) -> bool:
        """Whether the number of a row is emitted."""
        return len(self.output_type.fields) > len(self.row_type.fields)


@dataclass(frozen=True)
class AppendOnlyTopNSpec(TopNSpec):
    """Top-N of rows that never change."""

    def create(self, runtime: OperatorRuntime) -> ColumnOperator:
        """Returns a new operator for one subtask."""
        return ColumnarTopNOperator(self) if is_columnar(self) else AppendOnlyTopNOperator(self)


class FirstRows:
    """The rows of a key in their order, with what they are sorted by, and the number of the last one that counts."""

    __slots__ = ("end", "rows", "sort_keys")

    def __init__(self, end: int) -> None:
        self.sort_keys: list[Any] = []
        self.rows: list[tuple[Any, ...]] = []
        self.end = end

    def insert(self, sort_key: Any, row: tuple[Any, ...]) -> int:
        """Adds a row after those that are equal in the order; returns its place."""
        place = bisect_right(self.sort_keys, sort_key)
        self.sort_keys.insert(place, sort_key)
        self.rows.insert(place, row)
        return place

    def pop(self, place: int = -1) -> tuple[Any, ...]:
        """Removes a row."""
        del self.sort_keys[place]
        return self.rows.pop(place)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __reduce__(self) -> Any:
        return _first_rows, (self.sort_keys, self.rows, self.end)


def _first_rows(sort_keys: list[Any], rows: list[tuple[Any, ...]], end: int) -> FirstRows:
    found = FirstRows(end)
    found.sort_keys, found.rows = sort_keys, rows
    return found


class TopNOperator(KeyedColumnOperator):
    """Keeps rows of each key in their order."""

    def __init__(self, spec: TopNSpec) -> None:
        super().__init__(spec.keys, "top-n", spec.ttl_ms)
        self._spec = spec
        self._codec = RowCodec(spec.row_type)
        self._order = SortKeys(spec.row_type, spec.order)
        self._schema = columns_schema(spec.output_type)
        self._start = spec.start
        self._numbered = spec.with_number or spec.start > 1
        """Whether a row is emitted anew when its number changes."""
        self._update_before = spec.update_before

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the changes of a batch."""
        codes, keys = self._keys_of(batch)
        found: list[FirstRows | None] = self._objects.load(keys)
        candidates = self._candidates(batch, codes, found)
        if candidates is not None:
            if not len(candidates):
                return
            batch, codes = batch.take(candidates), codes[candidates]
        rows = self._codec.decode(batch.data)
        changes = Changes(self._codec, batch.data, rows, self._spec.with_number)
        touched = self._process(batch, rows, codes.tolist(), found, changes)
        for code in touched:
            self._objects.store(keys[code], found[code])
        built = changes.build(self._schema, self._spec.output_rowtime)
        if built is not None:
            self.emit(built)

    def _candidates(self, batch: ColumnBatch, codes: Any, found: list[FirstRows | None]) -> Any:
        """The rows that may matter, as a numpy array; None for all."""
        return None

    @abstractmethod
    def _process(
        self, batch: ColumnBatch, rows: list[Any], codes: list[int], found: list[FirstRows | None], changes: Changes
    ) -> set[int]:
        """Applies rows to the first rows of their keys; returns which keys have changed."""

    def _of(self, found: list[FirstRows | None], code: int, row: tuple[Any, ...]) -> FirstRows:
        first = found[code]
        if first is None:
            end = self._spec.end
            if end is None:
                assert self._spec.end_column is not None
                end = row[self._spec.end_column] or 0
            first = found[code] = FirstRows(end)
        return first

    # -- changes -----------------------------------------------------------------------------------------------

    def _emit(self, changes: Changes, kind: int, row: tuple[Any, ...], number: int, end: int) -> None:
        """A row with its number, if that is in the range."""
        if self._start <= number <= end and (kind != UPDATE_BEFORE or self._update_before):
            changes.kinds.append(kind)
            changes.rows.append(row)
            if changes.numbers is not None:
                changes.numbers.append(number)

    def _emit_row(self, changes: Changes, kind: int, row: tuple[Any, ...]) -> None:
        if kind != UPDATE_BEFORE or self._update_before:
            changes.kinds.append(kind)
            changes.rows.append(row)

    def _emit_moved_down(self, changes: Changes, first: FirstRows, place: int) -> None:
        """The row at a place is new: those after it have the next number each."""
        end, rows = first.end, first.rows
        last = min(len(rows), end + 1)
        for index in range(place + 1, last):
            self._emit(changes, UPDATE_BEFORE, rows[index], index, end)
            self._emit(changes, UPDATE_AFTER, rows[index - 1], index, end)
        self._emit(changes, INSERT, rows[last - 1], last, end)

    def _emit_difference(self, changes: Changes, before: list[tuple[Any, ...]], first: FirstRows) -> None:
        """What has changed since: by number if numbers matter, else by row."""
        end = first.end
        after = first.rows[:end]
        if not self._numbered:
            old, new = set(map(id, before)), set(map(id, after))
            for row in before:
                if id(row) not in new:
                    self._emit_row(changes, DELETE, row)
            for row in after:
                if id(row) not in old:
                    self._emit_row(changes, INSERT, row)
            return
        start, numbers = self._start, changes.numbers
        kinds, rows = changes.kinds, changes.rows
        if not before:
            after = after[start - 1 :]
            kinds += [INSERT] * len(after)
            rows += after
            if numbers is not None:
                numbers += range(start, start + len(after))
            return
        for index in range(start - 1, max(len(before), len(after))):
            if index >= len(before):
                self._emit(changes, INSERT, after[index], index + 1, end)
            elif index >= len(after):
                self._emit(changes, DELETE, before[index], index + 1, end)
            elif before[index] is not after[index]:
                if self._update_before:
                    kinds.append(UPDATE_BEFORE)
                    rows.append(before[index])
                kinds.append(UPDATE_AFTER)
                rows.append(after[index])
                if numbers is not None:
                    numbers += (index + 1, index + 1) if self._update_before else (index + 1,)


class AppendOnlyTopNOperator(TopNOperator):
    """Rows behind the last one that counts are forgotten: they never come back."""

    def _candidates(self, batch: ColumnBatch, codes: Any, found: list[FirstRows | None]) -> Any:
        """Rows before the last row that counts, of keys that are full; of a batch not more than count."""
        if not self._order.is_single_integer:
            return None
        integers = self._order.integers(batch.data)
        if integers is None:
            return None
        chosen = self._before_last(integers, codes, found)
        if self._spec.per_row or self._spec.end is None:
            return chosen
        return _first_of_each(integers, codes, chosen, self._spec.end)

    def _before_last(self, integers: Any, codes: Any, found: list[FirstRows | None]) -> Any:
        import numpy as np

        limits = np.full(len(found), np.iinfo(np.int64).max)
        is_open = np.ones(len(found), bool)
        for code, first in enumerate(found):
            if first is not None and len(first.sort_keys) >= first.end:
                last = first.sort_keys[-1] if first.sort_keys else -(1 << 64)
                if -(1 << 63) <= last < 1 << 63:
                    limits[code], is_open[code] = last, False
        if is_open.all():
            return None
        return np.flatnonzero((integers < limits[codes]) | is_open[codes])

    def _process(
        self, batch: ColumnBatch, rows: list[Any], codes: list[int], found: list[FirstRows | None], changes: Changes
    ) -> set[int]:
        per_row, single = self._spec.per_row, self._spec.start == self._spec.end == 1
        before: dict[int, list[tuple[Any, ...]]] = {}
        for row, sort_key, code in zip(rows, self._order.of(batch.data), codes, strict=True):
            first = found[code]
            if first is None:
                first = self._of(found, code, row)
            sort_keys, end = first.sort_keys, first.end
            if len(sort_keys) >= end and (not sort_keys or not sort_key < sort_keys[-1]):
                before.setdefault(code, first.rows)
                continue
            if per_row:
                before[code] = first.rows
                self._insert(changes, first, sort_key, row, single)
                continue
            if code not in before or before[code] is first.rows:
                before[code] = list(first.rows)
            first.insert(sort_key, row)
            if len(sort_keys) > end:
                first.pop()
        if not per_row:
            for code, old in before.items():
                first = self._of(found, code, ())
                if single and old and old[0] is not first.rows[0]:
                    self._emit_update(changes, old[0], first.rows[0])
                elif old is not first.rows and not (single and old):
                    self._emit_difference(changes, old, first)
        return set(before)

    def _insert(self, changes: Changes, first: FirstRows, sort_key: Any, row: tuple[Any, ...], single: bool) -> None:
        if single and first.rows:
            old = first.pop()
            first.insert(sort_key, row)
            self._emit_update(changes, old, row)
            return
        place = first.insert(sort_key, row)
        if self._numbered:
            self._emit_moved_down(changes, first, place)
        elif len(first.rows) > first.end:
            self._emit_row(changes, DELETE, first.rows[-1])
        if len(first.rows) > first.end:
            first.pop()
        if not self._numbered:
            self._emit_row(changes, INSERT, row)

    def _emit_update(self, changes: Changes, old: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        """The single row of a key is another one."""
        self._emit(changes, UPDATE_BEFORE, old, 1, 1)
        self._emit(changes, UPDATE_AFTER, row, 1, 1)


def _first_of_each(integers: Any, codes: Any, chosen: Any, count: int) -> Any:
    """Of the chosen rows the first ones of each key in the order, in the order in which they came."""
    import numpy as np

    own, values = (codes, integers) if chosen is None else (codes[chosen], integers[chosen])
    if not len(own):
        return chosen
    order = np.lexsort((values, own))
    grouped = own[order]
    starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    sizes = np.diff(np.r_[starts, len(grouped)])
    if sizes.max() <= count:
        return chosen
    places = np.sort(order[np.arange(len(grouped)) - np.repeat(starts, sizes) < count])
    return places if chosen is None else chosen[places]
