"""Aggregations in bundles: before the exchange, salted and in mini-batches, of records and of accumulators.

How many results a key has depends on the bundles. So only the last one of each key counts: a timer emits it at the end
of event time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.common import Types
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.runtime.model.elements import MAX_WATERMARK

RECORDS = [("hot" if number % 2 else f"cold {number % 5}", number) for number in range(40)]


class Mean(AggregateFunction):
    """Has a list as accumulator, which it changes."""

    def create_accumulator(self) -> list[Any]:
        return ["", 0, 0]

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator[0] = value[0]
        accumulator[1] += value[1]
        accumulator[2] += 1
        return accumulator

    def get_result(self, accumulator: list[Any]) -> Any:
        return accumulator[0], round(accumulator[1] / accumulator[2], 3)

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        acc_a[1] += acc_b[1]
        acc_a[2] += acc_b[2]
        return acc_a


class Last(KeyedProcessFunction):
    """Emits the last record of each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.last.update(value)
        ctx.timer_service().register_event_time_timer(MAX_WATERMARK)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield self.last.value()


def build(env: StreamExecutionEnvironment) -> DataStream:
    row = Types.TUPLE([Types.STRING(), Types.INT()])
    keyed = env.from_collection(RECORDS, row).key_by(lambda record: record[0], Types.STRING())

    def add(one: Any, other: Any) -> Any:
        return one[0], one[1] + other[1]

    results = {
        "local and global": keyed.pre_aggregate(add, max_records=7),
        "accumulators": keyed.pre_aggregate(Mean(), max_records=5),
        "salted": keyed.salted_aggregate(add, 3, max_records=6),
        "salted accumulators": keyed.salted_aggregate(Mean()),
        "mini-batches": keyed.mini_batch_aggregate(add, max_records=4),
        "mini-batches of accumulators": keyed.mini_batch_aggregate(Mean()),
    }
    labelled = [stream.map(lambda value, name=name: (name, *value)) for name, stream in results.items()]
    return labelled[0].union(*labelled[1:]).key_by(lambda result: result[:2]).process(Last())
