"""B7: sliding event-time windows of 10 ms every 5 ms, without and with an offset: each record is in two windows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common.time import Time
from firesteel.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.window import SlidingEventTimeWindows
from tests.support.jobs.punctuated import WATERMARK, timeline

RECORDS = [("a", 1, 3), ("b", 5, 7), ("a", 2, 7), (WATERMARK, None, 6), ("a", 4, 12), (WATERMARK, None, 14)]


class Values(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, name: str):
        self.name = name

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        window = context.window()
        yield self.name, key, window.start, window.end, [value for _, value, _ in elements]


def build(env: StreamExecutionEnvironment) -> DataStream:
    keyed = timeline(env, RECORDS).key_by(lambda record: record[0])
    size, slide = Time.milliseconds(10), Time.milliseconds(5)
    plain = keyed.window(SlidingEventTimeWindows.of(size, slide)).process(Values("plain"))
    shifted = keyed.window(SlidingEventTimeWindows.of(size, slide, Time.milliseconds(2))).process(Values("offset 2"))
    return plain.union(shifted)
