"""Event time that does not depend on the clock: some records carry the watermark."""

from __future__ import annotations

from typing import Any

from firesteel.common import WatermarkStrategy
from firesteel.common.watermark_strategy import WatermarkGenerator
from firesteel.datastream import DataStream, StreamExecutionEnvironment

__all__ = ["WATERMARK", "timeline"]

WATERMARK = "watermark"


class _FromRecords(WatermarkGenerator):
    """A record ``(WATERMARK, None, t)`` advances event time to t."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event[0] == WATERMARK:
            output.emit_watermark(event[2])

    def on_periodic_emit(self, output: Any) -> None:
        """Nothing: this generator is punctuated."""


def timeline(env: StreamExecutionEnvironment, records: list[tuple[Any, Any, int]]) -> DataStream:
    """A stream of ``(key, value, timestamp)`` with the watermarks that ``(WATERMARK, None, time)`` say."""
    strategy = WatermarkStrategy.for_generator(_FromRecords).with_timestamp_assigner(lambda record, _: record[2])
    stream = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
    return stream.filter(lambda record: record[0] != WATERMARK).set_parallelism(1)
