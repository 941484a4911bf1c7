"""B4: all five kinds of keyed state, with a time-to-live long enough that nothing expires.

There is one function instance for many keys: what is not in state would be shared by the keys of a subtask.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.common import Types
from firesteel.common.time import Time
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

RECORDS = [("a", 3), ("b", 10), ("a", 4), ("a", 3), ("b", 20), ("a", 0), ("b", 10), ("a", 5)]
"""A value of 0 clears the key's state."""


class Average(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        ttl = (
            StateTtlConfig.new_builder(Time.hours(1))
            .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
            .never_return_expired()
            .build()
        )
        descriptors: list[Any] = [
            ValueStateDescriptor("last", Types.INT()),
            ListStateDescriptor("all", Types.INT()),
            MapStateDescriptor("counts", Types.INT(), Types.INT()),
            ReducingStateDescriptor("largest", max, Types.INT()),
            AggregatingStateDescriptor("average", Average(), Types.PICKLED_BYTE_ARRAY()),
        ]
        for descriptor in descriptors:
            descriptor.enable_time_to_live(ttl)
        last, everything, counts, largest, average = descriptors
        self.last = runtime_context.get_state(last)
        self.all = runtime_context.get_list_state(everything)
        self.counts = runtime_context.get_map_state(counts)
        self.largest = runtime_context.get_reducing_state(largest)
        self.average = runtime_context.get_aggregating_state(average)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        key, number = value
        previous = self.last.value()
        if number == 0:
            for state in (self.last, self.all, self.counts, self.largest, self.average):
                state.clear()
        else:
            self.last.update(number)
            self.all.add(number)
            self.counts.put(number, (self.counts.get(number) or 0) + 1)
            self.largest.add(number)
            self.average.add(number)
        yield (
            key,
            previous,
            list(self.all.get()),
            sorted(self.counts.items()),
            self.largest.get(),
            self.average.get(),
        )


def build(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection(RECORDS).key_by(lambda record: record[0]).process(Remember())


def key_of(result: Any) -> Any:
    return result[0]
