"""B7: count windows of 3, and of 3 every 2, per key; what does not fill a window is not emitted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment

RECORDS = [
    ("a", 1),
    ("a", 2),
    ("b", 10),
    ("a", 3),
    ("a", 4),
    ("b", 20),
    ("a", 5),
    ("b", 30),
    ("a", 6),
    ("a", 7),
    ("b", 40),
]


class Values(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, name: str):
        self.name = name

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield self.name, key, [value for _, value in elements]


def build(env: StreamExecutionEnvironment) -> DataStream:
    keyed = env.from_collection(RECORDS).key_by(lambda record: record[0])
    tumbling = keyed.count_window(3).process(Values("3"))
    sliding = keyed.count_window(3, 2).process(Values("3 every 2"))
    return tumbling.union(sliding)


def key_of(result: Any) -> Any:
    return result[0], result[1]
