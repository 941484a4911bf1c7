"""Programs that change what they have in keyed state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.api.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.api.state_ttl import StateTtlConfig
from firesteel.common import Row, Time, Types
from firesteel.datastream import (
    DataStream,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from tests.support.ownership.base import ANY, PAIRS, Collect, Extend, by_key, program, reduce_in_place


class UsesState(KeyedProcessFunction):
    """Uses one state, with or without time-to-live."""

    def __init__(self, ttl: bool = False):
        self.ttl = ttl

    def described(self, descriptor: Any) -> Any:
        if self.ttl:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        return descriptor


class Appending(UsesState):
    """Reads a list, appends, stores and emits it."""

    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(self.described(ValueStateDescriptor("s", ANY)))

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


class ListStates(UsesState):
    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_list_state(self.described(ListStateDescriptor("s", ANY)))

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


class MapStates(UsesState):
    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_map_state(self.described(MapStateDescriptor("s", Types.STRING(), ANY)))

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


class Reducing(UsesState):
    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_reducing_state(self.described(ReducingStateDescriptor("s", Extend(), ANY)))

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


class Aggregating(UsesState):
    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_aggregating_state(
            self.described(AggregatingStateDescriptor("s", Collect(), ANY))
        )

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


@program([("a", [1]), ("a", [1, 2]), ("a", [1, 2, 3]), ("b", [7])], batch=[("a", [1, 2, 3]), ("b", [7])])
def a_reduce_that_changes_its_first_argument(env: StreamExecutionEnvironment) -> DataStream:
    lists = env.from_collection([(key, [value]) for key, value in PAIRS])
    return lists.key_by(lambda record: record[0]).reduce(reduce_in_place)
