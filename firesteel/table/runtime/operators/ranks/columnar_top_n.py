"""Top-N of rows that never change, few of each key and in the order of an integer: sort keys are in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.runtime.state.columnar.state import ColumnarStateDescriptor, columnar_state
from firesteel.table.runtime.operators.ranks.changes import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.table.runtime.operators.sort_keys import SortKeys
from firesteel.types.internal import columns_schema

if TYPE_CHECKING:
    from firesteel.table.runtime.operators.ranks.top_n import TopNSpec

__all__ = ["ColumnarTopNOperator", "is_columnar"]

_MAX_ROWS = 16
"""Each key has room for all of its rows."""
_NONE = -1


def is_columnar(spec: TopNSpec) -> bool:
    """Whether the operator takes a spec."""
    if spec.per_row or spec.end is None or spec.end > _MAX_ROWS:
        return False
    return SortKeys(spec.row_type, spec.order).is_single_integer


class ColumnarTopNOperator(ColumnOperator):
    """State of a key: the number of its rows; their sort keys in order, each with the class of its null; the rows.

    1. Rows that are not before the last row of a full key are left out, and all but the first ones of each key.
    2. The rows of the state and the others are sorted together, those of the state before equal ones.
    3. The first rows of each key are the new state.
    4. The differences are emitted: by number if numbers matter, else by row.
    """

    def __init__(self, spec: TopNSpec) -> None:
        self._spec = spec
        assert spec.end is not None
        self._count = spec.end
        self._order = SortKeys(spec.row_type, spec.order)
        self._codec = RowCodec(spec.row_type)
        self._schema = columns_schema(spec.output_type)
        self._by_number = spec.with_number or spec.start > 1 or self._count == 1

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        spec, count = self._spec, self._count
        assert context.backend is not None
        schema = columns_schema(spec.row_type)
        key_types = tuple(schema.field(column).type for column in spec.keys)
        dtypes = ("i8", *["i8"] * count, *["i1"] * count, *["O"] * count)
        descriptor = ColumnarStateDescriptor("top-n", dtypes, key_types, spec.ttl_ms)
        self._state = columnar_state(context.backend, descriptor, context.processing_time)

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the changes of a batch."""
        keys = BatchKeys(batch, self._spec.keys)
        slots, _ = self._state.lookup(keys)
        numbers, classes = self._order.ranked(batch.data)
        chosen = self._candidates(keys.codes, slots, numbers, classes)
        if not len(chosen):
            return
        touched, own = np.unique(keys.codes[chosen], return_inverse=True)
        slots = slots[touched]
        counts, old_numbers, old_classes, old_rows = self._matrices(slots)
        is_old = np.arange(self._count) < counts[:, None]
        old_owners, old_places = np.nonzero(is_old)
        stored = len(old_owners)
        # all rows that may count: those of the state, then those of the batch
        owners = np.concatenate([old_owners, own])
        numbers = np.concatenate([old_numbers[is_old], numbers[chosen]])
        classes = np.concatenate([old_classes[is_old], classes[chosen]])
        order = np.lexsort((numbers, classes, owners))
        grouped = owners[order]
        starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
        sizes = np.diff(np.r_[starts, len(grouped)])
        places = np.arange(len(grouped)) - np.repeat(starts, sizes)
        first = places < self._count
        before = np.full((len(touched), self._count), _NONE, np.intp)
        before[old_owners, old_places] = np.arange(stored)
        after = np.full_like(before, _NONE)
        after[grouped[first], places[first]] = order[first]
        objects = np.full(len(owners) + 1, None, object)
        objects[:stored] = old_rows[is_old]
        entering = order[first][order[first] >= stored]
        rows = self._codec.decode(batch.data.take(pa.array(chosen[entering - stored])))
        objects[entering] = np.fromiter(rows, object, len(rows))
        self._store(slots, after, numbers, classes, objects)
        self._emit(batch, chosen, before, after, objects[:stored])

    # -- state ----------------------------------------------------------------------------------------

    def _matrices(self, slots: Any) -> tuple[Any, Any, Any, Any]:
        """The number of rows of slots, and per slot their sort keys, the classes of these, and the rows."""
        columns, count = self._state.columns, self._count
        parts = (columns[1 + index * count : 1 + (index + 1) * count] for index in range(3))
        numbers, classes, rows = (np.stack([column[slots] for column in part], axis=1) for part in parts)
        return columns[0][slots], numbers, classes, rows

    def _store(self, slots: Any, after: Any, numbers: Any, classes: Any, objects: Any) -> None:
        columns, count = self._state.columns, self._count
        columns[0][slots] = np.count_nonzero(after >= 0, axis=1)
        for place in range(count):
            found = after[:, place]
            columns[1 + place][slots] = numbers[found]
            columns[1 + count + place][slots] = classes[found]
            # the last object is that of no row
            columns[1 + 2 * count + place][slots] = objects[found]
        self._state.update(slots)

    def _candidates(self, codes: Any, slots: Any, numbers: Any, classes: Any) -> Any:
        """The rows that may get into the state."""
        columns, count = self._state.columns, self._count
        is_full = columns[0][slots] >= count
        if is_full.any():
            last, last_class = columns[count][slots][codes], columns[2 * count][slots][codes]
            is_before = (classes < last_class) | ((classes == last_class) & (numbers < last))
            chosen = np.flatnonzero(~is_full[codes] | is_before)
        else:
            chosen = np.arange(len(codes))
        if len(chosen) <= count:
            return chosen
        own = codes[chosen]
        sizes = np.bincount(own)
        if sizes.max() <= count:
            return chosen
        order = np.lexsort((numbers[chosen], classes[chosen], own))
        sizes = sizes[sizes > 0]
        places = np.arange(len(own)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return chosen[np.sort(order[places < count])]

    # -- changes --------------------------------------------------------------------------------------

    def _emit(self, batch: ColumnBatch, chosen: Any, before: Any, after: Any, objects: Any) -> None:
        """The differences; rows below ``len(objects)`` are those of the state, the others those that were chosen."""
        rows, kinds, numbers = self._by_numbers(before, after) if self._by_number else self._by_rows(before, after)
        if not len(rows):
            return
        stored = len(objects)
        is_stored = rows < stored
        data = batch.data
        indices = np.where(is_stored, 0, chosen[np.maximum(rows - stored, 0)])
        if is_stored.any():
            old, codes = np.unique(rows[is_stored], return_inverse=True)
            indices[is_stored] = data.num_rows + codes
            encoded = self._codec.encode(objects[old].tolist())
            if not data.schema.equals(encoded.schema):
                data = data.cast(encoded.schema)
            data = pa.Table.from_batches([data, encoded]).combine_chunks().to_batches()[0]
        taken = data.take(pa.array(indices))
        if self._spec.with_number:
            taken = pa.RecordBatch.from_arrays([*taken.columns, pa.array(numbers)], schema=self._schema)
        self.emit(ColumnBatch(taken, kinds if kinds.any() else None, self._spec.output_rowtime))

    def _by_numbers(self, before: Any, after: Any) -> tuple[Any, Any, Any]:
        """For each number whose row is another one: the old row, if it is emitted, and the new one."""
        start = self._spec.start - 1
        before, after = before[:, start:], after[:, start:]
        differs = before != after
        is_update = differs & (before >= 0)
        pairs = np.stack([before, after], axis=2)
        emits = np.stack([is_update & self._spec.update_before, differs], axis=2)
        kinds = np.empty(pairs.shape, np.int8)
        kinds[:, :, 0] = UPDATE_BEFORE
        kinds[:, :, 1] = np.where(is_update, UPDATE_AFTER, INSERT)
        numbers = np.broadcast_to(np.arange(start + 1, self._count + 1)[None, :, None], pairs.shape)
        return pairs[emits], kinds[emits], numbers[emits]

    def _by_rows(self, before: Any, after: Any) -> tuple[Any, Any, Any]:
        """For each key the rows that are no more among the first ones, then those that are new."""
        stored = int(before.max(initial=_NONE)) + 1
        stays = np.zeros(stored + 1, bool)
        stays[after[(after >= 0) & (after < stored)]] = True
        leaves = (before >= 0) & ~stays[before]
        joins = after >= stored
        rows = np.concatenate([before, after], axis=1)
        kinds = np.empty(rows.shape, np.int8)
        kinds[:, : before.shape[1]] = DELETE
        kinds[:, before.shape[1] :] = INSERT
        emits = np.concatenate([leaves, joins], axis=1)
        return rows[emits], kinds[emits], None
