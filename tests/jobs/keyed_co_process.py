"""B1, B2, B13: an outer join per key with a KeyedCoProcessFunction.

Which input comes first is left open, so both sides are kept in list state and joined by an event-time timer. The
watermark of an operator with two inputs is that of the slower one: both sides are complete when it fires.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.common import WatermarkStrategy
from firesteel.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ListStateDescriptor

ORDERS = [("anna", "pen", 10), ("ben", "ink", 20), ("anna", "cap", 35), ("cleo", "mug", 40)]
PAYMENTS = [("anna", 5, 30), ("dora", 9, 15), ("ben", 2, 25), ("anna", 7, 36)]
END = 100


class OuterJoin(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.orders = runtime_context.get_list_state(ListStateDescriptor("orders", None))
        self.payments = runtime_context.get_list_state(ListStateDescriptor("payments", None))

    def process_element1(self, value: Any, ctx: Any) -> None:
        self.orders.add((ctx.timestamp(), value[1]))
        ctx.timer_service().register_event_time_timer(END)

    def process_element2(self, value: Any, ctx: Any) -> None:
        self.payments.add((ctx.timestamp(), value[1]))
        ctx.timer_service().register_event_time_timer(END)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        orders = [item for _, item in sorted(self.orders.get())]
        payments = [amount for _, amount in sorted(self.payments.get())]
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name, orders, payments
        self.orders.clear()
        self.payments.clear()


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[2])
    orders = env.from_collection(ORDERS).assign_timestamps_and_watermarks(strategy)
    # out of order, so monotonous watermarks would be wrong: only the end of the input counts
    none = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, _: value[2])
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(none)
    by_customer = orders.connect(payments).key_by(lambda order: order[0], lambda payment: payment[0])
    return by_customer.process(OuterJoin())
