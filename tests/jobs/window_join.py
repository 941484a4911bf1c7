"""B11: orders joined with payments in tumbling windows, and an outer join of both in session windows by co-group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.time import Time
from firesteel.datastream import CoGroupFunction, DataStream, StreamExecutionEnvironment
from firesteel.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

ORDERS = [("anna", "pen", 10), ("ben", "ink", 20), ("anna", "cap", 13), ("cleo", "mug", 40), ("anna", "hat", 31)]
PAYMENTS = [("anna", 5, 18), ("ben", 2, 25), ("anna", 7, 15), ("ben", 1, 31), ("dora", 9, 15)]


class OuterJoin(CoGroupFunction):
    def co_group(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        for order in sorted(first) or [(None, None)]:
            for payment in sorted(second) or [(None, None)]:
                yield "outer", order[0] or payment[0], order[1], payment[1]


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(30)).with_timestamp_assigner(
        lambda record, _: record[2]
    )
    orders = env.from_collection(ORDERS).assign_timestamps_and_watermarks(strategy)
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
    joined = (
        orders.join(payments)
        .where(lambda order: order[0])
        .equal_to(lambda payment: payment[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .apply(lambda order, payment: ("join", order[0], order[1], payment[1]))
    )
    outer = (
        orders.co_group(payments)
        .where(lambda order: order[0])
        .equal_to(lambda payment: payment[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(7)))
        .apply(OuterJoin())
    )
    return joined.union(outer)
