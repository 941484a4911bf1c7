"""Keys of any type, records converted to their declared type between tasks, and count windows as functions see them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common import Configuration, Row, Types
from firesteel.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment

KEYS: list[Any] = [None, [1, 2], {"a": None, "b": {"x", "y", "z"}}, "plain", (1, [2])]
RECORD = Types.ROW_NAMED(["number", "share", "key"], [Types.INT(), Types.FLOAT(), Types.PICKLED_BYTE_ARRAY()])


class Describe(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        rows = list(elements)
        shown = "set" if isinstance(key, dict) else repr(key)
        yield shown, context.window().id, [row.number for row in rows], [row.share for row in rows]


def build(env: StreamExecutionEnvironment) -> DataStream:
    env.configure(Configuration().set_boolean("pipeline.convert-typed-records", True))
    numbers = env.from_collection(list(range(25)), Types.INT())
    records = numbers.map(lambda n: Row(n + 0.5, n / 10, KEYS[n % 5]), RECORD).set_parallelism(1)
    keyed = records.key_by(lambda row: row.key, key_type=Types.PICKLED_BYTE_ARRAY())
    return keyed.count_window(2).process(Describe())


def key_of(result: Any) -> Any:
    return result[0]
