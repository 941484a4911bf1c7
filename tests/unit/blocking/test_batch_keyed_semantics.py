"""What a keyed operator sees in a batch: one key after the other, its records by time, its timers at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.common.errors import TaskFailure
from firesteel.common.time import Time
from firesteel.datastream import (
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.execution.stages.errors import StageTaskError
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from tests.support.epochs.driven_batches import DrivenBatch, given, graph_of, run

ONE_BUCKET = {"execution.batch.key-buckets": "1"}


class Seen(KeyedProcessFunction):
    """Emits all a function can know of a record: key, value, time, watermark and how many came before."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count = self.count.value() or 0
        self.count.update(count + 1)
        yield ctx.get_current_key(), value, ctx.timestamp(), ctx.timer_service().current_watermark(), count


def test_keys_come_one_at_a_time_with_their_records_by_time() -> None:
    first = [(("a", 1), 30), (("b", 2), 20), (("a", 3), 10)]
    second = [(("b", 4), 10), (("a", 5), 10), (("a", 6), 40)]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        records = given(env, first, second, timestamps=True)
        return records.key_by(lambda value: value[0]).process(Seen()).set_parallelism(1)

    results = run(build, 2)
    by_key = {"a": [r for r in results if r[0] == "a"], "b": [r for r in results if r[0] == "b"]}
    assert results in ([*by_key["a"], *by_key["b"]], [*by_key["b"], *by_key["a"]])
    # 3 and 5 have the same time: the first producer's comes first
    assert [(value[1], time) for _, value, time, _, _ in by_key["a"]] == [(3, 10), (5, 10), (1, 30), (6, 40)]
    assert [(value[1], time) for _, value, time, _, _ in by_key["b"]] == [(4, 10), (2, 20)]
    assert {watermark for *_, watermark, _ in results} == {MIN_TIMESTAMP}
    assert [count for *_, count in by_key["a"]] == [0, 1, 2, 3]


def test_records_without_timestamps_keep_the_order_of_their_producers() -> None:
    lists = [[("a", number) for number in range(start, start + 500)] for start in (0, 1000)]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, *lists).key_by(lambda value: value[0]).process(Seen()).set_parallelism(1)

    results = run(build, 2)
    assert [value for _, value, *_ in results] == lists[0] + lists[1]
    assert {time for _, _, time, *_ in results} == {None}


class Timers(KeyedProcessFunction):
    """Sets timers of both kinds, deletes one, and sets another while they fire."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", None))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.last.update(value)
        timers = ctx.timer_service()
        timers.register_processing_time_timer(value[1])
        timers.register_event_time_timer(value[1] + 100)
        timers.register_event_time_timer(value[1] + 200)
        timers.delete_event_time_timer(value[1] + 200)
        yield "record", value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        assert timers.current_watermark() == MAX_WATERMARK
        timers.register_event_time_timer(timestamp + 1000)
        timers.register_processing_time_timer(timestamp + 1000)
        yield ctx.time_domain().name, ctx.get_current_key(), timestamp, self.last.value()


def test_timers_fire_at_the_end_of_their_key_first_those_of_event_time() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, [("a", 2), ("b", 5), ("a", 1)]).key_by(lambda value: value[0]).process(Timers())

    results = run(build, options=ONE_BUCKET)
    assert results == [
        ("record", ("a", 2)),
        ("record", ("a", 1)),
        ("EVENT_TIME", "a", 101, ("a", 1)),
        ("EVENT_TIME", "a", 102, ("a", 1)),
        ("PROCESSING_TIME", "a", 1, ("a", 1)),
        ("PROCESSING_TIME", "a", 2, ("a", 1)),
        ("record", ("b", 5)),
        ("EVENT_TIME", "b", 105, ("b", 5)),
        ("PROCESSING_TIME", "b", 5, ("b", 5)),
    ]


class Watermarks(ProcessFunction):
    """Notes event time, and what it is when it ends: a timer cannot be set without a key."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.timer_service().current_watermark()


def test_downstream_of_the_head_event_time_stands_still() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        timed = given(env, [("a", 2), ("b", 5)]).key_by(lambda value: value[0]).process(Timers())
        return timed.process(Watermarks())

    assert {watermark for _, watermark in run(build)} == {MIN_TIMESTAMP}


def test_state_is_gone_with_its_key() -> None:
    class Kinds(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            ttl = StateTtlConfig.new_builder(Time.milliseconds(1)).build()
            value = ValueStateDescriptor("value", None)
            value.enable_time_to_live(ttl)
            self.value = runtime_context.get_state(value)
            self.list = runtime_context.get_list_state(ListStateDescriptor("list", None))
            self.map = runtime_context.get_map_state(MapStateDescriptor("map", None, None))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value, self.value.value(), list(self.list.get()), dict(self.map.items())
            self.value.update(value)
            self.list.add(value)
            self.map.put(value, True)

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, ["a1", "b1", "a2", "b2"]).key_by(lambda value: value[0]).process(Kinds())

    assert run(build, options=ONE_BUCKET) == [
        ("a1", None, [], {}),
        ("a2", "a1", ["a1"], {"a1": True}),
        ("b1", None, [], {}),
        ("b2", "b1", ["b1"], {"b1": True}),
    ]


def test_a_map_on_a_keyed_stream_has_the_state_of_its_key() -> None:
    class Counting(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

        def map(self, value: Any) -> Any:
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            return value, count

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, ["a", "b", "a"]).key_by(lambda value: value).map(Counting())

    assert sorted(run(build)) == [("a", 1), ("a", 2), ("b", 1)]


class Times(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.timestamp()


def test_reduce_gives_one_result_per_key_at_the_end_of_time() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, ["a", "c", "ab"], ["b", "ac"]).key_by(lambda value: value[0])
        return keyed.reduce(lambda left, right: f"{left}+{right}").process(Times())

    assert sorted(run(build, 2)) == [("a+ab+ac", MAX_WATERMARK), ("b", MAX_WATERMARK), ("c", MAX_WATERMARK)]


def test_reduce_goes_by_time() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, [("a3", 3), ("a1", 1)], [("a2", 2)], timestamps=True).key_by(lambda value: value[0])
        return keyed.reduce(lambda left, right: f"{left}+{right}").set_parallelism(1)

    assert run(build, 2) == ["a1+a2+a3"]


def test_sums_minima_and_maxima_are_final() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, [("a", 3), ("a", 1)], [("a", 2), ("b", 7)]).key_by(lambda value: value[0])
        return keyed.sum(1).union(keyed.min(1), keyed.max(1))

    assert sorted(run(build, 2)) == [("a", 1), ("a", 3), ("a", 6), ("b", 7), ("b", 7), ("b", 7)]


def test_a_reduce_that_returns_nothing_is_told_of() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, ["a", "ab"]).key_by(lambda value: value[0]).reduce(lambda left, right: None)

    with pytest.raises(StageTaskError) as raised:
        run(build)
    assert "returned None" in failure_of(raised.value).message


class Joined(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield from self._seen("left", value, ctx)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield from self._seen("right", value, ctx)

    def _seen(self, side: str, value: Any, ctx: Any) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(1)
        yield side, value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        return [("end", ctx.get_current_key(), self.count.value())]


def test_two_keyed_inputs_are_merged_by_time() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        left = given(env, [("a1", 1), ("b3", 3), ("a5", 5)], [("a3", 3)], timestamps=True)
        right = given(env, [("A0", 0), ("A3", 3), ("C1", 1)], [("A4", 4), ("A9", 9)], timestamps=True)
        return (
            left.connect(right)
            .key_by(lambda value: value[0], lambda value: value[0].lower())
            .process(Joined())
            .set_parallelism(1)
        )

    results = run(build, 2, ONE_BUCKET)
    begin = results.index(("right", "A0"))
    assert results[begin : begin + 8] == [
        ("right", "A0"),
        ("left", "a1"),
        ("left", "a3"),
        ("right", "A3"),
        ("right", "A4"),
        ("left", "a5"),
        ("right", "A9"),
        ("end", "a", 7),
    ]
    assert ("end", "b", 1) in results
    assert ("end", "c", 1) in results


def test_two_keyed_inputs_without_times_come_one_after_the_other_per_key() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        left, right = given(env, ["a1", "b1", "a2"]), given(env, ["b9", "a9"])
        return left.connect(right).key_by(lambda value: value[0], lambda value: value[0]).process(Joined())

    assert run(build, options=ONE_BUCKET) == [
        ("left", "a1"),
        ("left", "a2"),
        ("right", "a9"),
        ("end", "a", 3),
        ("left", "b1"),
        ("right", "b9"),
        ("end", "b", 2),
    ]


def test_records_with_and_without_times_meet_in_one_key() -> None:
    """As in Flink those without come first: their time is the lowest."""

    def build(env: StreamExecutionEnvironment) -> DataStream:
        timed, others = given(env, [("a2", 2), ("a1", 1)], timestamps=True), given(env, ["a8", "a9"])
        return timed.union(others).key_by(lambda value: value[0]).process(Seen())

    assert [(value, time) for _, value, time, *_ in run(build)] == [("a8", None), ("a9", None), ("a1", 1), ("a2", 2)]


RULES = MapStateDescriptor("rules", None, None)


class Ruled(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count, sorted(ctx.get_broadcast_state(RULES).keys())

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        if value == "count":
            self.count.update(1)
        ctx.get_broadcast_state(RULES).put(value, True)


def ruled(rules: list[str]) -> Any:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        records = given(env, ["a", "b", "a"], ["b"]).key_by(lambda value: value)
        return records.connect(given(env, rules[:1], rules[1:]).broadcast(RULES)).process(Ruled())

    return build


def test_the_broadcast_side_comes_first() -> None:
    rules = ["x", "y", "z"]
    assert sorted(run(ruled(rules), 2)) == [("a", 1, rules), ("a", 2, rules), ("b", 1, rules), ("b", 2, rules)]


def test_keyed_state_is_refused_on_the_broadcast_side() -> None:
    with pytest.raises(StageTaskError) as raised:
        run(ruled(["count"]), 2)
    assert "has no key" in failure_of(raised.value).message


def test_side_outputs_of_records_and_timers() -> None:
    late = OutputTag("late")

    class Sides(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            ctx.timer_service().register_event_time_timer(7)
            yield late, value
            yield value

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            yield late, f"timer of {ctx.get_current_key()}"
            yield "main"

    def build(env: StreamExecutionEnvironment) -> DataStream:
        main = given(env, ["a", "b"]).key_by(lambda value: value).process(Sides())
        return main.get_side_output(late).map(lambda value: f"side {value}").union(main)

    assert sorted(run(build)) == ["a", "b", "main", "main", "side a", "side b", "side timer of a", "side timer of b"]


def test_a_failure_names_operator_key_and_record() -> None:
    class Failing(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield 1 // (value[1] - 3)

    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, [("a", 1), ("b", 3), ("a", 2)]).key_by(lambda value: value[0])
        return keyed.process(Failing()).name("divide")

    with pytest.raises(StageTaskError) as raised:
        run(build)
    failure = failure_of(raised.value)
    assert (failure.operator, failure.key, failure.element) == ("divide", "'b'", "('b', 3)")
    assert "ZeroDivisionError" in failure.traceback


def test_a_timer_that_fails_names_its_key() -> None:
    class Failing(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(9)

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            raise ValueError("no")
            yield

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, ["a"]).key_by(lambda value: value).process(Failing()).name("alarm")

    with pytest.raises(StageTaskError) as raised:
        run(build)
    failure = failure_of(raised.value)
    assert (failure.operator, failure.key) == ("alarm", "'a'")


def test_a_record_that_fits_no_declared_type_is_refused() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, ["a"]).key_by(lambda value: value).map(lambda value: value, Types.LONG())

    with pytest.raises(StageTaskError) as raised:
        run(build)
    assert "declared type" in failure_of(raised.value).message


def test_keyed_rows_are_sorted_by_bucket() -> None:
    batch = DrivenBatch(graph_of(lambda env: given(env, range(100)).key_by(lambda value: value).process(Seen())))
    assert len(batch.run()) == 100
    orders = {order for _, order, _ in batch.records(batch.stages[0].id)}
    assert len(orders) > 50


def failure_of(error: StageTaskError) -> TaskFailure:
    failure: TaskFailure = error.messages[-1].failure
    return failure
