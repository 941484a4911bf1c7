"""ORDER BY a time attribute: rows of event time wait for the watermark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.table.plan.nodes import SortKey
from firesteel.table.runtime.operators.ranks.deduplicate import times_of
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.table.runtime.operators.sort_keys import SortKeys
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["TemporalSortSpec"]


@dataclass(frozen=True)
class TemporalSortSpec(OperatorSpec):
    """Sorts rows by a time attribute, and those of one time by the other keys."""

    row_type: RowType
    order: tuple[SortKey, ...]
    by_rowtime: bool
    output_rowtime: int | None = None

    def create(self, runtime: OperatorRuntime) -> KeyedColumnOperator:
        """Returns a new operator for one subtask."""
        return RowtimeSortOperator(self) if self.by_rowtime else ProctimeSortOperator(self)


class ProctimeSortOperator(KeyedColumnOperator):
    """The rows of a batch have one time."""

    def __init__(self, spec: TemporalSortSpec) -> None:
        super().__init__((), "sort", 0)
        self._order = SortKeys(spec.row_type, spec.order[1:])

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the rows of a batch in order."""
        import numpy as np

        values = self._order.of(batch.data)
        self.emit(batch.take(np.array(sorted(range(len(batch)), key=values.__getitem__), np.int64)))


class RowtimeSortOperator(KeyedColumnOperator):
    """State: rows by time, with what they are sorted by, and the last time that was emitted. Later ones are dropped."""

    def __init__(self, spec: TemporalSortSpec) -> None:
        super().__init__((), "sort", 0)
        self._spec = spec
        self._order = SortKeys(spec.row_type, spec.order[1:])
        self._codec = RowCodec(spec.row_type)
        self._due: list[tuple[Any, ...]] = []

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._timers = context.timer_service("sort", self)
        self._dropped = context.counter("numLateRecordsDropped")

    def process_columns(self, batch: ColumnBatch) -> None:
        """Keeps rows until the watermark has reached them."""
        self._backend.key = ()
        (state,) = self._objects.load([()])
        state = state or ({}, [-(2**63)])
        waiting: dict[int, list[Any]] = state[0]
        last = state[1]
        times = times_of(batch, self._spec.order[0].index).tolist()
        for row, value, time in zip(self._codec.decode(batch.data), self._order.of(batch.data), times, strict=True):
            if time <= last[0]:
                self._dropped.inc()
            elif time in waiting:
                waiting[time].append((value, row))
            else:
                waiting[time] = [(value, row)]
                self._timers.register_event_time_timer(None, time)
        self._objects.store((), state)

    def fire_timers(self, timestamp: int) -> bool:
        """Emits the rows that are due."""
        done = self._timers.advance_watermark(timestamp)
        if self._due:
            rows, self._due = self._due, []
            self.emit(ColumnBatch(self._codec.encode(rows), None, self._spec.output_rowtime))
        return done

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """The rows of a time are complete."""
        (state,) = self._objects.load([key])
        waiting, last = state
        self._due += [row for _, row in sorted(waiting.pop(timestamp, ()), key=lambda entry: entry[0])]
        last[0] = timestamp
        self._objects.store(key, state)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Never called: there are no such timers."""
