"""Harnesses: single functions and operators, fed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.api.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.common import Configuration, Row, Time, Types
from firesteel.common.errors import FiresteelError
from firesteel.datastream import (
    AggregateFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
)
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.testing import (
    At,
    CoProcessFunctionHarness,
    Emitted,
    FakeClock,
    KeyedCoProcessFunctionHarness,
    KeyedProcessFunctionHarness,
    OneInputHarness,
    ProcessFunctionHarness,
    Timer,
    TwoInputHarness,
    harness_for,
    test_environment,
)

ODD = OutputTag("odd")
KEY = lambda record: record[0]


class Split(ProcessFunction):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, runtime_context: Any) -> None:
        self.calls.append("open")
        self._seen = runtime_context.get_metrics_group().counter("seen")

    def close(self) -> None:
        self.calls.append("close")

    def process_element(self, value: int, ctx: Any) -> Any:
        self._seen.inc()
        if value < 0:
            raise ValueError(f"negative: {value}")
        if value % 2:
            yield ODD, value
        else:
            yield value


def test_a_process_function() -> None:
    function = Split()
    with ProcessFunctionHarness(function) as harness:
        assert function.calls == ["open"]
        harness.process_element(2, 10)
        harness.process_elements([3, At(4, 20), At(5, 25)])
        assert harness.output == [2, 4]
        assert harness.records == [Emitted(2, 10), Emitted(4, 20)]
        assert harness.side_output(ODD) == [3, 5]
        assert harness.side_records(ODD) == [(3, None), (5, 25)]
        assert harness.side_output(OutputTag("unused")) == []
        assert harness.counter("seen") == 4
        assert harness.take_output() == [2, 4]
        assert harness.output == []
    assert function.calls == ["open", "close"]
    with pytest.raises(RuntimeError, match="closed"):
        harness.process_element(2)


def test_it_opens_by_itself_and_closes_once() -> None:
    function = Split()
    harness = ProcessFunctionHarness(function)
    assert function.calls == []
    harness.close()
    assert function.calls == []
    harness = ProcessFunctionHarness(function)
    harness.process_element(2)
    harness.close()
    harness.close()
    assert function.calls == ["open", "close"]


def test_what_a_function_raises_comes_out_as_it_is() -> None:
    harness = ProcessFunctionHarness(Split())
    with pytest.raises(ValueError, match="negative: -1"):
        harness.process_element(-1)
    harness.process_element(2)
    assert harness.output == [2]


def test_a_plain_process_function_has_no_timers_nor_state() -> None:
    class Wrong(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(5)

    harness = ProcessFunctionHarness(Wrong())
    with pytest.raises(RuntimeError, match="keyed streams"):
        harness.process_element(1)
    with pytest.raises(RuntimeError, match="not keyed"):
        harness.state("x", key=1)
    assert harness.keys("x") == []


class CountAndFlush(KeyedProcessFunction):
    """Counts per key; emits the count at the next full 100 ms of event time, or after a second of silence."""

    def open(self, runtime_context: Any) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._count.update((self._count.value() or 0) + 1)
        timers = ctx.timer_service()
        timers.register_event_time_timer(ctx.timestamp() // 100 * 100 + 100)
        timers.register_processing_time_timer(timers.current_processing_time() + 1000)
        return []

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        count = self._count.value()
        self._count.clear()
        if count:
            yield ctx.get_current_key(), count, ctx.time_domain().name
            yield ODD, count


def test_a_keyed_process_function_with_state_and_timers() -> None:
    harness = KeyedProcessFunctionHarness(CountAndFlush(), KEY)
    harness.process_element(("a", 1), 10)
    harness.process_element(("a", 2), 20)
    harness.process_element(("b", 3), 120)
    assert harness.state("count", key="a") == 2
    assert harness.state(ValueStateDescriptor("count"), key="b") == 1
    assert harness.state("count", key="c") is None
    assert sorted(harness.keys("count")) == ["a", "b"]
    assert harness.event_time_timers == [Timer(100, "a"), Timer(200, "b")]
    assert harness.num_event_time_timers() == 2
    assert harness.num_processing_time_timers() == 2

    harness.process_watermark(99)
    assert harness.output == []
    harness.process_watermark(100)
    assert harness.records == [Emitted(("a", 2, "EVENT_TIME"), 100)]
    assert harness.side_records(ODD) == [Emitted(2, 100)]
    assert harness.state("count", key="a") is None
    assert harness.watermarks == [99, 100]
    harness.process_watermark(50)
    assert harness.watermarks == [99, 100], "event time does not go back"

    harness.take_output()
    harness.advance(1000)
    assert harness.records == [Emitted(("b", 1, "PROCESSING_TIME"), None)]
    assert harness.num_processing_time_timers() == 0


def test_each_processing_time_timer_fires_at_its_time() -> None:
    class Tick(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_processing_time_timer(value)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield timestamp, ctx.timer_service().current_processing_time()

    clock = FakeClock(100)
    harness = KeyedProcessFunctionHarness(Tick(), lambda value: 0, clock=clock)
    harness.process_element(140)
    harness.process_element(120)
    clock.advance(1000)
    assert harness.output == [(120, 120), (140, 140)]
    harness.process_element(5)
    assert harness.output[2:] == [(5, 1100)], "one that is due already fires at once"


def test_the_end_of_input() -> None:
    harness = KeyedProcessFunctionHarness(CountAndFlush(), KEY)
    harness.process_element(("a", 1), 10)
    harness.finish()
    assert harness.output == [("a", 1, "EVENT_TIME")]
    assert harness.watermarks == [MAX_WATERMARK]


class Sum(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        return [*accumulator, value]

    def get_result(self, accumulator: list[int]) -> int:
        return sum(accumulator)

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


class Everything(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self._states = [
            runtime_context.get_list_state(ListStateDescriptor("list")).add,
            lambda value: runtime_context.get_map_state(MapStateDescriptor("map")).put(value, value),
            runtime_context.get_reducing_state(ReducingStateDescriptor("max", max)).add,
            runtime_context.get_aggregating_state(AggregatingStateDescriptor("sum", Sum())).add,
        ]

    def process_element(self, value: Any, ctx: Any) -> None:
        for add in self._states:
            add(value[1])


def test_every_kind_of_state_can_be_looked_at() -> None:
    harness = KeyedProcessFunctionHarness(Everything(), KEY)
    harness.process_elements([("a", 3), ("a", 1), ("b", 9)])
    names = ("list", "map", "max", "sum")
    assert [harness.state(name, key="a") for name in names] == [[3, 1], {3: 3, 1: 1}, 3, 4]
    assert [harness.state(name, key="none") for name in names] == [[], {}, None, None]
    harness.state("list", key="a").append(100)
    assert harness.state("list", key="a") == [3, 1], "what is given is a copy"
    with pytest.raises(KeyError, match="declared: list, map, max, sum"):
        harness.state("lists", key="a")


def test_looking_at_state_is_no_read_for_its_time_to_live() -> None:
    class Keep(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            descriptor = ValueStateDescriptor("kept")
            ttl = StateTtlConfig.new_builder(Time.milliseconds(10)).update_ttl_on_read_and_write().build()
            descriptor.enable_time_to_live(ttl)
            self._kept = runtime_context.get_state(descriptor)

        def process_element(self, value: Any, ctx: Any) -> None:
            self._kept.update(value)

    harness = KeyedProcessFunctionHarness(Keep(), KEY)
    harness.process_element(("a", 1))
    harness.advance(9)
    assert harness.state("kept", key="a") == ("a", 1)
    harness.advance(1)
    assert harness.state("kept", key="a") is None


class Match(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield "left", value, ctx.timestamp()

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield ODD, ("right", value)


def test_a_co_process_function() -> None:
    harness = CoProcessFunctionHarness(Match())
    harness.process_element1(1, 10)
    harness.process_element2(2)
    assert harness.output == [("left", 1, 10)]
    assert harness.side_output(ODD) == [("right", 2)]


class Join(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self._left = runtime_context.get_state(ValueStateDescriptor("left"))

    def process_element1(self, value: Any, ctx: Any) -> None:
        self._left.update(value["name"])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 100)

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield ctx.get_current_key(), self._left.value(), value[1]

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        self._left.clear()
        yield "expired", ctx.get_current_key()


def test_a_keyed_co_process_function_shares_state_between_its_inputs() -> None:
    harness = KeyedCoProcessFunctionHarness(Join(), lambda left: left["id"], KEY)
    harness.process_element1({"id": 7, "name": "Ada"}, 50)
    harness.process_element2((7, "pays"))
    harness.process_element2((8, "pays"))
    assert harness.take_output() == [(7, "Ada", "pays"), (8, None, "pays")]
    harness.process_watermark1(200)
    assert harness.output == [], "the other input holds event time back"
    harness.process_watermark2(149)
    assert harness.output == []
    harness.process_watermark2(150)
    assert harness.output == [("expired", 7)]
    assert harness.watermarks == [149, 150]
    assert harness.state("left", key=7) is None


def source() -> Any:
    return test_environment().from_collection([])


def test_a_window_of_a_program() -> None:
    late = OutputTag("late")
    windows = (
        source()
        .key_by(KEY)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .allowed_lateness(5)
        .side_output_late_data(late)
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    harness = harness_for(windows)
    assert type(harness) is OneInputHarness
    harness.process_element(("a", 1), 3)
    harness.process_element(("a", 2), 9)
    harness.process_element(("b", 4), 10)
    harness.process_watermark(9)
    assert harness.records == [Emitted(("a", 3), 9)]
    harness.process_element(("a", 10), 1)
    assert harness.output[1:] == [("a", 13)]
    harness.process_watermark(14)
    harness.process_element(("a", 100), 2)
    assert harness.side_output(late) == [("a", 100)]
    assert harness.counter("numLateRecords") == 1
    harness.finish()
    assert harness.output[2:] == [("b", 4)]


class Describe(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        per_window = context.window_state().get_state(ValueStateDescriptor("fired"))
        per_window.update((per_window.value() or 0) + 1)
        yield key, (context.window().start, context.window().end), len(list(elements))


def test_session_windows_and_their_state() -> None:
    sessions = source().key_by(KEY).window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
    harness = harness_for(sessions.reduce(lambda a, b: (a[0], a[1] + b[1])))
    harness.process_element(("a", 1), 0)
    harness.process_element(("a", 2), 15)
    assert harness.num_event_time_timers() == 2
    harness.process_element(("a", 4), 8)
    assert harness.event_time_timers == [Timer(24, "a")]
    harness.process_watermark(24)
    assert harness.output == [("a", 7)]
    assert harness.num_event_time_timers() == 0


def test_state_per_window() -> None:
    from firesteel.common.windows import TimeWindow

    tumbling = source().key_by(KEY).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    harness = harness_for(tumbling.allowed_lateness(100).process(Describe()))
    harness.process_element(("a", 1), 3)
    harness.process_watermark(9)
    harness.process_element(("a", 1), 4)
    assert harness.output == [("a", (0, 10), 1), ("a", (0, 10), 2)]
    assert harness.state("fired", key="a", window=TimeWindow(0, 10)) == 2
    assert harness.state("fired", key="a", window=TimeWindow(10, 20)) is None
    with pytest.raises(KeyError, match=r"declared: .*window/fired"):
        harness.state("fired", key="a")


def test_processing_time_windows() -> None:
    windows = source().key_by(KEY).window(TumblingProcessingTimeWindows.of(Time.seconds(5)))
    harness = harness_for(windows.reduce(lambda a, b: (a[0], a[1] + b[1])), clock=FakeClock(1000))
    harness.process_elements([("a", 1), ("a", 2)])
    harness.advance(3999)
    assert harness.output == [("a", 3)], "the window ends at 5000, its last timestamp is 4999"


def test_any_other_operator_of_a_program() -> None:
    stream = source()
    running = harness_for(stream.key_by(KEY).reduce(lambda a, b: (a[0], a[1] + b[1])))
    running.process_elements([("a", 1), ("b", 5), ("a", 2)])
    assert running.output == [("a", 1), ("b", 5), ("a", 3)]

    mapped = harness_for(stream.map(lambda value: value + 1).filter(lambda value: value > 2))
    mapped.process_elements([2, 3])
    assert mapped.output == [3], "only the last operator runs"

    typed = harness_for(stream.map(str, output_type=Types.INT()))
    with pytest.raises((TypeError, FiresteelError)):
        typed.process_element(1)

    class Both(CoMapFunction):
        def map1(self, value: Any) -> Any:
            return value

        def map2(self, value: Any) -> Any:
            return None if value == 0 else -value

    both = harness_for(stream.connect(stream).map(Both()))
    assert type(both) is TwoInputHarness
    both.process_element1(1)
    both.process_element2(2)
    both.process_element2(0)
    assert both.output == [1, -2]


def test_timestamps_and_watermarks_of_a_program() -> None:
    from firesteel.common import Duration, WatermarkStrategy

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(
        lambda value, _: value
    )
    harness = harness_for(source().assign_timestamps_and_watermarks(strategy))
    harness.process_elements([100, 90])
    assert harness.records == [(100, 100), (90, 90)]
    assert harness.watermarks == []
    harness.advance(200)
    assert harness.watermarks == [94]


def test_where_the_operator_is() -> None:
    class Where(ProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self._context = runtime_context

        def process_element(self, value: Any, ctx: Any) -> Any:
            context = self._context
            yield (
                context.get_index_of_this_subtask(),
                context.get_number_of_parallel_subtasks(),
                context.get_job_parameter("limit", "none"),
            )

    configuration = Configuration().set_string("pipeline.global-job-parameters", "limit:5")
    harness = ProcessFunctionHarness(Where(), parallelism=4, subtask=2, configuration=configuration)
    harness.process_element(0)
    assert harness.output == [(2, 4, "5")]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ProcessFunctionHarness(CountAndFlush()),  # type: ignore[arg-type]
        lambda: KeyedProcessFunctionHarness(Split(), KEY),  # type: ignore[arg-type]
        lambda: CoProcessFunctionHarness(Split()),  # type: ignore[arg-type]
        lambda: KeyedCoProcessFunctionHarness(Match(), KEY, KEY),  # type: ignore[arg-type]
        lambda: harness_for(source()),
        lambda: harness_for(source().key_by(KEY)),
        lambda: harness_for(source().map(str).get_side_output(ODD)),
    ],
)
def test_what_is_no_operator_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        wrong()


def test_rows_and_other_values_are_not_taken_for_side_outputs() -> None:
    class Emit(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            return [value, ("odd", value), Row(ODD, value), (ODD, value, value)]

    harness = ProcessFunctionHarness(Emit())
    harness.process_element(1)
    assert harness.output == [1, ("odd", 1), Row(ODD, 1), (ODD, 1, 1)]
    assert harness.side_output(ODD) == []
