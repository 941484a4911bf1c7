"""Base classes of joins by key."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import TwoInputColumnOperator
from firesteel.table.runtime.operators.joins.output import Pairs

__all__ = ["JoinOperator", "TimedRowJoinOperator"]


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
    """A join that keeps rows as tuples, and has timers by key."""

    timers_name: str

    def __init__(self, spec: Any):
        self._spec = spec

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._timers = context.timer_service(self.timers_name, self)
        spec = self._spec
        self._out = Pairs(spec.left, spec.right, spec.row_type, spec.rowtime)

    def fire_timers(self, timestamp: int) -> bool:
        fired = self._timers.advance_watermark(timestamp)
        self.flush()
        return fired

    @abstractmethod
    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """A timer of a key is due."""

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """A timer of a key is due in processing time."""

    def flush(self) -> None:
        """Emits what there is."""
        batch = self._out.take()
        if batch is not None:
            self.emit(batch)
