"""Windows that are aggregated before the exchange, beside plain ones: the results are the same, late ones too.

[0, 10) fires at watermark 9, and again with each late record until watermark 14 takes it away.

As a batch nothing is late, as there is no watermark before the end: every window fires once, with all its records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common.time import Time
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from tests.support.jobs.punctuated import WATERMARK, timeline

LATE = OutputTag("late")

RECORDS = [
    ("hot", 1, 3),
    ("cold", 10, 4),
    ("hot", 2, 5),
    ("hot", 3, 12),
    ("hot", 4, 8),
    (WATERMARK, None, 9),
    ("hot", 5, 7),  # late by two: fires again
    ("hot", 6, 2),  # and again
    ("hot", 7, 11),
    ("cold", 20, 13),
    (WATERMARK, None, 14),
    ("hot", 8, 9),  # too late by one
    ("hot", 9, 14),  # behind the watermark, but its windows are open
    ("cold", 30, 21),
    (WATERMARK, None, 30),
    ("cold", 40, 2),  # too late by far
]


class Total(AggregateFunction):
    """Has a list as accumulator, which it changes."""

    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def add(self, value: Any, accumulator: list[int]) -> list[int]:
        accumulator[0] += value[1]
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: list[int]) -> Any:
        return tuple(accumulator)

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


class Named(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, name: str):
        self.name = name

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for element in elements:
            yield self.name, key, context.window().start, element


def build(env: StreamExecutionEnvironment) -> DataStream:
    keyed = timeline(env, RECORDS).key_by(lambda record: record[0])
    tumbling = TumblingEventTimeWindows.of(Time.milliseconds(10))
    sliding = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4))

    def add(one: Any, other: Any) -> Any:
        return one[0], one[1] + other[1], max(one[2], other[2])

    lenient = keyed.window(tumbling).allowed_lateness(5).side_output_late_data(LATE)
    totals = lenient.pre_aggregate(Total(), Named("lateness 5"))
    late = totals.get_side_output(LATE).map(lambda record: ("late", *record))
    sums = keyed.window(sliding).pre_aggregate(add).map(lambda record: ("sliding", record[0], record))
    everything = keyed._origin_stream.window_all(tumbling).pre_aggregate(Total())
    plain = keyed.window(sliding).reduce(add).map(lambda record: ("plain sliding", record[0], record))
    return totals.union(late, sums, everything.map(lambda total: ("all", total)), plain)


ACCUMULATORS = {"numLateRecordsDropped": 8}
"""Each of the sliding windows drops hot at 2 and cold at 2, that of all keys hot at 7, 2 and 9 and cold at 2."""
BATCH_ACCUMULATORS = {"numLateRecordsDropped": 0}


def key_of(result: Any) -> Any:
    return result[0], result[1]
