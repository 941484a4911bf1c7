"""Programs that change records which they have received or emitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from firesteel.api.state import (
    MapStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.common import Types, WatermarkStrategy
from firesteel.connectors import DataGeneratorSource
from firesteel.datastream import (
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
    StreamExecutionEnvironment,
)
from tests.support.jobs.punctuated import WATERMARK, timeline
from tests.support.ownership.base import ANY, program


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
