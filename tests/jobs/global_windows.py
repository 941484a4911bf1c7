"""B7, B8: the global window with count and purging triggers, and with a custom trigger that has state and a timer.

The default trigger of the global window never fires; the custom one fires and purges when the values reach 10, and once
at the end of the input.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common import Types
from firesteel.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ReducingStateDescriptor
from firesteel.datastream.window import CountTrigger, GlobalWindows, PurgingTrigger, Trigger, TriggerResult
from tests.support.jobs.punctuated import WATERMARK, timeline

RECORDS = [
    ("a", 4, 1),
    ("b", 9, 2),
    ("a", 5, 3),
    (WATERMARK, None, 50),
    ("a", 3, 4),  # 4 + 5 + 3: enough
    ("b", 2, 5),  # 9 + 2: enough
    ("a", 1, 6),
    ("a", 20, 7),  # 1 + 20: enough
    ("b", 6, 8),
]
END = 1000


class Threshold(Trigger[Any, Any]):
    def __init__(self, threshold: int):
        self.threshold = threshold
        self.sum = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_event_time_timer(END)
        total = ctx.get_partitioned_state(self.sum)
        total.add(element[1])
        if total.get() < self.threshold:
            return TriggerResult.CONTINUE
        total.clear()
        return TriggerResult.FIRE_AND_PURGE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE

    def on_merge(self, window: Any, ctx: Any) -> None:
        raise AssertionError("the global window does not merge")

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(self.sum).clear()
        ctx.delete_event_time_timer(END)


class Values(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, name: str):
        self.name = name

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield self.name, key, [value for _, value, _ in elements]


def build(env: StreamExecutionEnvironment) -> DataStream:
    keyed = timeline(env, RECORDS).key_by(lambda record: record[0])
    never = keyed.window(GlobalWindows.create()).process(Values("never"))
    count = keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2)).process(Values("count 2"))
    purging = keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2)))
    threshold = keyed.window(GlobalWindows.create()).trigger(Threshold(10)).process(Values("threshold 10"))
    return never.union(count, purging.process(Values("purging count 2")), threshold)


def key_of(result: Any) -> Any:
    return result[0], result[1]
