"""B6: prices from a broadcast stream, applied to a stream that is not keyed and to one that is.

Which side comes first is left open. So records that came before their rules are kept, and applied later: keyed ones in
keyed state, which the last rule goes over with apply_to_keyed_state where it comes in last, or a timer, when event time
has ended on both sides. The rules of the other stream are only counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.common import WatermarkStrategy
from firesteel.datastream import (
    BroadcastProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor

SALES = [("pen", 3, 10), ("ink", 5, 20), ("pen", 4, 30), ("mug", 1, 40), ("ink", 6, 50), ("cap", 2, 60)]
PRICES = [("pen", 2), ("ink", 7), ("mug", 9), ("pen", 3), ("end", 0)]
END = 100

PRICE = MapStateDescriptor("price")
CHANGES = MapStateDescriptor("changes")
WAITING = ListStateDescriptor("waiting")
UNKNOWN = OutputTag("unknown")


class Revenue(KeyedBroadcastProcessFunction):
    """Prices a key's sales when the last price is known; prices may change until then."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_list_state(WAITING)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        prices = ctx.get_broadcast_state(PRICE)
        if "end" in prices:
            yield from self._priced(ctx.get_current_key(), [value[1]], prices)
        else:
            self.waiting.add(value[1])
        ctx.timer_service().register_event_time_timer(END)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        prices, changes = ctx.get_broadcast_state(PRICE), ctx.get_broadcast_state(CHANGES)
        item, price = value
        changes.put(item, (changes.get(item) or 0) + 1)
        prices.put(item, price)
        results: list[Any] = []
        if item == "end":

            def apply(key: str, state: Any) -> None:
                results.extend(self._priced(key, state.get(), prices))
                state.clear()

            ctx.apply_to_keyed_state(WAITING, apply)
        yield from results

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        key = ctx.get_current_key()
        changes = ctx.get_broadcast_state(CHANGES).get(key)
        yield key, "done", timestamp, ctx.current_watermark() >= END, changes, list(self.waiting.get())

    @staticmethod
    def _priced(item: str, amounts: Any, prices: Any) -> Iterator[Any]:
        for amount in amounts:
            price = prices.get(item)
            yield (UNKNOWN, (item, "unknown", amount)) if price is None else (item, amount, amount * price)


class Known(BroadcastProcessFunction):
    """Lets everything through, and in every subtask counts what prices there are in the end."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value[0], value[1], ctx.timestamp()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        state = ctx.get_broadcast_state(PRICE)
        state[value[0]] = value[1]
        if value[0] == "end":
            del state["mug"]
            yield "prices", *sorted(state.items())


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, _: value[2])
    sales = env.from_collection(SALES).assign_timestamps_and_watermarks(strategy)
    # one subtask, so that the prices keep their order
    prices = env.from_collection(PRICES).set_parallelism(1)
    keyed = sales.key_by(lambda sale: sale[0]).connect(prices.broadcast(PRICE, CHANGES)).process(Revenue())
    known = sales.connect(prices.broadcast(PRICE)).process(Known()).set_parallelism(2)
    return keyed.union(keyed.get_side_output(UNKNOWN), known)
