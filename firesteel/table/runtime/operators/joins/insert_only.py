"""Inner join of two sides whose rows are only added: rows stay columns."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import distinct_keys, state_key
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import TwoInputColumnOperator
from firesteel.runtime.state.api.backend import ObjectStateBackend
from firesteel.table.evaluation.vector_codegen import compile_vector
from firesteel.table.expressions.nodes import InputRef, walk
from firesteel.table.runtime.operators.joins.row_store import RowStore
from firesteel.table.runtime.operators.joins.sides import COUNT, ROW, STATES
from firesteel.table.runtime.operators.keyed_objects import ObjectTableState
from firesteel.table.runtime.operators.rows import record_batch
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema

if TYPE_CHECKING:
    from firesteel.table.runtime.operators.joins.regular import RegularJoinSpec

__all__ = ["InsertOnlyJoinOperator"]


class _Side:
    """The rows of one side: a store of columns, and the numbers of the rows of each key."""

    def __init__(self, spec: RegularJoinSpec, index: int):
        self.side = (spec.left, spec.right)[index]
        self.width = len(self.side.row_type.fields)
        self.offset = 0 if index == 0 else len(spec.left.row_type.fields)
        self.store = RowStore(self.side.row_type)

    def open(self, backend: ObjectStateBackend, name: str) -> None:
        self.state = ObjectTableState(backend, name)
        entries = self.state.entries
        restored = [(key, _rows_of(value)) for key, value in entries.items()]
        if restored:
            number = self.store.append_rows(list(chain.from_iterable(rows for _, rows in restored)))
            for key, rows in restored:
                entries[key] = self.store.row_numbers(range(number, number + len(rows)))
                number += len(rows)

    def add(self, data: Any, keys: list[Any], codes: Any) -> None:
        """Keeps the rows of a batch."""
        import numpy as np

        first = self.store.append(data)
        numbers = (np.argsort(codes, kind="stable") + first).tolist()
        ends = np.cumsum(np.bincount(codes, minlength=len(keys))).tolist()
        entries, row_numbers = self.state.entries, self.store.row_numbers
        get = entries.get
        start = 0
        for key, end in zip(keys, ends, strict=True):
            known = get(key)
            if known is None:
                entries[key] = row_numbers(numbers[start:end])
            else:
                known += numbers[start:end]
            start = end
        self.state.mark_changed(keys)


class InsertOnlyJoinOperator(TwoInputColumnOperator):
    """Finds the rows of the other side by key, for all rows of a batch at once; results are gathered from columns.

    What it stores is the same as what RegularJoinOperator does: a job may be restored with either.
    """

    def __init__(self, spec: RegularJoinSpec):
        self._sides = (_Side(spec, 0), _Side(spec, 1))
        self._null_safe = spec.null_safe
        self._schema = columns_schema(spec.row_type)
        self._condition = None if spec.condition is None else compile_vector([spec.condition], spec.session)
        found = [] if spec.condition is None else [part for part in walk(spec.condition) if isinstance(part, InputRef)]
        self._condition_columns = sorted({part.index for part in found})

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        if not isinstance(context.backend, ObjectStateBackend):
            raise InvalidProgramError("A join of columns needs a state backend that keeps objects.")
        for side, name in zip(self._sides, STATES, strict=True):
            side.open(context.backend, name)

    def process_columns(self, batch: ColumnBatch) -> None:
        self._process(0, batch.data)

    def process_second_columns(self, batch: ColumnBatch) -> None:
        self._process(1, batch.data)

    def _process(self, index: int, data: Any) -> None:
        own, other = self._sides[index], self._sides[1 - index]
        own.store.forget_decoded()
        other.store.forget_decoded()
        data = self._with_keys(own, data)
        if not data.num_rows:
            return
        codes, values = distinct_keys(ColumnBatch(data), own.side.keys)
        keys = values if self._are_state_keys(own, data) else list(map(state_key, values))
        numbers = list(map(other.state.entries.get, keys))
        own.add(data, keys, codes)
        if any(numbers):
            self._emit_pairs(index, data, *_pairs(codes, numbers))

    def _with_keys(self, own: _Side, data: Any) -> Any:
        """The rows without a null that is equal to nothing."""
        import pyarrow.compute as pc

        for column, safe in zip(own.side.keys, self._null_safe, strict=True):
            array = data.column(column)
            if not safe and array.null_count:
                data = data.filter(pc.is_valid(array))
        return data

    def _are_state_keys(self, own: _Side, data: Any) -> bool:
        """Whether keys are stored as they are in rows."""
        types = require_pyarrow("SQL").types
        if len(own.side.keys) != 1:
            return False
        column = data.column(own.side.keys[0])
        return not column.null_count and (types.is_integer(column.type) or types.is_string(column.type))

    def _emit_pairs(self, index: int, data: Any, rows: Any, numbers: Any) -> None:
        """Emits the rows of a batch beside rows of the other side for which the condition is true."""
        own, other = self._sides[index], self._sides[1 - index]
        count = own.width + other.width
        columns: list[Any] = [None] * count
        if self._condition is not None:
            self._gather(columns, own, other, data, rows, numbers, self._condition_columns)
            (mask,) = self._condition(columns, len(rows))
            kept = mask.fill_null(False).to_numpy(zero_copy_only=False)
            if not kept.all():
                rows, numbers = rows[kept], numbers[kept]
                columns = [None if column is None else column.filter(mask) for column in columns]
            if not len(rows):
                return
        self._gather(columns, own, other, data, rows, numbers, [i for i in range(count) if columns[i] is None])
        self.emit(ColumnBatch(record_batch(columns, self._schema, len(rows))))

    def _gather(
        self, columns: list[Any], own: _Side, other: _Side, data: Any, rows: Any, numbers: Any, wanted: list[int]
    ) -> None:
        pa = require_pyarrow("SQL")
        for side in (own, other):
            chosen = [column - side.offset for column in wanted if 0 <= column - side.offset < side.width]
            if not chosen:
                continue
            if side is own:
                taken = data.select(chosen).take(pa.array(rows)).columns
            else:
                taken = side.store.take(numbers, chosen)
            for column, array in zip(chosen, taken, strict=True):
                columns[side.offset + column] = array


def _pairs(codes: Any, numbers: list[Any]) -> tuple[Any, Any]:
    """For each pair the row of the batch, and the number of the other row."""
    import numpy as np

    counts = np.array([0 if found is None else len(found) for found in numbers])
    flat = np.fromiter(chain.from_iterable(found for found in numbers if found), np.int64, int(counts.sum()))
    starts = np.cumsum(counts) - counts
    of_row = counts[codes]
    rows = np.repeat(np.arange(len(codes)), of_row)
    before = np.cumsum(of_row) - of_row
    places = np.arange(len(rows)) - before[rows] + starts[codes][rows]
    return rows, flat[places]


def _rows_of(value: Any) -> list[tuple[Any, ...]]:
    """The rows of a key in restored state."""
    if isinstance(value, list):
        return value
    return [record[ROW] for record in value.values() for _ in range(record[COUNT])]
