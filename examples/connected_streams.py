"""Matches orders with shipments, two streams that come in any order, and reports orders that were never shipped."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from firesteel.common import Duration, WatermarkStrategy
from firesteel.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

Event = tuple[int, int, str]

ORDERS: list[Event] = [(1, 101, "lamp"), (2, 102, "desk"), (4, 103, "chair")]  # hour, order, what
SHIPMENTS: list[Event] = [(9, 103, "Berlin"), (6, 101, "Paris")]


class Match(KeyedCoProcessFunction):
    """Both streams have the same key, the order's number, so they share state and timers."""

    def __init__(self, patience_hours: int):
        self._patience = patience_hours * 3_600_000

    def open(self, runtime_context: RuntimeContext) -> None:
        self._order = runtime_context.get_state(ValueStateDescriptor("order"))
        self._shipment = runtime_context.get_state(ValueStateDescriptor("shipment"))

    def process_element1(self, value: Event, ctx: KeyedCoProcessFunction.Context) -> Iterable[str]:
        self._order.update(value)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + self._patience)
        yield from self._matched()

    def process_element2(self, value: Event, ctx: KeyedCoProcessFunction.Context) -> Iterable[str]:
        self._shipment.update(value)
        yield from self._matched()

    def _matched(self) -> Iterable[str]:
        order, shipment = self._order.value(), self._shipment.value()
        if order and shipment:
            yield f"order {order[1]} ({order[2]}) went to {shipment[2]} after {shipment[0] - order[0]} hours"

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[str]:
        if self._shipment.value() is None:
            yield f"order {ctx.get_current_key()} ({self._order.value()[2]}) was not shipped in time"
        self._order.clear()
        self._shipment.clear()


def with_event_time(stream: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(12))
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda e: e[0] * 3_600_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patience", type=int, default=24, metavar="HOURS", help="time to ship (default: 24)")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    orders, shipments = (with_event_time(env.from_collection(events)) for events in (ORDERS, SHIPMENTS))
    matched = orders.connect(shipments).key_by(lambda order: order[1], lambda shipment: shipment[1])
    matched.process(Match(options.patience)).print()
    env.execute("orders and shipments")


if __name__ == "__main__":
    main()
