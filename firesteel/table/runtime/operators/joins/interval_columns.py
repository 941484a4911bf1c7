"""Interval join in event time on columns of all keys: batches are joined, and rows expire, all keys at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.model.elements import MAX_WATERMARK
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
    from firesteel.table.runtime.operators.joins.interval import SqlIntervalJoinSpec

__all__ = ["ColumnIntervalJoinOperator"]

_TIMES, _JOINED = "times", "joined"


class _Cache(KeyedRows):
    """The rows of one side with their times, and whether they were joined; for each key the time to look at its rows.

    What is stored of a key is what SqlIntervalJoinOperator stores.
    """

    def __init__(self, row_type: RowType):
        super().__init__(row_type, (_TIMES, _JOINED))
        self.timers = KeyTimers(len(self.keys))
        self.is_changed = np.zeros(len(self.keys), bool)

    def reserve(self, capacity: int) -> None:
        super().reserve(capacity)
        self.timers.reserve(capacity)
        self.is_changed = grown(self.is_changed, capacity)

    def sizes(self, keys: Any) -> Any:
        return super().sizes(keys) + self.timers.is_set[keys]

    def register(self, keys: Any, times: Any) -> None:
        """Sets the timers of keys."""
        self.timers.set(keys, times)
        self.is_changed[keys] = True

    def due(self, watermark: int) -> Any:
        """Takes the timers that the watermark has reached: their keys."""
        due = self.timers.due(watermark)
        self.is_changed[due] = True
        return due

    def load(self, keys: Any, stored: Sequence[Any]) -> None:
        entries = [
            (key, time, row, joined)
            for key, (rows, _) in zip(keys.tolist(), stored, strict=True)
            for time, found in rows.items()
            for row, joined in found
        ]
        if entries:
            of_keys, times, rows, joined = zip(*entries, strict=True)
            records = self.append(self.codec.encode(rows), np.array(of_keys, np.int64))
            self.columns[_TIMES][records] = times
            self.columns[_JOINED][records] = joined
        self.timers.load(keys.tolist(), [timer for _, timer in stored])

    def entries(self, keys: Any) -> list[Any]:
        positions, records = self.members(keys)
        times = self.columns[_TIMES][records].tolist()
        joined = (self.columns[_JOINED][records] != 0).tolist()
        found: list[Any] = [[{}, timer] for timer in self.timers.entries(keys)]
        for position, time, row, was in zip(positions.tolist(), times, self.tuples(records), joined, strict=True):
            found[position][0].setdefault(time, []).append([row, was])
        return found


class ColumnIntervalJoinOperator(JoinOperator):
    """Joins, keeps, removes and pads rows when SqlIntervalJoinOperator does so, which has the rules."""

    def __init__(self, spec: SqlIntervalJoinSpec):
        self._spec = spec
        # of each side: how much later than a row of the other side its rows may be
        self._sizes = (-spec.lower_ms, spec.upper_ms)
        self._is_outer = (spec.kind.keeps_left, spec.kind.keeps_right)
        self._delay = max(*self._sizes, 0)
        self._expired = [0, 0]
        self._watermark = 0
        self._output = JoinOutput(spec.left, spec.right, spec.condition, spec.row_type, spec.session, spec.rowtime)

    def open(self, context: OperatorContext) -> None:
        from firesteel.table.runtime.operators.joins.interval import STATES, TIMERS

        super().open(context)
        if not isinstance(context.backend, ObjectStateBackend):
            raise InvalidProgramError("A join of columns needs a state backend that keeps objects.")
        spec = self._spec
        self._caches = (_Cache(spec.left), _Cache(spec.right))
        types = key_types((spec.left, spec.right), spec.keys)
        self._tables = SideTables(context.backend, STATES, types, self._caches)
        # timers that another backend has stored; here they are part of the caches
        self._timers = context.timer_service(TIMERS, self)

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """A timer of another backend: the caches have it too."""

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Never called: there are no such timers."""

    # -- rows --------------------------------------------------------------------------------------------------

    def process_side(self, side: int, batch: ColumnBatch) -> None:
        if not len(batch):
            return
        spec, now = self._spec, self._watermark
        other = self._caches[1 - side]
        times = rowtime_millis(ColumnBatch(batch.data, None, spec.times[side]))
        latest, earliest = times + self._sizes[side], times - self._sizes[1 - side]
        keys = BatchKeys(batch, spec.keys[side])
        slots = self._tables.lookup(keys)
        row_slots = slots[keys.codes]
        rows, records, gone = self._candidates(side, batch, keys, row_slots, earliest, latest)
        if len(rows):
            rows, records = self._output.filter(side, batch.data, rows, records, other)
        joined = np.zeros(len(batch), bool)
        joined[rows] = True
        if len(records):
            other.columns[_JOINED][records] = 1
            other.is_changed[other.keys[records]] = True
        parts: list[tuple[Any, ...]] = []
        if len(rows):
            parts.append((rows, rows, other.row_numbers(records), 0, np.ones(len(rows), np.int64)))
        is_kept = now < latest
        if self._is_outer[side]:
            padded = np.flatnonzero(~is_kept & ~joined)
            if len(padded):
                parts.append((padded, padded, None, 0, np.ones(len(padded), np.int64)))
        for result in self._output.pairs(side, batch.data, parts, other) if parts else ():
            self.emit(result)
        self._remove(1 - side, gone)
        self._keep(side, batch.data, row_slots, times, joined, is_kept)
        self._tables.release(slots)

    def _candidates(
        self, side: int, batch: ColumnBatch, keys: BatchKeys, row_slots: Any, earliest: Any, latest: Any
    ) -> tuple[Any, Any, Any]:
        """Pairs of rows and records within the bounds, and records that have expired.

        Rows that can match none that is still there are not looked at. The first one that is, of each key, is joined
        with what has expired, too, and removes it.
        """
        other = self._caches[1 - side]
        nothing = np.zeros(0, np.int64)
        visits = latest > self._expired[1 - side]
        if not visits.any():
            return nothing, nothing, nothing
        expired = self._expiration(1 - side)
        first = int(visits.argmax())
        visits = latest > expired
        visits[:first] = False
        visits[first] = True
        self._expired[1 - side] = expired
        visitors = np.flatnonzero(visits)
        positions, records = other.members(row_slots[visitors])
        rows = visitors[positions]
        times = other.columns[_TIMES][records]
        matches = (times >= earliest[rows]) & (times <= latest[rows])
        for column, safe in zip(self._spec.keys[side], self._spec.null_safe, strict=True):
            array = batch.data.column(column)
            if not safe and array.null_count:
                matches &= array.is_valid().to_numpy(zero_copy_only=False)[rows]
        is_gone = times <= expired
        gone = nothing
        if is_gone.any():
            gone = np.unique(records[is_gone])
            first_visit = np.full(keys.count, -1)
            first_visit[keys.codes[visitors[::-1]]] = visitors[::-1]
            matches &= ~is_gone | (rows == first_visit[keys.codes[rows]])
        return rows[matches], records[matches], gone

    def _keep(self, side: int, data: Any, row_slots: Any, times: Any, joined: Any, is_kept: Any) -> None:
        own = self._caches[side]
        kept = np.flatnonzero(is_kept)
        if not len(kept):
            return
        slots = row_slots[kept]
        records = own.append(data if len(kept) == len(times) else data.take(pa.array(kept)), slots)
        own.columns[_TIMES][records] = times[kept]
        own.columns[_JOINED][records] = joined[kept]
        own.is_changed[slots] = True
        untimed = np.flatnonzero(~own.timers.is_set[slots])
        if len(untimed):
            # the time of the first row of each key
            first, found = np.unique(slots[untimed], return_index=True)
            own.register(first, times[kept[untimed[found]]] + self._sizes[side] + 1)

    def _remove(self, side: int, records: Any) -> None:
        """Removes records of a side, and emits those that were never joined."""
        if not len(records):
            return
        cache = self._caches[side]
        if self._is_outer[side]:
            alone = records[cache.columns[_JOINED][records] == 0]
            if len(alone):
                self.emit(self._output.padded(side, cache, cache.row_numbers(alone)))
        cache.is_changed[cache.keys[records]] = True
        cache.remove(records)
        cache.collect_garbage()

    # -- expiry ------------------------------------------------------------------------------------------------

    def _expiration(self, side: int) -> int:
        """The time up to which rows of a side match no row that is still to come."""
        now = self._watermark
        return now if now == MAX_WATERMARK else now - self._sizes[side] - 1

    def fire_timers(self, timestamp: int) -> bool:
        if not self._timers.advance_watermark(timestamp):
            return False
        self._watermark = max(timestamp, 0)
        for side in (1, 0):
            cache = self._caches[side]
            due = cache.due(timestamp)
            if not len(due):
                continue
            self._expired[side] = expired = self._expiration(side)
            _, records = cache.members(due)
            is_gone = cache.columns[_TIMES][records] <= expired
            self._remove(side, records[is_gone])
            positions, left = cache.members(due)
            if len(left):
                starts = np.flatnonzero(np.concatenate([[True], positions[1:] != positions[:-1]]))
                first = np.minimum.reduceat(cache.columns[_TIMES][left], starts)
                cache.register(due[positions[starts]], first + self._sizes[side] + 1)
            self._tables.release(due)
        return True

    def process_watermark(self, timestamp: int) -> None:
        while not self.fire_timers(timestamp):
            pass
        # rows are emitted that are so much older
        self.context.emit_watermark(timestamp if timestamp == MAX_WATERMARK else timestamp - self._delay)
