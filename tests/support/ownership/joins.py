"""Programs whose functions change what a join, or a window with an evictor, gives them."""

from __future__ import annotations

from typing import Any

from firesteel.common import WatermarkStrategy
from firesteel.datastream import (
    DataStream,
    KeyedStream,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.datastream.window import CountEvictor, CountTrigger, GlobalWindows, TumblingEventTimeWindows
from tests.support.ownership.base import ANY, program

LEFT = [{"key": "a", "at": 1, "seen": []}, {"key": "a", "at": 2, "seen": []}]
RIGHT = [{"key": "a", "at": 2, "seen": []}, {"key": "a", "at": 3, "seen": []}]


def _side(env: StreamExecutionEnvironment, records: list[Any]) -> KeyedStream:
    by_time = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda record, _: record["at"])
    return env.from_collection(records, ANY).assign_timestamps_and_watermarks(by_time).key_by(_key_of)


def _key_of(record: Any) -> Any:
    return record["key"]


class Mark(ProcessJoinFunction):
    """Notes in each record what it was joined with, and emits and keeps both."""

    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        left["seen"].append(right["at"])
        right["seen"].append(left["at"])
        yield left["at"], left["seen"], right["at"], right["seen"]
        left["seen"].append("emitted")


@program([(left, [right], right, [left]) for left in (1, 2) for right in (2, 3)])
def an_interval_join_changes_both_sides(env: StreamExecutionEnvironment) -> DataStream:
    return _side(env, LEFT).interval_join(_side(env, RIGHT)).between(0, 2).process(Mark(), ANY)


@program([(left, [right], right, [left]) for left in (1, 2) for right in (2, 3)])
def a_window_join_changes_both_sides(env: StreamExecutionEnvironment) -> DataStream:
    def mark(left: Any, right: Any) -> Any:
        left["seen"].append(right["at"])
        right["seen"].append(left["at"])
        return left["at"], left["seen"], right["at"], right["seen"]

    joined = _side(env, LEFT).join(_side(env, RIGHT)).where(_key_of).equal_to(_key_of)
    return joined.window(TumblingEventTimeWindows.of(10)).apply(mark, ANY)


class KeepAll(WindowFunction[Any, Any, Any, Any]):
    """Changes the elements of a window that fires again."""

    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield [record["at"] for record in inputs], [record["seen"] for record in inputs]
        for record in inputs:
            record["seen"].append("emitted")


@program([([1], [[]]), ([1, 2], [[], []])])
def an_evicted_window_fires_again(env: StreamExecutionEnvironment) -> DataStream:
    windows = _side(env, LEFT).window(GlobalWindows.create()).trigger(CountTrigger.of(1)).evictor(CountEvictor.of(2))
    return windows.apply(KeepAll(), ANY)
