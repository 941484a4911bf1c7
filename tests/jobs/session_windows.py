"""B7: session windows with a fixed gap of 10 ms and with a gap from the record; sessions that touch merge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common.time import Time
from firesteel.datastream import AggregateFunction, DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)
from tests.support.jobs.punctuated import WATERMARK, timeline

RECORDS = [
    ("a", 1, 0),
    ("a", 2, 16),
    ("b", 30, 5),
    ("a", 4, 8),  # joins [0, 10) and [16, 26)
    (WATERMARK, None, 24),
    ("a", 8, 26),  # touches [0, 26), so [0, 36)
    ("b", 5, 40),
    (WATERMARK, None, 40),
    ("a", 16, 60),
]


class Sum(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: Any, accumulator: list[int]) -> list[int]:
        return [*accumulator, value[1]]

    def get_result(self, accumulator: list[int]) -> int:
        return sum(accumulator)

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


class Describe(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, name: str):
        self.name = name

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        window = context.window()
        yield self.name, key, window.start, window.end, list(elements)


class ValueIsGap(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return int(element[1])


def build(env: StreamExecutionEnvironment) -> DataStream:
    keyed = timeline(env, RECORDS).key_by(lambda record: record[0])
    fixed = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(10))).aggregate(Sum(), Describe("fixed"))
    dynamic = keyed.window(DynamicEventTimeSessionWindows.with_dynamic_gap(ValueIsGap()))
    return fixed.union(dynamic.aggregate(Sum(), Describe("dynamic")))
