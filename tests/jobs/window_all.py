"""B7: windows over the whole stream, whatever the key, after a parallel operator: reduce, aggregate, process, apply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common.time import Time
from firesteel.datastream import (
    AggregateFunction,
    AllWindowFunction,
    DataStream,
    ProcessAllWindowFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.window import TumblingEventTimeWindows
from tests.support.jobs.punctuated import WATERMARK, timeline

RECORDS = [("a", 1, 3), ("b", 2, 5), ("c", 4, 14), (WATERMARK, None, 9), ("a", 8, 11), ("b", 16, 27)]


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Keys(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield context.window().start, sorted(key for key, _, _ in elements)


class Largest(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        yield window.end, max(value for _, value, _ in inputs)


def build(env: StreamExecutionEnvironment) -> DataStream:
    # as parallel as the job: the window gets what several subtasks send, and the smallest of their watermarks
    spread = timeline(env, RECORDS).rebalance().map(lambda record: record)
    windows = spread.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    streams = {
        "reduce": windows.reduce(lambda a, b: ("*", a[1] + b[1], 0)).map(lambda record: record[1]),
        "aggregate": windows.aggregate(Count()),
        "process": windows.process(Keys()),
        "apply": windows.apply(Largest()),
    }
    labelled = [stream.map(lambda value, name=name: (name, value)) for name, stream in streams.items()]
    return labelled[0].union(*labelled[1:])
