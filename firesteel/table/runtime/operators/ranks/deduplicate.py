"""Deduplication: the first or the last row of each key, by processing time or by event time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import to_millis
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.runtime.state.columnar.state import ColumnarStateDescriptor, columnar_state
from firesteel.table.plan.time_attributes import is_proctime
from firesteel.table.runtime.operators.ranks.changes import INSERT, UPDATE_AFTER, UPDATE_BEFORE, Changes
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec, identity_of
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["KeepFirstSpec", "KeepLastSpec", "times_of"]

_LAST_ROW = "last-row"


def times_of(batch: ColumnBatch, column: int) -> Any:
    """The milliseconds of a time attribute, as a numpy array."""
    array = batch.data.column(column)
    return to_millis(array.cast("int64").fill_null(0).to_numpy(zero_copy_only=False), array.type)


@dataclass(frozen=True)
class KeepFirstSpec(OperatorSpec):
    """Keeps the first rows of each key, in the order in which they come."""

    keys: tuple[int, ...]
    count: int = 1
    skipped: int = 0
    """How many rows of each key are left out before."""
    ttl_ms: int = 0

    def create(self, runtime: OperatorRuntime) -> KeepFirstOperator:
        """Returns a new operator for one subtask."""
        return KeepFirstOperator(self)


class KeepFirstOperator(KeyedColumnOperator):
    """Counts the rows of each key."""

    def __init__(self, spec: KeepFirstSpec) -> None:
        super().__init__(spec.keys, "first-rows", spec.ttl_ms)
        self._end = spec.skipped + spec.count
        self._skipped = spec.skipped

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the rows whose number in their key is in the range."""
        import numpy as np

        codes, keys = self._keys_of(batch)
        counts = np.array([found or 0 for found in self._objects.load(keys)], np.int64)
        candidates = np.flatnonzero(counts[codes] < self._end)
        if not len(candidates):
            return
        own = codes[candidates]
        order = np.argsort(own, kind="stable")
        grouped = own[order]
        starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
        sizes = np.diff(np.r_[starts, len(grouped)])
        numbers = np.empty(len(own), np.int64)
        numbers[order] = np.arange(len(grouped)) - np.repeat(starts, sizes) + counts[grouped] + 1
        for code, size in zip(grouped[starts].tolist(), sizes.tolist(), strict=True):
            self._objects.store(keys[code], min(int(counts[code]) + size, self._end))
        kept = candidates[(numbers > self._skipped) & (numbers <= self._end)]
        self.emit(batch if len(kept) == len(batch) else batch.take(kept))


@dataclass(frozen=True)
class KeepLastSpec(OperatorSpec):
    """Keeps the last row of each key: by a column of event time, or as rows come."""

    keys: tuple[int, ...]
    row_type: RowType
    rowtime: int | None
    """The column of event time; None for processing time."""
    update_before: bool
    per_row: bool = False
    """Whether every row is a change of its own, as without mini-batches."""
    output_rowtime: int | None = None
    ttl_ms: int = 0

    @property
    def compares(self) -> bool:
        """Whether rows that change nothing are left out, as Flink does by processing time if state does not expire."""
        return self.rowtime is None and not self.ttl_ms

    def create(self, runtime: OperatorRuntime) -> ColumnOperator:
        """Returns a new operator for one subtask."""
        if self.update_before or self.compares:
            return KeepLastOperator(self)
        return LastTimeOperator(self)


def _last_rows(codes: Any, times: Any, keys: int, spec: KeepLastSpec) -> Any:
    """The last row of each key, or all rows if each is a change of its own, in the order in which they came."""
    import numpy as np

    count = len(codes)
    if spec.per_row:
        return np.arange(count)
    if spec.rowtime is None or (times[1:] >= times[:-1]).all():
        chosen = np.empty(keys, np.int64)
        chosen[codes] = np.arange(count)
        chosen.sort()
        return chosen
    order = np.lexsort((times, codes))
    grouped = codes[order]
    return np.sort(order[np.r_[grouped[1:] != grouped[:-1], True]])


def _times(batch: ColumnBatch, spec: KeepLastSpec) -> Any:
    import numpy as np

    return np.zeros(len(batch), np.int64) if spec.rowtime is None else times_of(batch, spec.rowtime)


class LastTimeOperator(ColumnOperator):
    """State of a key: the time of its row. What is emitted are rows of the batch."""

    def __init__(self, spec: KeepLastSpec) -> None:
        self._spec = spec

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        spec = self._spec
        assert context.backend is not None
        schema = columns_schema(spec.row_type)
        key_types = tuple(schema.field(column).type for column in spec.keys)
        descriptor = ColumnarStateDescriptor(_LAST_ROW, ("i8",), key_types, spec.ttl_ms)
        self._state = columnar_state(context.backend, descriptor, context.processing_time)

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the rows that are not older than those before them."""
        import numpy as np

        spec, state = self._spec, self._state
        keys = BatchKeys(batch, spec.keys)
        slots, is_new = state.lookup(keys)
        (latest,) = state.columns
        times = _times(batch, spec)
        chosen = _last_rows(keys.codes, times, keys.count, spec)
        own, at = keys.codes[chosen], times[chosen]
        if spec.per_row:
            keeps, is_first = _in_turn(own, at, latest[slots], is_new)
        else:
            is_first = is_new[own]
            keeps = is_first | (latest[slots[own]] <= at)
        kept, is_first = chosen[keeps], is_first[keeps]
        if not len(kept):
            return
        changed = slots[keys.codes[kept]]
        # of equal slots the last one is assigned
        latest[changed] = times[kept]
        state.update(changed if len(kept) <= keys.count else np.unique(changed))
        taken = batch.data if len(kept) == len(batch) else batch.take(kept).data
        kinds = np.where(is_first, INSERT, UPDATE_AFTER).astype(np.int8)
        self.emit(ColumnBatch(taken, None if is_first.all() else kinds, spec.output_rowtime))


def _in_turn(codes: Any, times: Any, latest: Any, is_new: Any) -> tuple[Any, Any]:
    """Which rows are not older than those before them of their key, and which are the first."""
    import numpy as np

    known = [None if new else time for new, time in zip(is_new.tolist(), latest.tolist(), strict=True)]
    keeps, firsts = [], []
    for code, time in zip(codes.tolist(), times.tolist(), strict=True):
        before = known[code]
        is_kept = before is None or before <= time
        keeps.append(is_kept)
        firsts.append(before is None)
        if is_kept:
            known[code] = time
    return np.array(keeps, bool), np.array(firsts, bool)


class KeepLastOperator(KeyedColumnOperator):
    """State of a key: the time of its row, and the row itself, for UPDATE_BEFORE or to compare it with the next."""

    def __init__(self, spec: KeepLastSpec) -> None:
        super().__init__(spec.keys, _LAST_ROW, spec.ttl_ms)
        self._spec = spec
        self._codec = RowCodec(spec.row_type)
        self._compares = spec.compares
        compared = [i for i, part in enumerate(spec.row_type.fields) if not is_proctime(part.type)]
        self._compared = None if len(compared) == len(spec.row_type.fields) else compared
        self._identity = identity_of([spec.row_type.fields[i].type for i in compared])

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the changes of a batch."""
        codes, keys = self._keys_of(batch)
        times = _times(batch, self._spec)
        chosen = _last_rows(codes, times, len(keys), self._spec)
        self._process_rows(batch, chosen, codes, times, keys, self._objects.load(keys))

    def _process_rows(self, batch: ColumnBatch, chosen: Any, codes: Any, times: Any, keys: Any, before: Any) -> None:
        data = batch.data if len(chosen) == len(batch) else batch.take(chosen).data
        decoded = self._codec.decode(data)
        changes = Changes(self._codec, data, decoded)
        kinds, rows = changes.kinds, changes.rows
        update_before = self._spec.update_before
        touched = set()
        for row, code, time in zip(decoded, codes[chosen].tolist(), times[chosen].tolist(), strict=True):
            old = before[code]
            if old is None:
                kinds.append(INSERT)
                rows.append(row)
            elif old[0] > time or (self._compares and self._same(old[1], row)):
                continue
            else:
                if update_before:
                    kinds.append(UPDATE_BEFORE)
                    rows.append(old[1])
                kinds.append(UPDATE_AFTER)
                rows.append(row)
            before[code] = (time, row)
            touched.add(code)
        for code in touched:
            self._objects.store(keys[code], before[code])
        built = changes.build(None, self._spec.output_rowtime)
        if built is not None:
            self.emit(built)

    def _same(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        if self._compared is not None:
            one, other = (tuple(row[index] for index in self._compared) for row in (one, other))
        return one == other if self._identity is None else self._identity(one) == self._identity(other)
