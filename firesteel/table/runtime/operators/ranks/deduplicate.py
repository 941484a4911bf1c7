"""Deduplication: the first or the last row of each key, by processing time or by event time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import to_millis
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.table.plan.time_attributes import is_proctime
from firesteel.table.runtime.operators.ranks.changes import INSERT, UPDATE_AFTER, UPDATE_BEFORE, Changes
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec, identity_of
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["KeepFirstSpec", "KeepLastSpec", "times_of"]


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

    def create(self, runtime: OperatorRuntime) -> KeepLastOperator:
        """Returns a new operator for one subtask."""
        return KeepLastOperator(self)


class KeepLastOperator(KeyedColumnOperator):
    """State of a key: the time of its row, and the row itself only where it is needed.

    It is needed for UPDATE_BEFORE. By processing time it is also needed to leave out rows that change nothing, which
    is done as in Flink only if state does not expire.
    """

    def __init__(self, spec: KeepLastSpec) -> None:
        super().__init__(spec.keys, "last-row", spec.ttl_ms)
        self._spec = spec
        self._codec = RowCodec(spec.row_type)
        self._compares = spec.rowtime is None and not spec.ttl_ms
        self._keeps_rows = spec.update_before or self._compares
        compared = [i for i, part in enumerate(spec.row_type.fields) if not is_proctime(part.type)]
        self._compared = None if len(compared) == len(spec.row_type.fields) else compared
        self._identity = identity_of([spec.row_type.fields[i].type for i in compared])

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the changes of a batch."""
        import numpy as np

        spec = self._spec
        codes, keys = self._keys_of(batch)
        times = np.zeros(len(batch), np.int64) if spec.rowtime is None else times_of(batch, spec.rowtime)
        if spec.per_row:
            chosen = np.arange(len(batch))
        elif spec.rowtime is None:
            chosen = np.empty(len(keys), np.int64)
            chosen[codes] = np.arange(len(batch))
            chosen.sort()
        else:
            order = np.lexsort((times, codes))
            grouped = codes[order]
            chosen = np.sort(order[np.r_[grouped[1:] != grouped[:-1], True]])
        before = self._objects.load(keys)
        if self._keeps_rows:
            self._process_rows(batch, chosen, codes, times, keys, before)
        else:
            self._process_times(batch, chosen, codes, times, keys, before)

    def _process_times(self, batch: ColumnBatch, chosen: Any, codes: Any, times: Any, keys: Any, before: Any) -> None:
        """Without rows in the state: what is emitted are rows of the batch."""
        import numpy as np

        latest = [None if found is None else found[0] for found in before]
        kept, kinds = [], []
        rows = zip(chosen.tolist(), codes[chosen].tolist(), times[chosen].tolist(), strict=True)
        for index, code, time in rows:
            known = latest[code]
            if known is None or known <= time:
                kept.append(index)
                kinds.append(INSERT if known is None else UPDATE_AFTER)
                latest[code] = time
        for code in set(codes[np.array(kept, np.int64)].tolist()):
            self._objects.store(keys[code], (latest[code],))
        if kept:
            taken = batch.data if len(kept) == len(batch) else batch.take(np.array(kept, np.int64)).data
            changes = np.array(kinds, np.int8)
            self.emit(ColumnBatch(taken, changes if changes.any() else None, self._spec.output_rowtime))

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
