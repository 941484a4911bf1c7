"""Interval join: pairs of rows whose times are within an interval of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import distinct_keys, state_key
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.table.bound.nodes import Expression
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.plan.nodes import JoinKind
from firesteel.table.runtime.operators.joins.interval_columns import ColumnIntervalJoinOperator
from firesteel.table.runtime.operators.joins.key_timers import Timer
from firesteel.table.runtime.operators.joins.operator import TimedRowJoinOperator, stored
from firesteel.table.runtime.operators.joins.sides import has_null_key
from firesteel.table.runtime.operators.keyed_objects import keyed_objects
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["STATES", "TIMERS", "SqlIntervalJoinOperator", "SqlIntervalJoinSpec"]

STATES = ("left-cache", "right-cache")
TIMERS = "interval-join-timers"
_ROWS, _TIMER = 0, 1
"""Of the cache of a key: rows by time, each with whether it was joined; and the time of the timer that removes them."""


@dataclass(frozen=True)
class SqlIntervalJoinSpec(OperatorSpec):
    """Joins rows of two keyed streams for which ``right + lower_ms <= left <= right + upper_ms``."""

    left: RowType
    right: RowType
    keys: tuple[tuple[int, ...], tuple[int, ...]]
    null_safe: tuple[bool, ...]
    times: tuple[int, int]
    """The columns with the times; not read in processing time."""
    lower_ms: int
    upper_ms: int
    is_event_time: bool
    kind: JoinKind
    condition: Expression | None
    row_type: RowType
    rowtime: int | None
    session: Session

    def create(self, runtime: OperatorRuntime) -> SqlIntervalJoinOperator | ColumnIntervalJoinOperator:
        """Returns a new operator for one subtask."""
        one_key = runtime.execution.one_key_at_a_time
        if self.is_event_time and runtime.keeps_objects and not one_key:
            return ColumnIntervalJoinOperator(self)
        return SqlIntervalJoinOperator(self, one_key_at_a_time=one_key)


class SqlIntervalJoinOperator(TimedRowJoinOperator):
    """Joins each row with those of the other side that are kept, and keeps it until no row can match it.

    Rows are kept, removed and padded when Flink's TimeIntervalJoin does so. Rows behind the watermark are joined with
    what is still there.
    """

    timers_name = TIMERS

    def __init__(self, spec: SqlIntervalJoinSpec, *, one_key_at_a_time: bool):
        super().__init__(spec, one_key_at_a_time=one_key_at_a_time)
        self._condition = None if spec.condition is None else compile_row([spec.condition], spec.session)
        # of each side: how much later than a row of the other side its rows may be
        self._sizes = (-spec.lower_ms, spec.upper_ms)
        self._is_outer = (spec.kind.keeps_left, spec.kind.keeps_right)
        self._delay = max(*self._sizes, 0)
        # per subtask, not per key: which rows of each side have expired for sure
        self._expired = [0, 0]

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._caches = tuple(keyed_objects(self._backend, name) for name in STATES)
        if self._spec.is_event_time:
            self._register_restored()

    def _register_restored(self) -> None:
        """Registers the timers of caches."""
        for side, cache in enumerate(self._caches):
            for key, (_, timer) in stored(cache):
                if timer is not None:
                    self.register_event_time(timer, key, side)

    # -- rows --------------------------------------------------------------------------------------------------

    def process_side(self, side: int, batch: ColumnBatch) -> None:
        spec = self._spec
        now = self._operator_time()
        if spec.is_event_time:
            times = rowtime_millis(ColumnBatch(batch.data, None, spec.times[side])).tolist()
        else:
            times = [now] * len(batch)
        codes, values = distinct_keys(batch, spec.keys[side])
        keys = list(map(state_key, values))
        is_null = [has_null_key(value, spec.null_safe) for value in values]
        own = [found or [{}, None] for found in self._caches[side].load(keys)]
        other = [found or [{}, None] for found in self._caches[1 - side].load(keys)]
        rows = self._out.codecs[side].decode(batch.data)
        changed: tuple[set[int], set[int]] = (set(), set())
        for row, time, code in zip(rows, times, codes.tolist(), strict=True):
            joined, is_touched = self._match(side, row, time, now, other[code], is_null[code])
            if is_touched:
                changed[1].add(code)
            if now < time + self._sizes[side]:
                changed[0].add(code)
                self._keep(side, row, time, joined, keys[code], own[code])
            elif not joined and self._is_outer[side]:
                self._out.pad(side, row)
        for cache, codes_of, kept in (
            (self._caches[side], changed[0], own),
            (self._caches[1 - side], changed[1], other),
        ):
            cache.store_all([keys[code] for code in codes_of], [_or_none(kept[code]) for code in codes_of])
        self.flush()

    def _operator_time(self) -> int:
        if self._spec.is_event_time:
            return max(self._timers.current_watermark, 0)
        return self.context.processing_time()

    def _match(self, side: int, row: Any, time: int, now: int, other: Any, is_null: bool) -> tuple[bool, bool]:
        """Joins a row with those of its key of the other side: whether there are any, and whether their cache changed.

        Removes rows of the other side that no row can match any more. A null key matches nothing.
        """
        # a row of the other side matches up to here
        latest = time + self._sizes[side]
        earliest = time - self._sizes[1 - side]
        if self._expired[1 - side] >= latest:
            return False, False
        self._expired[1 - side] = expired = self._expiration(now, 1 - side)
        cache, marks = other[_ROWS], self._is_outer[1 - side]
        joined = is_touched = False
        for other_time in list(cache):
            if earliest <= other_time <= latest and not is_null:
                for entry in cache[other_time]:
                    if self._matches(side, row, entry[0]):
                        self._out.add(side, row, entry[0])
                        joined = True
                        if marks and not entry[1]:
                            entry[1] = is_touched = True
            if other_time <= expired:
                self._remove(1 - side, cache, other_time)
                is_touched = True
        return joined, is_touched

    def _keep(self, side: int, row: Any, time: int, joined: bool, key: Any, own: Any) -> None:
        own[_ROWS].setdefault(time, []).append([row, joined])
        if own[_TIMER] is None:
            self._register(side, time, key, own)

    def _matches(self, side: int, row: Any, other: Any) -> bool:
        if self._condition is None:
            return True
        return self._condition(row + other if side == 0 else other + row)[0] is True

    def _remove(self, side: int, cache: dict[int, list[Any]], time: int) -> None:
        for row, joined in cache.pop(time):
            if not joined and self._is_outer[side]:
                self._out.pad(side, row)

    # -- expiry ------------------------------------------------------------------------------------------------

    def _expiration(self, now: int, side: int) -> int:
        """The time up to which rows of a side match no row that is still to come."""
        return now if now == MAX_WATERMARK else now - self._sizes[side] - 1

    def _register(self, side: int, time: int, key: Any, own: Any) -> None:
        own[_TIMER] = timer = time + self._sizes[side] + 1
        if self._spec.is_event_time:
            self.register_event_time(timer, key, side)
        else:
            self._backend.key = key
            self._timers.register_processing_time_timer(None, timer)

    def process_watermark(self, timestamp: int) -> None:
        while not self.fire_timers(timestamp):
            pass
        # rows are emitted that are so much older
        behind = timestamp - self._delay if self._spec.is_event_time and timestamp != MAX_WATERMARK else timestamp
        self.context.emit_watermark(behind)

    def on_timers(self, timers: Sequence[Timer]) -> None:
        """Removes the rows of keys that no row can match any more."""
        now = self._operator_time()
        for side in (1, 0):
            times: dict[Any, set[int]] = {}
            for time, key, of_side in timers:
                if of_side is None or of_side == side:
                    times.setdefault(key, set()).add(time)
            keys = list(times)
            changed = []
            for key, own in zip(keys, self._caches[side].load(keys), strict=True):
                if own is not None and own[_TIMER] in times[key]:
                    changed.append((key, self._without_expired(side, key, own, now)))
            self._caches[side].store_all([key for key, _ in changed], [own for _, own in changed])

    def _without_expired(self, side: int, key: Any, own: Any, now: int) -> Any:
        """What is left of the cache of a key; None if nothing is."""
        self._expired[side] = expired = self._expiration(now, side)
        cache = own[_ROWS]
        for time in [time for time in cache if time <= expired]:
            self._remove(side, cache, time)
        own[_TIMER] = None
        if not cache:
            return None
        self._register(side, min(cache), key, own)
        return own


def _or_none(kept: Any) -> Any:
    """A cache; None if it is empty."""
    return kept if kept[_ROWS] or kept[_TIMER] is not None else None
