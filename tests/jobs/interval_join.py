"""B11: interval joins of orders and payments, with bounds before and after, inclusive and exclusive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.common import Duration, WatermarkStrategy
from firesteel.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from firesteel.datastream.functions import ProcessJoinFunction

ORDERS = [("anna", "pen", 10), ("ben", "ink", 20), ("anna", "cap", 13), ("cleo", "mug", 40), ("anna", "hat", 10)]
PAYMENTS = [("anna", 5, 8), ("ben", 2, 25), ("anna", 7, 15), ("anna", 1, 14), ("dora", 9, 15), ("ben", 3, 26)]
EQUAL = OutputTag("equal")


class Pair(ProcessJoinFunction):
    def __init__(self, name: str):
        self.name = name

    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        if left[2] == right[2]:
            yield EQUAL, (f"{self.name}, equal", left[1], right[1])
        assert (ctx.get_left_timestamp(), ctx.get_right_timestamp()) == (left[2], right[2])
        yield self.name, left[0], left[1], right[1], ctx.get_timestamp()


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(30)).with_timestamp_assigner(
        lambda record, _: record[2]
    )
    orders = env.from_collection(ORDERS).assign_timestamps_and_watermarks(strategy).key_by(lambda order: order[0])
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy).key_by(lambda paid: paid[0])
    paid = orders.interval_join(payments).between(-2, 5).process(Pair("within"))
    after = (
        orders.interval_join(payments)
        .between(Duration.of_millis(0), Duration.of_millis(5))
        .lower_bound_exclusive()
        .upper_bound_exclusive()
        .process(Pair("after"))
    )
    itself = orders.interval_join(orders).between(0, 0).process(Pair("itself"))
    return paid.union(after, itself, itself.get_side_output(EQUAL))
