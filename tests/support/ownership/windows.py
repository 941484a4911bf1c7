"""Programs that change elements and aggregates of windows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.api.state import (
    ValueStateDescriptor,
)
from firesteel.common import Time
from firesteel.datastream import (
    DataStream,
    MapFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.datastream.windowing.triggers import ContinuousEventTimeTrigger, CountTrigger
from tests.support.jobs.punctuated import WATERMARK, timeline
from tests.support.ownership.base import ANY, Collect, Extend, program, reduce_in_place

LATE = [
    ("a", 1, 1),
    ("a", 2, 2),
    (WATERMARK, None, 10),
    ("a", 3, 3),
    ("a", 4, 4),
    (WATERMARK, None, 40),
]


@program([[1, 2], [1, 2, 3], [1, 2, 3, 4]], batch=[[1, 2, 3, 4]])
def a_window_fires_again(env: StreamExecutionEnvironment) -> DataStream:
    windows = _late(env).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).allowed_lateness(20)
    return windows.aggregate(CollectNumbers())


@program([[1, 2, "seen"], [1, 2, 3, "seen"], [1, 2, 3, 4, "seen"]], batch=[[1, 2, 3, 4, "seen"]])
def a_window_function_changes_the_aggregate(env: StreamExecutionEnvironment) -> DataStream:
    windows = _late(env).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).allowed_lateness(20)
    return windows.aggregate(CollectNumbers(), MarkAggregate())


@program(
    [("a", [1, 2]), ("a", [1, 2, 3]), ("a", [1, 2, 3, 4])],
    batch=[("a", [1, 2, 3, 4])],
)
def a_reduced_window_fires_again(env: StreamExecutionEnvironment) -> DataStream:
    windows = (
        timeline(env, LATE)
        .map(lambda record: (record[0], [record[1]]))
        .set_parallelism(1)
        .key_by(lambda record: record[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .allowed_lateness(20)
    )
    return windows.reduce(reduce_in_place)


@program([["1!", "2!"], ["1!", "2!", "3!"], ["1!", "2!", "3!", "4!"]], batch=[["1!", "2!", "3!", "4!"]])
def a_window_function_changes_its_elements(env: StreamExecutionEnvironment) -> DataStream:
    windows = (
        timeline(env, LATE)
        .map(lambda record: [record[0], str(record[1])])
        .set_parallelism(1)
        .key_by(lambda record: record[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .allowed_lateness(20)
    )
    return windows.process(Shout())


class CollectNumbers(Collect):
    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value[1])
        return accumulator


class MarkAggregate(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        (aggregate,) = elements
        aggregate.append("seen")
        yield aggregate
        aggregate.append("changed after it was emitted")


class Shout(ProcessWindowFunction):
    """Changes each element in place."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for element in elements:
            element[1] += "!"
        yield [element[1] for element in elements]


def _late(env: StreamExecutionEnvironment) -> Any:
    return timeline(env, LATE).key_by(lambda record: record[0])


SLIDING = [("a", "x", 12), ("a", "y", 17), (WATERMARK, None, 100)]


def _sliding(env: StreamExecutionEnvironment) -> Any:
    lists = timeline(env, SLIDING).map(lambda record: [record[0], record[1]]).set_parallelism(1)
    return lists.key_by(lambda record: record[0]).window(
        SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10))
    )


class Changing(ProcessWindowFunction):
    """Emits its elements, then changes them."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for element in elements:
            element.append(context.window().start)
            yield element
            element.append("changed after it was emitted")


@program([["a", "x", 0], ["a", "y", 0], ["a", "x", 10], ["a", "y", 10]])
def sliding_windows_share_their_elements(env: StreamExecutionEnvironment) -> DataStream:
    return _sliding(env).process(Changing())


class Applying(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        for element in inputs:
            element.append(window.start)
        return list(inputs)


@program([["a", "x", 0], ["a", "y", 0], ["a", "x", 10], ["a", "y", 10]])
def sliding_windows_are_applied(env: StreamExecutionEnvironment) -> DataStream:
    return _sliding(env).apply(Applying())


@program([["a", "x", "a", "y"], ["a", "x", "a", "y"]])
def sliding_windowsreduce_in_place(env: StreamExecutionEnvironment) -> DataStream:
    return _sliding(env).reduce(Extend())


@program([["x", "y"], ["x", "y"]])
def sliding_windows_aggregate_their_records(env: StreamExecutionEnvironment) -> DataStream:
    return _sliding(env).aggregate(Emptying())


class Emptying(Collect):
    """Takes the record apart."""

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value.pop())
        return accumulator


SESSIONS = [("a", 1, 0), ("a", 3, 30), ("a", 2, 15), (WATERMARK, None, 60), ("a", 9, 100)]


@program([[[1], [3], [2]], [[9]]], batch=[[[1], [2], [3]], [[9]]])
def sessions_merge_their_accumulators(env: StreamExecutionEnvironment) -> DataStream:
    lists = timeline(env, SESSIONS).map(lambda record: (record[0], [record[1]])).set_parallelism(1)
    windows = lists.key_by(lambda record: record[0]).window(EventTimeSessionWindows.with_gap(Time.milliseconds(20)))
    return windows.aggregate(CollectNumbers())


@program([["1!", "2!", "3!"], ["9!"]])
def sessions_merge_their_elements(env: StreamExecutionEnvironment) -> DataStream:
    lists = timeline(env, SESSIONS).map(lambda record: [record[0], str(record[1])]).set_parallelism(1)
    windows = lists.key_by(lambda record: record[0]).window(EventTimeSessionWindows.with_gap(Time.milliseconds(20)))
    return windows.process(Shout()).map(sorted)


@program([["1!"], ["1!", "2!"], ["1!", "2!", "3!"]])
def a_trigger_fires_with_every_element(env: StreamExecutionEnvironment) -> DataStream:
    lists = env.from_collection([("a", "1"), ("a", "2"), ("a", "3")]).map(list).set_parallelism(1)
    return (
        lists.key_by(lambda record: record[0])
        .window(GlobalWindows.create())
        .trigger(CountTrigger.of(1))
        .process(Shout())
    )


@program([["1"], ["1", "2"], ["1", "2", "3"]])
def an_aggregate_is_emitted_with_every_element(env: StreamExecutionEnvironment) -> DataStream:
    pairs = env.from_collection([("a", "1"), ("a", "2"), ("a", "3")])
    windows = pairs.key_by(lambda record: record[0]).window(GlobalWindows.create()).trigger(CountTrigger.of(1))
    return windows.aggregate(CollectNumbers())


class RememberingState(ProcessWindowFunction):
    """Keeps what it has emitted in its per-key state, and changes it."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        state = context.global_state().get_state(ValueStateDescriptor("seen", ANY))
        seen = state.value() or []
        seen.append(len(list(elements)))
        state.update(seen)
        yield seen
        seen.append("changed")


@program([[1], [1, 2], [1, 2, 3]])
def a_window_function_keeps_state(env: StreamExecutionEnvironment) -> DataStream:
    pairs = env.from_collection([("a", "1"), ("a", "2"), ("a", "3")])
    windows = pairs.key_by(lambda record: record[0]).window(GlobalWindows.create()).trigger(CountTrigger.of(1))
    return windows.process(RememberingState())


@program([[1], [1, 2], [1, 2, 3]], batch=[[1, 2, 3]])
def a_window_fires_early(env: StreamExecutionEnvironment) -> DataStream:
    records = [("a", 1, 1), (WATERMARK, None, 10), ("a", 2, 12), (WATERMARK, None, 20), ("a", 3, 22)]
    windows = (
        timeline(env, records)
        .key_by(lambda record: record[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        .trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(10)))
    )
    return windows.aggregate(CollectNumbers()).map(Once()).set_parallelism(1).filter(lambda value: value is not None)


class Once(MapFunction):
    """Passes each result on when it differs from the one before."""

    def open(self, runtime_context: Any) -> None:
        self.last: Any = None

    def map(self, value: Any) -> Any:
        if value == self.last:
            return None
        self.last = list(value)
        value.append("x")
        value.pop()
        return value
