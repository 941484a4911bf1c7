"""Deduplication by event time, ascending: the earliest row of each key, when no earlier one can come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.table.runtime.operators.ranks.deduplicate import times_of
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator, objects_of
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["EarliestRowSpec"]


@dataclass(frozen=True)
class EarliestRowSpec(OperatorSpec):
    """Emits the earliest row of each key once the watermark has reached it; late rows are dropped."""

    keys: tuple[int, ...]
    row_type: RowType
    rowtime: int
    output_rowtime: int | None = None
    ttl_ms: int = 0

    def create(self, runtime: OperatorRuntime) -> EarliestRowOperator:
        """Returns a new operator for one subtask."""
        return EarliestRowOperator(self)


class EarliestRowOperator(KeyedColumnOperator):
    """State of a key: whether its row was emitted, and until then the row with its time."""

    def __init__(self, spec: EarliestRowSpec) -> None:
        super().__init__(spec.keys, "emitted", spec.ttl_ms)
        self._spec = spec
        self._codec = RowCodec(spec.row_type)
        self._due: list[tuple[Any, ...]] = []

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._waiting = objects_of(context, "waiting", 0)
        self._timers = context.timer_service("earliest-row", self)
        self._dropped = context.counter("numLateRecordsDropped")

    def process_columns(self, batch: ColumnBatch) -> None:
        """Keeps the earliest row of each key."""
        import numpy as np

        times = times_of(batch, self._spec.rowtime)
        on_time = np.flatnonzero(times >= self._timers.current_watermark)
        if len(on_time) < len(batch):
            self._dropped.inc(len(batch) - len(on_time))
            if not len(on_time):
                return
            batch, times = batch.take(on_time), times[on_time]
        codes, keys = self._keys_of(batch)
        order = np.lexsort((np.arange(len(batch)), times, codes))
        grouped = codes[order]
        earliest = order[np.r_[True, grouped[1:] != grouped[:-1]]]
        emitted, waiting = self._objects.load(keys), self._waiting.load(keys)
        better = [
            index
            for index, code, time in zip(
                earliest.tolist(), codes[earliest].tolist(), times[earliest].tolist(), strict=True
            )
            if emitted[code] is None and (waiting[code] is None or time < waiting[code][0])
        ]
        if not better:
            return
        chosen = np.sort(np.array(better, np.int64))
        rows = self._codec.decode(batch.take(chosen).data)
        for row, code, time in zip(rows, codes[chosen].tolist(), times[chosen].tolist(), strict=True):
            self._backend.key = keys[code]
            if waiting[code] is not None:
                self._timers.delete_event_time_timer(None, waiting[code][0])
            self._timers.register_event_time_timer(None, time)
            self._waiting.store(keys[code], (time, row))

    def fire_timers(self, timestamp: int) -> bool:
        """Emits the rows that are due."""
        done = self._timers.advance_watermark(timestamp)
        if self._due:
            rows, self._due = self._due, []
            self.emit(ColumnBatch(self._codec.encode(rows), None, self._spec.output_rowtime))
        return done

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """No earlier row of the key can come."""
        (found,) = self._waiting.load([key])
        self._due.append(found[1])
        self._waiting.store(key, None)
        self._objects.store(key, True)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Never called: there are no such timers."""
