"""Programs whose functions change what they have emitted, stored or read, each with the results Flink gives.

In each the right results are those of functions that share no object: with one another, with state, with other windows.
``@program`` names the results as a stream, and as a batch where these are others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from punctuated import WATERMARK, timeline

from firesteel.common import Row, Time, Types, WatermarkStrategy
from firesteel.common.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.common.state_ttl import StateTtlConfig
from firesteel.connectors import DataGeneratorSource
from firesteel.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CoMapFunction,
    DataStream,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.datastream.triggers import ContinuousEventTimeTrigger, CountTrigger
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

__all__ = ["PROGRAMS", "Program"]

ANY = Types.PICKLED_BYTE_ARRAY()
PAIRS = [("a", 1), ("a", 2), ("b", 7), ("a", 3)]
BUILD = Callable[[StreamExecutionEnvironment], DataStream]


@dataclass(frozen=True)
class Program:
    build: BUILD
    results: list[Any]
    batch: list[Any]


PROGRAMS: dict[str, Program] = {}


def program(results: list[Any], batch: list[Any] | None = None) -> Callable[[BUILD], BUILD]:
    def register(build: BUILD) -> BUILD:
        PROGRAMS[build.__name__] = Program(build, results, results if batch is None else batch)
        return build

    return register


def by_key(env: StreamExecutionEnvironment, pairs: list[tuple[str, Any]] = PAIRS) -> Any:
    return env.from_collection(pairs).key_by(lambda pair: pair[0])


# -- keyed state ------------------------------------------------------------------------------------


class Appending(KeyedProcessFunction):
    """Reads a list, appends, stores and emits it."""

    def __init__(self, ttl: bool = False):
        self.ttl = ttl

    def open(self, runtime_context: Any) -> None:
        descriptor = ValueStateDescriptor("s", ANY)
        if self.ttl:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.state = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        seen = self.state.value() or []
        seen.append(value[1])
        self.state.update(seen)
        yield seen


@program([[1], [1, 2], [1, 2, 3], [7]])
def value_state_is_emitted(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env).process(Appending())


@program([[1], [1, 2], [1, 2, 3], [7]])
def value_state_with_time_to_live_is_emitted(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env).process(Appending(ttl=True))


@program([[1, "x"], [1, 2, "x"], [1, 2, 3, "x"], [7, "x"]])
def value_state_is_emitted_and_changed_downstream(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env).process(Appending()).map(lambda seen: seen.append("x") or seen)


class ChangesAfterUpdate(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("s", ANY))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        row = self.state.value() or Row(total=0, out="")
        row["total"] += value[1]
        self.state.update(row)
        row["out"] += "shown"
        yield row


@program([Row(total=1, out="shown"), Row(total=3, out="shown"), Row(total=6, out="shown"), Row(total=7, out="shown")])
def a_row_is_changed_after_it_was_stored(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env).process(ChangesAfterUpdate())


class ChangesWithoutUpdate(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("s", ANY))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        stored = self.state.value()
        if stored is None:
            self.state.update({"first": value[1]})
            stored = self.state.value()
        stored["now"] = value[1]
        stored["times"] = stored.get("times", 0) + 1
        yield stored


@program(
    [
        {"first": 1, "now": 1, "times": 1},
        {"first": 1, "now": 2, "times": 1},
        {"first": 1, "now": 3, "times": 1},
        {"first": 7, "now": 7, "times": 1},
    ]
)
def what_is_not_stored_is_not_in_state(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env).process(ChangesWithoutUpdate())


class TwoStates(KeyedProcessFunction):
    """Puts one object into two states and goes on with one of them."""

    def open(self, runtime_context: Any) -> None:
        self.first = runtime_context.get_state(ValueStateDescriptor("first", ANY))
        self.all = runtime_context.get_state(ValueStateDescriptor("all", ANY))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        if self.first.value() is None:
            both = [value[1]]
            self.first.update(both)
            self.all.update(both)
        else:
            seen = self.all.value()
            seen.append(value[1])
            self.all.update(seen)
        yield self.first.value(), self.all.value()


@program([([1], [1]), ([1], [1, 2]), ([1], [1, 2, 3]), ([7], [7])])
def one_object_in_two_states(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env).process(TwoStates())


class InputIsStored(KeyedProcessFunction):
    """Keeps the record itself in state, then changes and emits it."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", ANY))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        before = self.last.value()
        self.last.update(value)
        value.append("seen")
        yield value, before


@program([(["a", 1, "seen"], None), (["a", 2, "seen"], ["a", 1])])
def the_record_is_stored_and_changed(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([["a", 1], ["a", 2]]).key_by(lambda record: record[0]).process(InputIsStored())


class ListStates(KeyedProcessFunction):
    def __init__(self, ttl: bool = False):
        self.ttl = ttl

    def open(self, runtime_context: Any) -> None:
        descriptor = ListStateDescriptor("s", ANY)
        if self.ttl:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.state = runtime_context.get_list_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        one, two = [value[1]], ["all"]
        self.state.add(one)
        one.append("changed after add")
        self.state.add_all([two])
        two.append("changed after add_all")
        elements = list(self.state.get())
        for element in elements:
            element.append("read")
        yield elements
        again = list(self.state)
        self.state.update(again)
        for element in again:
            element.append("changed after update")
        yield list(self.state.get())


LISTS = [
    [[1, "read"], ["all", "read"]],
    [[1], ["all"]],
    [[1, "read"], ["all", "read"], [2, "read"], ["all", "read"]],
    [[1], ["all"], [2], ["all"]],
]


@program(LISTS)
def list_state(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env, [("a", 1), ("a", 2)]).process(ListStates())


@program(LISTS)
def list_state_with_time_to_live(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env, [("a", 1), ("a", 2)]).process(ListStates(ttl=True))


class MapStates(KeyedProcessFunction):
    def __init__(self, ttl: bool = False):
        self.ttl = ttl

    def open(self, runtime_context: Any) -> None:
        descriptor = MapStateDescriptor("s", Types.STRING(), ANY)
        if self.ttl:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.state = runtime_context.get_map_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        one, two = [value[1]], {"n": value[1]}
        self.state.put("one", one)
        one.append("changed after put")
        self.state.put_all({"two": two})
        two["changed"] = "after put_all"
        got = self.state.get("one")
        got.append("got")
        for _, stored in list(self.state.items()):
            stored.clear()
        for stored in self.state.values():
            stored.clear()
        yield got, dict(self.state.items())


MAPS = [([1, "got"], {"one": [1], "two": {"n": 1}}), ([2, "got"], {"one": [2], "two": {"n": 2}})]


@program(MAPS)
def map_state(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env, [("a", 1), ("a", 2)]).process(MapStates())


@program(MAPS)
def map_state_with_time_to_live(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env, [("a", 1), ("a", 2)]).process(MapStates(ttl=True))


class Extend(ReduceFunction):
    """Changes its first argument and returns it."""

    def reduce(self, value1: Any, value2: Any) -> Any:
        value1.extend(value2)
        return value1


class Collect(AggregateFunction):
    """Its accumulator is also its result, and holds the records themselves."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        return accumulator

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        acc_a.extend(acc_b)
        return acc_a


class Reducing(KeyedProcessFunction):
    def __init__(self, ttl: bool = False):
        self.ttl = ttl

    def open(self, runtime_context: Any) -> None:
        descriptor = ReducingStateDescriptor("s", Extend(), ANY)
        if self.ttl:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.state = runtime_context.get_reducing_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        part = [value[1]]
        self.state.add(part)
        part.append("changed after add")
        reduced = self.state.get()
        yield reduced
        reduced.append("changed after get")


@program([[1], [1, 2], [1, 2, 3], [7]])
def reducing_state(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env).process(Reducing())


@program([[1], [1, 2], [1, 2, 3], [7]])
def reducing_state_with_time_to_live(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env).process(Reducing(ttl=True))


class Aggregating(KeyedProcessFunction):
    def __init__(self, ttl: bool = False):
        self.ttl = ttl

    def open(self, runtime_context: Any) -> None:
        descriptor = AggregatingStateDescriptor("s", Collect(), ANY)
        if self.ttl:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.state = runtime_context.get_aggregating_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        part = [value[1]]
        self.state.add(part)
        part.append("changed after add")
        yield self.state.get()


@program([[[1]], [[1], [2]], [[1], [2], [3]], [[7]]])
def aggregating_state_is_emitted(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env).process(Aggregating())


@program([[[1]], [[1], [2]], [[1], [2], [3]], [[7]]])
def aggregating_state_with_time_to_live_is_emitted(env: StreamExecutionEnvironment) -> DataStream:
    return by_key(env).process(Aggregating(ttl=True))


def _reduce_in_place(total: Any, record: Any) -> Any:
    total[1].extend(record[1])
    return total


@program([("a", [1]), ("a", [1, 2]), ("a", [1, 2, 3]), ("b", [7])], batch=[("a", [1, 2, 3]), ("b", [7])])
def a_reduce_that_changes_its_first_argument(env: StreamExecutionEnvironment) -> DataStream:
    lists = env.from_collection([(key, [value]) for key, value in PAIRS])
    return lists.key_by(lambda record: record[0]).reduce(_reduce_in_place)


# -- windows ----------------------------------------------------------------------------------------

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
    return windows.reduce(_reduce_in_place)


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
def sliding_windows_reduce_in_place(env: StreamExecutionEnvironment) -> DataStream:
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


# -- records ----------------------------------------------------------------------------------------


class Appends(MapFunction):
    def __init__(self, what: Any):
        self.what = what

    def map(self, value: Any) -> Any:
        value.append(self.what)
        return value


def _lists(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([[1], [2]])


@program([[1, "x"], [1, "y"], [2, "x"], [2, "y"]])
def two_consumers_of_a_source(env: StreamExecutionEnvironment) -> DataStream:
    lists = _lists(env)
    return lists.map(Appends("x")).union(lists.map(Appends("y")))


@program([[1, 0, "x"], [1, 0, "y"], [1, 0, "z"], [2, 0, "x"], [2, 0, "y"], [2, 0, "z"]])
def three_consumers_of_a_function(env: StreamExecutionEnvironment) -> DataStream:
    lists = _lists(env).map(Appends(0))
    return lists.map(Appends("x")).union(lists.map(lambda v: v.append("y") or v), lists.map(Appends("z")))


@program([[1, 0, "x"], [1, 0, "y"], [2, 0, "x"], [2, 0, "y"]])
def a_chained_consumer_and_one_behind_an_exchange(env: StreamExecutionEnvironment) -> DataStream:
    lists = _lists(env).map(Appends(0))
    keyed = lists.key_by(lambda value: value[0]).map(Appends("y"))
    return lists.map(Appends("x")).union(keyed)


@program([[1, 0, "x"], [1, 0, "y"], [2, 0, "x"], [2, 0, "y"]])
def two_consumers_behind_exchanges(env: StreamExecutionEnvironment) -> DataStream:
    lists = _lists(env).map(Appends(0))
    keyed = lists.key_by(lambda value: value[0]).map(Appends("y"))
    return keyed.union(lists.rebalance().map(Appends("x")))


@program([[1, "x"], [1, "x"], [2, "x"], [2, "x"]])
def a_stream_united_with_itself(env: StreamExecutionEnvironment) -> DataStream:
    lists = _lists(env)
    return lists.union(lists).map(Appends("x"))


@program([[1, "x"], [1, "y"], [2, "x"], [2, "y"]])
def two_consumers_behind_a_filter(env: StreamExecutionEnvironment) -> DataStream:
    lists = _lists(env).filter(lambda value: value[0] > 0)
    return lists.map(Appends("x")).union(lists.map(Appends("y")))


@program([[1], [1, "x"], [2], [2, "x"]])
def a_broadcast_and_a_chain(env: StreamExecutionEnvironment) -> DataStream:
    lists = _lists(env).map(lambda value: [value[0]])
    return lists.map(Appends("x")).union(lists.broadcast().map(First()).filter(lambda value: value is not None))


class First(MapFunction):
    """Lets records through in one subtask only."""

    def open(self, runtime_context: Any) -> None:
        self.is_first = runtime_context.get_index_of_this_subtask() == 0

    def map(self, value: Any) -> Any:
        copied = list(value) if self.is_first else None
        value.append("changed by the broadcast side")
        return copied


@program([[1, 10], [1, 20], [2, 10], [2, 20]])
def the_same_object_is_emitted_twice(env: StreamExecutionEnvironment) -> DataStream:
    return _lists(env).flat_map(Twice())


class Twice(FlatMapFunction):
    def flat_map(self, value: Any) -> Iterator[Any]:
        value.append(10)
        yield value
        value[-1] = 20
        yield value
        value[-1] = "changed afterwards"


@program([[1, 10], [1, 20], [2, 10], [2, 20]])
def a_list_with_the_same_object_twice(env: StreamExecutionEnvironment) -> DataStream:
    return _lists(env).flat_map(lambda value: [value, value]).set_parallelism(1).map(Alternating()).set_parallelism(1)


class Alternating(MapFunction):
    """Changes records; its number is that of the record."""

    def __init__(self) -> None:
        self.count = 0

    def map(self, value: Any) -> Any:
        self.count += 1
        value.append(10 if self.count % 2 else 20)
        return value


@program([[1], [1, 2], [1, 2, 3]])
def a_function_emits_what_it_keeps(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([1, 2, 3]).map(Keeping()).set_parallelism(1)


class Keeping(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.seen: list[Any] = []

    def map(self, value: Any) -> Any:
        self.seen.append(value)
        return self.seen


@program([("a", [1]), ("a", [1, 2]), ("a", [1, 2, 3])])
def a_function_emits_what_it_keeps_in_a_tuple(env: StreamExecutionEnvironment) -> DataStream:
    keeping = env.from_collection([1, 2, 3]).map(Keeping()).set_parallelism(1)
    return keeping.map(Tuples()).set_parallelism(1).key_by(lambda pair: pair[0]).process(Identity())


class Tuples(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.last: Any = None

    def map(self, value: Any) -> Any:
        if self.last is not None:
            self.last.append("changed by the next record")
        self.last = value
        return "a", value


class Identity(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value


@program([[1], [2], [3]])
def a_filter_keeps_and_changes_records(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([[1], [2], [3]]).filter(KeepingFilter())


class KeepingFilter(FilterFunction):
    def open(self, runtime_context: Any) -> None:
        self.last: list[Any] = []

    def filter(self, value: Any) -> bool:
        self.last.append("changed")
        self.last = value
        return True


@dataclass
class Event:
    name: str
    tags: list[str] = field(default_factory=list)


@program([("one", ["x"]), ("one", ["x", "y"]), ("two", ["x"]), ("two", ["x", "y"])])
def objects_of_a_class(env: StreamExecutionEnvironment) -> DataStream:
    events = env.from_collection([Event("one"), Event("two")]).flat_map(TagTwice())
    return events.map(lambda event: (event.name, event.tags))


class TagTwice(FlatMapFunction):
    def flat_map(self, value: Any) -> Iterator[Any]:
        value.tags.append("x")
        yield value
        value.tags.append("y")
        yield value


@program(
    [
        {"n": 1, "in": {"n": [1]}},
        {"n": 1, "in": {"n": [1, 1]}},
        {"n": 2, "in": {"n": [2]}},
        {"n": 2, "in": {"n": [2, 2]}},
    ]
)
def nested_data(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([1, 2]).flat_map(Nested())


class Nested(FlatMapFunction):
    def flat_map(self, value: Any) -> Iterator[Any]:
        record = {"n": value, "in": {"n": [value]}}
        yield record
        record["in"]["n"].append(value)
        yield record


SIDES = OutputTag("one"), OutputTag("two")


@program([[1, "main"], [1, "one"], [1, "two"], [2, "main"], [2, "one"], [2, "two"]])
def one_object_in_all_outputs(env: StreamExecutionEnvironment) -> DataStream:
    main = _lists(env).process(ToAll())
    one, two = (main.get_side_output(tag) for tag in SIDES)
    return main.map(Appends("main")).union(one.map(Appends("one")), two.map(Appends("two")))


class ToAll(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield SIDES[0], value
        yield value
        yield SIDES[1], value
        value.append("changed afterwards")


@program([["a", 1], ["a", 1, "again"], ["b", 7], ["b", 7, "again"]])
def timers_emit_an_object_twice(env: StreamExecutionEnvironment) -> DataStream:
    records = timeline(env, [("a", 1, 1), ("b", 7, 2), (WATERMARK, None, 50)])
    return records.key_by(lambda record: record[0]).process(OnTimer())


class OnTimer(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("s", ANY))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.state.update([value[0], value[1]])
        ctx.timer_service().register_event_time_timer(10)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        stored = self.state.value()
        yield stored
        stored.append("again")
        yield stored
        stored.append("changed afterwards")


@program([(1, ["rule"]), (2, ["rule"]), (3, ["rule"])])
def broadcast_state_is_read_and_changed(env: StreamExecutionEnvironment) -> DataStream:
    rules = env.from_collection([["rule"]]).broadcast(RULES)
    return env.from_collection([1, 2, 3]).connect(rules).process(Matching()).set_parallelism(1).filter(bool)


RULES = MapStateDescriptor("rules", Types.STRING(), ANY)


class Matching(BroadcastProcessFunction):
    """Holds its records until there is a rule, whichever input comes first."""

    def open(self, runtime_context: Any) -> None:
        self.waiting: list[Any] = []

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        state = ctx.get_broadcast_state(RULES)
        rule = state.get("rule")
        if rule is None:
            self.waiting.append(value)
            return
        yield value, rule
        rule.append("changed by process_element")
        for _, each in list(state.items()):
            each.append("changed by items")
        for each in state.values():
            each.append("changed by values")

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        state = ctx.get_broadcast_state(RULES)
        state.put("rule", value)
        value.append("changed after put")
        for waiting in self.waiting:
            rule = state.get("rule")
            yield waiting, rule
            rule.append("changed by process_broadcast_element")
        self.waiting.clear()


@program([("map1", [1]), ("map1", [2]), ("map2", [1]), ("map2", [2])])
def connected_streams_of_one_stream(env: StreamExecutionEnvironment) -> DataStream:
    lists = _lists(env).map(lambda value: [value[0]])
    return lists.connect(lists).map(Both())


class Both(CoMapFunction):
    def open(self, runtime_context: Any) -> None:
        self.last: list[Any] = []

    def map1(self, value: Any) -> Any:
        return self._next("map1", value)

    def map2(self, value: Any) -> Any:
        return self._next("map2", value)

    def _next(self, name: str, value: Any) -> Any:
        self.last.append("changed by the next record")
        self.last = value
        return name, value


@program([([1], [1]), ([2], [2])])
def keyed_inputs_share_state(env: StreamExecutionEnvironment) -> DataStream:
    lists = _lists(env)
    keyed = lists.key_by(lambda value: value[0])
    return keyed.connect(lists.key_by(lambda value: value[0])).process(Joining())


class Joining(KeyedCoProcessFunction):
    """Emits the other side's record with its own."""

    def open(self, runtime_context: Any) -> None:
        self.other = runtime_context.get_state(ValueStateDescriptor("other", ANY))

    def _join(self, value: Any) -> Iterable[Any]:
        before = self.other.value()
        self.other.update(value)
        if before is not None:
            yield before, value
        value.append("changed afterwards")

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        return self._join(value)

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        return self._join(value)


@program([[1, "x"], [1, "x"], [2, "x"]])
def a_collection_with_one_object_twice(env: StreamExecutionEnvironment) -> DataStream:
    one = [1]
    return env.from_collection([one, one, [2]]).map(Appends("x"))


@program([[0, "x"], [1, "x"], [2, "x"]])
def a_generator_function_that_uses_one_object(env: StreamExecutionEnvironment) -> DataStream:
    source = DataGeneratorSource(_reusing, count=3)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(Appends("x"))


_REUSED: list[Any] = [None]


def _reusing(index: int) -> Any:
    _REUSED[:] = [index]
    return _REUSED


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
