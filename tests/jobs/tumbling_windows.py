"""B7: tumbling event-time windows over out-of-order records: aggregate, also with a process function, reduce, apply.

A window fires when the watermark reaches its last millisecond. Watermarks 9 and 25 fire [0, 10) and then [10, 20); the
end of the input fires the rest.

As a batch the end of a key's records fires all its windows, and those records come in the order of their time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common.time import Time
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.datastream.window import TumblingEventTimeWindows
from tests.support.jobs.punctuated import WATERMARK, timeline

RECORDS = [
    ("a", 1, 8),
    ("b", 10, 3),
    ("a", 2, 2),
    ("a", 4, 14),  # early for the watermark, kept for [10, 20)
    (WATERMARK, None, 8),
    ("b", 20, 9),  # behind nothing: [0, 10) is still open at watermark 8
    (WATERMARK, None, 9),
    ("a", 8, 10),
    ("c", 100, 19),
    (WATERMARK, None, 25),
    ("a", 16, 26),
    ("b", 40, 31),
]


class Total(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + value[1]

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Describe(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        (total,) = elements
        # the watermark that fired the window, except for the end of the input
        at = "end" if context.current_watermark() > 1000 else context.current_watermark()
        yield key, [context.window().start, context.window().end], total, at


class Values(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [(key, window.max_timestamp(), [value for _, value, _ in inputs])]


def build(env: StreamExecutionEnvironment) -> DataStream:
    windows = (
        timeline(env, RECORDS)
        .key_by(lambda record: record[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    )
    streams = {
        "aggregate": windows.aggregate(Total()),
        "aggregate and process": windows.aggregate(Total(), Describe()),
        "reduce": windows.reduce(lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2]))),
        "apply": windows.apply(Values()),
    }
    labelled = [stream.map(lambda value, name=name: (name, value)) for name, stream in streams.items()]
    return labelled[0].union(*labelled[1:])
