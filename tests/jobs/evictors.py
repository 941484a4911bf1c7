"""B9: evictors before and after the function, in windows that fire once and in one that fires again and again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.datastream import DataStream, StreamExecutionEnvironment, WindowFunction
from firesteel.datastream.window import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    GlobalWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
)
from tests.support.jobs.punctuated import WATERMARK, timeline

RECORDS = [
    ("a", 1, 0),
    ("b", 20, 2),
    ("a", 3, 1),
    ("a", 5, 4),
    ("b", 21, 3),
    (WATERMARK, None, 9),
    ("a", 9, 12),
    ("b", 30, 19),
    ("a", 2, 17),
    ("a", 8, 18),
]


class Values(WindowFunction[Any, Any, Any, Any]):
    def __init__(self, name: str):
        self.name = name

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        yield self.name, key, window.max_timestamp() if self.name == "time" else None, [record[1] for record in inputs]


def build(env: StreamExecutionEnvironment) -> DataStream:
    keyed = timeline(env, RECORDS).key_by(lambda record: record[0])
    time = keyed.window(TumblingEventTimeWindows.of(10)).evictor(TimeEvictor.of(4)).apply(Values("time"))
    last = keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2)).evictor(CountEvictor.of(3))
    near = keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    distance = DeltaEvictor.of(3, lambda record, latest: abs(record[1] - latest[1]), True)
    return time.union(last.apply(Values("count")), near.evictor(distance).apply(Values("delta")))


def key_of(result: Any) -> Any:
    return result[:2]
