"""C4: two keyed stages one behind the other, with keys of several types: order within a key holds through both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

KEYS: list[Any] = ["text", 7, -1, 2.5, True, ("tuple", 1), b"bytes", frozenset({1})]


class Number(KeyedProcessFunction):
    """Numbers the records of each key from 1."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", None))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count = (self.seen.value() or 0) + 1
        self.seen.update(count)
        yield value, count


def build(env: StreamExecutionEnvironment) -> DataStream:
    records = [(key, index) for index in range(4) for key in KEYS]
    first = env.from_collection(records).key_by(lambda record: record[0]).process(Number())
    # the second stage has the same keys elsewhere: by their text
    second = first.key_by(lambda result: repr(result[0][0])).process(Number())
    return second.map(lambda result: (repr(result[0][0][0]), result[0][0][1], result[0][1], result[1]))


def key_of(result: Any) -> Any:
    return result[0]
