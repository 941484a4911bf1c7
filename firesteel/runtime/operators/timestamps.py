"""Assigns timestamps and generates watermarks in the middle of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.runtime.elements import MAX_WATERMARK
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.time.watermark_generation import WatermarkAssigner

__all__ = ["TimestampsAndWatermarksOperator"]


class TimestampsAndWatermarksOperator(StreamOperator):
    """Replaces the timestamps and watermarks that come from upstream, except the end of event time."""

    def __init__(self, watermark_strategy: Any, interval_ms: int):
        self._strategy = watermark_strategy
        self._interval = interval_ms

    def open(self, context: OperatorContext) -> None:
        """Starts the periodic emission."""
        super().open(context)
        self._assigner = WatermarkAssigner(self._strategy, context.processing_time, self._emit, context.emit_watermark)
        self._assigner.add_split("")
        if self._interval > 0:
            context.schedule(context.processing_time() + self._interval, self._on_interval)

    def _emit(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self.context.emit(values, timestamps)  # type: ignore[arg-type]

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Assigns timestamps and hands the records on."""
        self._assigner.process("", values, timestamps)

    def _on_interval(self, now: int) -> None:
        if self._assigner.periodic():
            self.context.emit_idle(self._assigner.idle)
        self.context.schedule(now + self._interval, self._on_interval)

    def process_watermark(self, timestamp: int) -> None:
        """Only the end of event time comes through."""
        if timestamp == MAX_WATERMARK:
            self.context.emit_watermark(timestamp)

    def process_idle(self, idle: bool) -> None:
        """Idleness is judged by this operator's own strategy."""
