"""Temporal join in event time on columns of all keys: all rows that the watermark has reached are joined at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.state.api.backend import ObjectStateBackend
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.runtime.state.columnar.slots import grown
from firesteel.table.runtime.operators.joins.join_output import JoinOutput
from firesteel.table.runtime.operators.joins.key_timers import KeyTimers
from firesteel.table.runtime.operators.joins.keyed_rows import KeyedRows
from firesteel.table.runtime.operators.joins.operator import JoinOperator
from firesteel.table.runtime.operators.joins.side_tables import SideTables, key_types
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.table.runtime.operators.joins.temporal import TemporalJoinSpec

__all__ = ["ColumnTemporalJoinOperator"]

_TIMES, _KINDS = "times", "kinds"
_UPDATE_BEFORE, _DELETE = 1, 3


class _Kept:
    """Rows of the left side that wait, and versions of the right one, of which the last one of a time counts.

    What is stored of a key is what TemporalJoinOperator stores.
    """

    def __init__(self, left: RowType, right: RowType):
        self.waiting = KeyedRows(left, (_TIMES, _KINDS))
        self.versions = KeyedRows(right, (_TIMES, _KINDS))
        self.timers = KeyTimers(len(self.waiting.keys))
        self.is_changed = np.zeros(len(self.waiting.keys), bool)

    def reserve(self, capacity: int) -> None:
        self.waiting.reserve(capacity)
        self.versions.reserve(capacity)
        self.timers.reserve(capacity)
        self.is_changed = grown(self.is_changed, capacity)

    def sizes(self, keys: Any) -> Any:
        return self.waiting.sizes(keys) + self.versions.sizes(keys)

    def release(self, keys: Any) -> None:
        self.waiting.release(keys)
        self.versions.release(keys)

    def add(self, rows: KeyedRows, data: Any, keys: Any, times: Any, kinds: Any) -> None:
        """Adds rows of a side, whose keys are looked at when the watermark reaches their times."""
        records = rows.append(data, keys)
        rows.columns[_TIMES][records] = times
        rows.columns[_KINDS][records] = 0 if kinds is None else kinds
        self.is_changed[keys] = True
        order = np.lexsort((times, keys))
        firsts = np.flatnonzero(np.concatenate([[True], np.diff(keys[order]) != 0]))
        self.timers.set_earliest(keys[order[firsts]], times[order[firsts]])

    def due(self, watermark: int) -> Any:
        """Takes the timers that the watermark has reached: their keys."""
        due = self.timers.due(watermark)
        self.is_changed[due] = True
        return due

    def load(self, keys: Any, stored: Sequence[Any]) -> None:
        numbers = keys.tolist()
        null_row = self.versions.codec.null_row
        waiting = [(key, *entry) for key, (rows, *_) in zip(numbers, stored, strict=True) for entry in rows]
        versions = [
            (key, time, 0 if row is not None else _DELETE, null_row if row is None else row)
            for key, (_, found, *_) in zip(numbers, stored, strict=True)
            for time, row in found.items()
        ]
        for rows, entries in ((self.waiting, waiting), (self.versions, versions)):
            if entries:
                of_keys, times, kinds, tuples = zip(*entries, strict=True)
                records = rows.append(rows.codec.encode(tuples), np.array(of_keys, np.int64))
                rows.columns[_TIMES][records] = times
                rows.columns[_KINDS][records] = kinds
        self.timers.load(numbers, [timer for _, _, timer, *_ in stored])

    def entries(self, keys: Any) -> list[Any]:
        found: list[Any] = [[[], {}, timer] for timer in self.timers.entries(keys)]
        for position, time, kind, row in _listed(self.waiting, keys):
            found[position][0].append((time, kind, row))
        for position, time, kind, row in _listed(self.versions, keys):
            found[position][1][time] = None if kind == _DELETE else row
        return found


def _listed(rows: KeyedRows, keys: Any) -> Any:
    positions, records = rows.members(keys)
    times, kinds = (rows.columns[name][records].tolist() for name in (_TIMES, _KINDS))
    return zip(positions.tolist(), times, kinds, rows.tuples(records), strict=True)


class ColumnTemporalJoinOperator(JoinOperator):
    """Joins and keeps rows when TemporalJoinOperator does so, which has the rules."""

    def __init__(self, spec: TemporalJoinSpec):
        self._spec = spec
        self._output = JoinOutput(spec.left, spec.right, spec.condition, spec.row_type, spec.session, spec.rowtime)

    def open(self, context: OperatorContext) -> None:
        from firesteel.table.runtime.operators.joins.temporal import STATE, TIMERS

        super().open(context)
        if not isinstance(context.backend, ObjectStateBackend):
            raise InvalidProgramError("A join of columns needs a state backend that keeps objects.")
        spec = self._spec
        self._kept = _Kept(spec.left, spec.right)
        types = key_types((spec.left, spec.right), spec.keys)
        self._tables = SideTables(context.backend, [STATE], types, [self._kept])
        # timers that another backend has stored; here they are part of what is kept
        self._timers = context.timer_service(TIMERS, self)

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """A timer of another backend: it is there too."""

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """A timer of a time-to-live that the job had before."""

    def process_side(self, side: int, batch: ColumnBatch) -> None:
        if side == 1 and batch.kinds is not None:
            batch = batch.take(np.flatnonzero(batch.kinds != _UPDATE_BEFORE))
        if not len(batch):
            return
        spec, kept = self._spec, self._kept
        times = rowtime_millis(ColumnBatch(batch.data, None, spec.times[side]))
        keys = BatchKeys(batch, spec.keys[side])
        row_slots = self._tables.lookup(keys)[keys.codes]
        kept.add(kept.waiting if side == 0 else kept.versions, batch.data, row_slots, times, batch.kinds)

    def fire_timers(self, timestamp: int) -> bool:
        if not self._timers.advance_watermark(timestamp):
            return False
        due = self._kept.due(timestamp)
        if len(due):
            self._join(due, timestamp)
            self._tables.release(due)
        return True

    def _join(self, keys: Any, watermark: int) -> None:
        """Joins the rows of keys that the watermark has reached."""
        waiting, versions = self._kept.waiting, self._kept.versions
        positions, records = waiting.members(keys)
        is_due = waiting.columns[_TIMES][records] <= watermark
        version_positions, candidates = versions.members(keys)
        times = versions.columns[_TIMES][candidates]
        if is_due.any():
            rows = records[is_due]
            places = _last_before(version_positions, times, positions[is_due], waiting.columns[_TIMES][rows])
            found = np.where(places >= 0, candidates[places], -1) if len(candidates) else places
            self._emit(rows, found)
            waiting.remove(rows)
            waiting.collect_garbage()
        positions, records = positions[~is_due], records[~is_due]
        if len(records):
            starts = np.flatnonzero(np.concatenate([[True], np.diff(positions) != 0]))
            self._kept.timers.set_earliest(
                keys[positions[starts]], np.minimum.reduceat(waiting.columns[_TIMES][records], starts)
            )
        # the last version that the watermark has reached is that of rows to come
        is_past = times <= watermark
        if is_past.any():
            order = np.lexsort((np.arange(len(times)), times, version_positions))
            order = order[is_past[order]]
            is_last = np.concatenate([np.diff(version_positions[order]) != 0, [True]])
            versions.remove(candidates[order[~is_last]])
            versions.collect_garbage()

    def _emit(self, rows: Any, found: Any) -> None:
        """Emits rows of the left side with their versions."""
        waiting, versions = self._kept.waiting, self._kept.versions
        kinds = waiting.columns[_KINDS][rows].astype(np.int8)
        data = pa.RecordBatch.from_arrays(waiting.rows.take(waiting.row_numbers(rows)), schema=waiting.codec.schema)
        is_found = found >= 0
        is_found[is_found] = versions.columns[_KINDS][found[is_found]] != _DELETE
        places = np.flatnonzero(is_found)
        if len(places):
            places, records = self._output.filter(0, data, places, found[places], versions)
        else:
            records = places
        ones = np.ones(len(rows), np.int64)
        parts: list[tuple[Any, ...]] = []
        if len(places):
            numbers = versions.row_numbers(records)
            parts.append((places, places, numbers, kinds[places], ones[: len(places)]))
        if self._spec.keeps_left:
            is_alone = np.ones(len(rows), bool)
            is_alone[places] = False
            alone = np.flatnonzero(is_alone)
            if len(alone):
                parts.append((alone, alone, None, kinds[alone], ones[: len(alone)]))
        for result in self._output.pairs(0, data, parts, versions) if parts else ():
            self.emit(result)


def _last_before(keys: Any, times: Any, row_keys: Any, row_times: Any) -> Any:
    """For each row the last of the versions of its key up to its time: of one time the last one given. -1 for none.

    >>> _last_before(np.array([0, 0]), np.array([5, 5]), np.array([0, 0, 1]), np.array([4, 5, 9])).tolist()
    [-1, 1, -1]
    """
    count = len(keys)
    is_row = np.concatenate([np.zeros(count, bool), np.ones(len(row_keys), bool)])
    all_keys, all_times = np.concatenate([keys, row_keys]), np.concatenate([times, row_times])
    order = np.lexsort((is_row, all_times, all_keys))
    last = np.maximum.accumulate(np.where(is_row[order], -1, np.arange(len(order))))
    found = np.where(last >= 0, order[last], -1)
    is_same = (last >= 0) & (all_keys[order] == all_keys[found])
    result = np.full(len(order), -1)
    result[order] = np.where(is_same, found, -1)
    return result[count:]
