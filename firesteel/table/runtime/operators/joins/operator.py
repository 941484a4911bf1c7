"""Base classes of joins by key."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import TwoInputColumnOperator
from firesteel.table.runtime.operators.joins.key_timers import Timer, TimerHeap
from firesteel.table.runtime.operators.joins.output import Pairs
from firesteel.table.runtime.operators.keyed_objects import KeyedObjects

__all__ = ["JoinOperator", "TimedRowJoinOperator", "stored"]

MAX_KEYS = 1024
"""Whose state is read at once when timers are due."""


class JoinOperator(TwoInputColumnOperator):
    """Processes the batches of both sides by one method."""

    def process_columns(self, batch: ColumnBatch) -> None:
        self.process_side(0, batch)

    def process_second_columns(self, batch: ColumnBatch) -> None:
        self.process_side(1, batch)

    @abstractmethod
    def process_side(self, side: int, batch: ColumnBatch) -> None:
        """Processes the rows of a batch of one side, in order."""


class TimedRowJoinOperator(JoinOperator):
    """A join that keeps rows as tuples, and has timers by key.

    In event time what is stored of a key has its timer, and the timers of all keys are in memory too. Those that are
    due are fired many at a time, so that state is read and written for many keys at once. Where the input comes key by
    key, the timer service has the timers.
    """

    timers_name: str

    def __init__(self, spec: Any, *, one_key_at_a_time: bool):
        self._spec = spec
        self._due = None if one_key_at_a_time else TimerHeap()

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        # may have timers that were stored where the timer service had them; they are those of the state
        self._timers = context.timer_service(self.timers_name, self)
        spec = self._spec
        self._out = Pairs(spec.left, spec.right, spec.row_type, spec.rowtime)

    def register_event_time(self, time: int, key: Any, side: int) -> None:
        """Sets a timer of a key."""
        if self._due is not None:
            self._due.add(time, key, side)
        else:
            self._backend.key = key
            self._timers.register_event_time_timer(None, time)

    def fire_timers(self, timestamp: int) -> bool:
        done = self._timers.advance_watermark(timestamp)
        while done and self._due is not None and (due := self._due.due(timestamp, MAX_KEYS)):
            self.on_timers(due)
            done = not self._timers.is_turn_over
        self.flush()
        return done

    @abstractmethod
    def on_timers(self, timers: Sequence[Timer]) -> None:
        """Timers are due; those that are not set any more are ignored."""

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """A timer of the timer service is due."""
        if self._due is None:
            self.on_timers([(timestamp, key, None)])

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """A timer of a key is due in processing time."""
        self.on_timers([(timestamp, key, None)])
        self.flush()

    def flush(self) -> None:
        """Emits what there is."""
        batch = self._out.take()
        if batch is not None:
            self.emit(batch)


def stored(state: KeyedObjects) -> Iterator[tuple[Any, Any]]:
    """All keys and what is stored of them."""
    keys = list(state.keys())
    for start in range(0, len(keys), MAX_KEYS):
        part = keys[start : start + MAX_KEYS]
        yield from zip(part, state.load(part), strict=True)
