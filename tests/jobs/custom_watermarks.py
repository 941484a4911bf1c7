"""B14: a custom punctuated generator and the built-in strategies.

What a function sees as the watermark is what was emitted before its record. As a batch that is none:
timestamps count, but watermarks come from the end of the input alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.time import Time
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkGenerator
from firesteel.datastream import DataStream, ProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows

READINGS = [
    ("s", 1, 10),
    ("s", 2, 25),
    ("flush", 3, 20),
    ("s", 4, 26),
    ("flush", 5, 40),
    ("flush", 6, 30),
    ("s", 7, 50),
]


class OnFlush(WatermarkGenerator):
    """A watermark only with "flush", at that record's time; a later one that goes back is ignored."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event[0] == "flush":
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


class Field(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


class Watch(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        watermark = ctx.timer_service().current_watermark()
        yield "punctuated", value[1], ctx.timestamp(), watermark if watermark > 0 else "none"


def build(env: StreamExecutionEnvironment) -> DataStream:
    readings = env.from_collection(READINGS)
    punctuated = readings.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_generator(OnFlush).with_timestamp_assigner(Field())
    )
    watched = punctuated.key_by(lambda reading: 0).map(lambda reading: reading).process(Watch())

    results = [watched]
    strategies = {
        "bounded": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20)),
        "none": WatermarkStrategy.no_watermarks(),
        "idle": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20)).with_idleness(
            Duration.of_seconds(60)
        ),
    }
    for name, strategy in strategies.items():
        # however often watermarks come, nothing is late with these: the end of the input fires what is left
        timed = readings.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Field()))
        windows = timed.key_by(lambda reading: reading[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
        summed = windows.reduce(lambda a, b: (a[0], a[1] + b[1], min(a[2], b[2])))
        results.append(summed.map(lambda value, name=name: (name, *value)))
    return results[0].union(*results[1:])
