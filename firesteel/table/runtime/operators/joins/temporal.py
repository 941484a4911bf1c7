"""Temporal join in event time: each row with the version of a table's row that was valid at its time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import distinct_keys, state_key
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.table.bound.nodes import Expression
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.runtime.operators.joins.key_timers import Timer
from firesteel.table.runtime.operators.joins.operator import TimedRowJoinOperator, stored
from firesteel.table.runtime.operators.joins.temporal_columns import ColumnTemporalJoinOperator
from firesteel.table.runtime.operators.keyed_objects import keyed_objects
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["STATE", "TIMERS", "TemporalJoinOperator", "TemporalJoinSpec"]

STATE = "temporal-join"
TIMERS = "temporal-join-timers"
_ROWS, _VERSIONS, _TIMER, _CLEANUP = range(4)
"""Of a key: rows of the left side that wait, with their times and kinds; versions by time, None for a deletion; the
time of the timer; with a time-to-live, the processing time at which all is dropped."""
_UPDATE_BEFORE, _DELETE = 1, 3


@dataclass(frozen=True)
class TemporalJoinSpec(OperatorSpec):
    """Joins rows of the left stream with versions of the right one."""

    left: RowType
    right: RowType
    keys: tuple[tuple[int, ...], tuple[int, ...]]
    times: tuple[int, int]
    keeps_left: bool
    condition: Expression | None
    row_type: RowType
    rowtime: int | None
    session: Session
    ttl_ms: int = 0
    """``table.exec.state.ttl``: how long keys are kept after their last row, up to half as long again; 0 for ever."""

    def create(self, runtime: OperatorRuntime) -> TemporalJoinOperator | ColumnTemporalJoinOperator:
        """Returns a new operator for one subtask."""
        one_key = runtime.execution.one_key_at_a_time
        if runtime.keeps_objects and not one_key and not self.ttl_ms:
            return ColumnTemporalJoinOperator(self)
        return TemporalJoinOperator(self, one_key_at_a_time=one_key)


class TemporalJoinOperator(TimedRowJoinOperator):
    """Keeps rows of the left side until the watermark has reached their time, and versions until all rows that come
    have a later one. Null keys are equal to each other, as in Flink's operator."""

    timers_name = TIMERS

    def __init__(self, spec: TemporalJoinSpec, *, one_key_at_a_time: bool):
        super().__init__(spec, one_key_at_a_time=one_key_at_a_time)
        self._condition = None if spec.condition is None else compile_row([spec.condition], spec.session)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._state = keyed_objects(self._backend, STATE)
        for key, kept in stored(self._state):
            if kept[_TIMER] is not None:
                self.register_event_time(kept[_TIMER], key, 0)

    def process_side(self, side: int, batch: ColumnBatch) -> None:
        spec = self._spec
        times = rowtime_millis(ColumnBatch(batch.data, None, spec.times[side])).tolist()
        codes, values = distinct_keys(batch, spec.keys[side])
        keys = list(map(state_key, values))
        found = [kept or [[], {}, None] for kept in self._state.load(keys)]
        rows = self._out.codecs[side].decode(batch.data)
        kinds = [0] * len(rows) if batch.kinds is None else batch.kinds.tolist()
        first: dict[int, int] = {}
        for row, time, kind, code in zip(rows, times, kinds, codes.tolist(), strict=True):
            kept = found[code]
            if side == 0:
                kept[_ROWS].append((time, kind, row))
            elif kind == _UPDATE_BEFORE:
                continue
            else:
                kept[_VERSIONS][time] = None if kind == _DELETE else row
            if time < first.get(code, time + 1):
                first[code] = time
        for code, time in first.items():
            self._register(found[code], time, keys[code])
            self._keep(found[code], keys[code])
        self._state.store_all([keys[code] for code in first], [found[code] for code in first])

    def _register(self, kept: list[Any], time: int, key: Any) -> None:
        """Has a key looked at when the watermark reaches a time, or the one before which it is looked at anyway."""
        if kept[_TIMER] is None or time < kept[_TIMER]:
            self.register_event_time(time, key, 0)
            kept[_TIMER] = time

    def _keep(self, kept: list[Any], key: Any) -> None:
        """Puts off the time at which a key is dropped, if it would not be there for the whole time-to-live."""
        ttl = self._spec.ttl_ms
        if not ttl:
            return
        now = self.context.processing_time()
        cleanup = kept[_CLEANUP] if len(kept) > _CLEANUP else None
        if cleanup is not None and now + ttl <= cleanup:
            return
        self._backend.key = key
        if cleanup is not None:
            self._timers.delete_processing_time_timer(None, cleanup)
        kept[_CLEANUP:] = [now + ttl * 3 // 2]
        self._timers.register_processing_time_timer(None, kept[_CLEANUP])

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Drops a key, unless the job has no time-to-live any more."""
        if not self._spec.ttl_ms:
            return
        (kept,) = self._state.load([key])
        if kept is not None and kept[_CLEANUP:] == [timestamp]:
            self._state.store_all([key], [None])

    def on_timers(self, timers: Sequence[Timer]) -> None:
        """Joins the rows of keys that the watermark has reached."""
        times: dict[Any, set[int]] = {}
        for time, key, _ in timers:
            times.setdefault(key, set()).add(time)
        keys = list(times)
        changed = []
        for key, kept in zip(keys, self._state.load(keys), strict=True):
            if kept is not None and kept[_TIMER] in times[key]:
                changed.append((key, self._joined(key, kept)))
        self._state.store_all([key for key, _ in changed], [kept for _, kept in changed])

    def _joined(self, key: Any, kept: list[Any]) -> list[Any] | None:
        """Joins the rows of a key: what is left to keep, None for nothing."""
        watermark = self._timers.current_watermark
        versions = kept[_VERSIONS]
        times = sorted(versions)
        due = [entry for entry in kept[_ROWS] if entry[0] <= watermark]
        waiting = [entry for entry in kept[_ROWS] if entry[0] > watermark]
        for time, kind, row in due:
            place = bisect_right(times, time)
            version = versions[times[place - 1]] if place else None
            if version is not None and self._matches(row, version):
                self._out.add(0, row, version, kind)
            elif self._spec.keeps_left:
                self._out.pad(0, row, kind)
        # the last version that the watermark has reached is that of rows to come
        for time in times[: max(bisect_right(times, watermark) - 1, 0)]:
            del versions[time]
        kept[_ROWS] = waiting
        kept[_TIMER] = None
        if waiting:
            self._register(kept, min(entry[0] for entry in waiting), key)
        if not waiting and not versions:
            return None
        self._keep(kept, key)
        return kept

    def _matches(self, row: Any, version: Any) -> bool:
        return self._condition is None or self._condition(row + version)[0] is True
