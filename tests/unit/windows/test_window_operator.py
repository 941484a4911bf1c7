"""What the window operators give to user functions, and what they do with what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.api.output_tag import OutputTag
from firesteel.api.state import ReducingStateDescriptor, ValueStateDescriptor
from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.common.time import Time
from firesteel.common.windows import TimeWindow, TriggerResult
from firesteel.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from firesteel.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
)
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.operators.window.aligned import AlignedWindowOperator
from firesteel.runtime.operators.window.operator import WindowOperator
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.testing.operator_context import FakeOperatorContext

SIDE = OutputTag("side")
BOTH = pytest.mark.parametrize("operator_class", [WindowOperator, AlignedWindowOperator])


def tumbling(**fields: Any) -> WindowSpec:
    return WindowSpec(TumblingEventTimeWindows.of(Time.milliseconds(10)), EventTimeTrigger(), **fields)


def opened(operator: Any, key: Any = lambda record: record[0]) -> FakeOperatorContext:
    context = FakeOperatorContext(key)
    operator.open(context)
    return context


def add(a: Any, b: Any) -> Any:
    return a[0], a[1] + b[1]


class Add(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return add(value1, value2)


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Apply(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        return [(key, window.start, list(inputs))]


class ApplyAll(AllWindowFunction):
    def apply(self, window: Any, inputs: Any) -> Any:
        return [(window.start, list(inputs))]


class Process(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window().start, list(elements)


class ProcessAll(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Any) -> Any:
        yield context.window().start, list(elements)


RECORDS = [("a", 1), ("b", 2), ("a", 4)]


@BOTH
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"aggregation": "reduce", "aggregate_function": add}, [("a", 5), ("b", 2)]),
        ({"aggregation": "reduce", "aggregate_function": Add()}, [("a", 5), ("b", 2)]),
        ({"aggregation": "aggregate", "aggregate_function": Count()}, [2, 1]),
        (
            {"aggregation": "reduce", "aggregate_function": add, "window_function": Apply()},
            [("a", 0, [("a", 5)]), ("b", 0, [("b", 2)])],
        ),
        (
            {"aggregation": "aggregate", "aggregate_function": Count(), "window_function": Process()},
            [("a", 0, [2]), ("b", 0, [1])],
        ),
        ({"window_function": Apply()}, [("a", 0, [("a", 1), ("a", 4)]), ("b", 0, [("b", 2)])]),
        ({"window_function": Process()}, [("a", 0, [("a", 1), ("a", 4)]), ("b", 0, [("b", 2)])]),
    ],
)
def test_keyed_windows_call_each_kind_of_function(
    operator_class: Any, fields: dict[str, Any], expected: list[Any]
) -> None:
    operator = operator_class(tumbling(**fields))
    context = opened(operator)
    operator.process_batch(RECORDS, [1, 2, 3])
    operator.process_watermark(9)
    assert context.output == [(value, 9) for value in expected]
    assert context.watermarks == [9]


@BOTH
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"window_function": ApplyAll()}, (0, RECORDS)),
        ({"window_function": ProcessAll()}, (0, RECORDS)),
        (
            {"aggregation": "aggregate", "aggregate_function": Count(), "window_function": ApplyAll()},
            (0, [3]),
        ),
        (
            {"aggregation": "aggregate", "aggregate_function": Count(), "window_function": ProcessAll()},
            (0, [3]),
        ),
        ({"aggregation": "aggregate", "aggregate_function": Count()}, 3),
    ],
)
def test_all_windows_call_each_kind_of_function(operator_class: Any, fields: dict[str, Any], expected: Any) -> None:
    operator = operator_class(tumbling(all_windows=True, **fields))
    context = opened(operator, lambda _: 0)
    operator.process_batch(RECORDS, [1, 2, 3])
    operator.process_watermark(9)
    assert context.output == [(expected, 9)]


class WithState(ProcessWindowFunction):
    """Counts firings per window and per key, under one name, beside a state held since open."""

    def open(self, runtime_context: Any) -> None:
        self.held = runtime_context.get_state(ValueStateDescriptor("firings"))
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        per_window = context.window_state().get_state(ValueStateDescriptor("firings"))
        per_key = context.global_state().get_state(ValueStateDescriptor("firings"))
        per_window.update((per_window.value() or 0) + 1)
        per_key.update((per_key.value() or 0) + 1)
        assert self.held.value() == per_key.value()
        yield key, context.window().start, per_window.value(), per_key.value()
        yield SIDE, context.current_watermark()
        yield SIDE, context.current_processing_time()

    def clear(self, context: Any) -> None:
        context.window_state().get_state(ValueStateDescriptor("firings")).clear()


@BOTH
def test_window_state_global_state_and_side_output(operator_class: Any) -> None:
    function = WithState()
    operator = operator_class(tumbling(window_function=function, allowed_lateness=100))
    context = opened(operator)
    context.clock.advance_to(77)
    operator.process_batch([("a", 1), ("a", 1), ("b", 1)], [1, 11, 1])
    operator.process_watermark(19)
    assert context.take_output() == [(("a", 0, 1, 1), 9), (("b", 0, 1, 1), 9), (("a", 10, 1, 2), 19)]
    assert context.take_side_output(SIDE) == [(19, 9), (77, 9), (19, 9), (77, 9), (19, 19), (77, 19)]
    operator.process_batch([("a", 1)], [2])
    assert context.take_output() == [(("a", 0, 2, 3), 9)]
    operator.process_watermark(MAX_WATERMARK)
    assert context.take_output() == []
    assert context.stored("window/firings") == {}
    assert context.stored("firings") == {None: {"a": 3, "b": 1}}
    operator.close()
    assert function.closed == 1


def test_per_window_state_is_refused_where_windows_merge() -> None:
    operator = WindowOperator(
        WindowSpec(
            EventTimeSessionWindows.with_gap(Time.milliseconds(10)),
            EventTimeTrigger(),
            window_function=WithState(),
        )
    )
    opened(operator)
    operator.process_batch([("a", 1)], [1])
    with pytest.raises(FiresteelError, match="merging windows"):
        operator.process_watermark(MAX_WATERMARK)


class Returns(ProcessWindowFunction):
    def __init__(self, result: Any):
        self.result = result

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        return self.result


@BOTH
@pytest.mark.parametrize("wrong", [5, "text", b"bytes", 1.5])
def test_a_result_that_is_no_iterable_is_an_error_with_a_hint(operator_class: Any, wrong: Any) -> None:
    operator = operator_class(tumbling(window_function=Returns(wrong)))
    opened(operator)
    operator.process_batch([("a", 1)], [1])
    with pytest.raises(FiresteelError) as raised:
        operator.process_watermark(9)
    assert type(wrong).__name__ in raised.value.message
    assert raised.value.hint is not None
    assert "yield" in raised.value.hint


@BOTH
def test_no_result_and_many_results(operator_class: Any) -> None:
    operator = operator_class(tumbling(window_function=Returns(None)))
    context = opened(operator)
    operator.process_batch([("a", 1)], [1])
    operator.process_watermark(9)
    assert context.output == []
    operator = operator_class(tumbling(window_function=Returns(range(10_000))))
    context = opened(operator)
    operator.process_batch([("a", 1)], [1])
    operator.process_watermark(9)
    assert [value for value, _ in context.output] == list(range(10_000))


@BOTH
def test_an_aggregate_of_none_is_not_emitted(operator_class: Any) -> None:
    class Odd(Count):
        def get_result(self, accumulator: int) -> Any:
            return accumulator if accumulator % 2 else None

    operator = operator_class(tumbling(aggregation="aggregate", aggregate_function=Odd()))
    context = opened(operator)
    operator.process_batch(RECORDS, [1, 2, 3])
    operator.process_watermark(9)
    assert context.output == [(1, 9)]


@BOTH
def test_late_records_are_counted_whether_dropped_or_sent_on(operator_class: Any) -> None:
    for tag, dropped in ((None, 2), (SIDE, 0)):
        operator = operator_class(tumbling(aggregation="reduce", aggregate_function=add, late_tag=tag))
        context = opened(operator)
        operator.process_watermark(9)
        operator.process_batch(RECORDS, [5, 15, 6])
        assert context.counter("numLateRecords").count == 2
        assert context.counter("numLateRecordsDropped").count == dropped
        assert context.take_side_output(SIDE) == ([] if tag is None else [(("a", 1), 5), (("a", 4), 6)])


@BOTH
def test_windows_fire_in_the_order_of_their_ends(operator_class: Any) -> None:
    operator = operator_class(tumbling(window_function=Process()))
    context = opened(operator)
    operator.process_batch([("a", 1)] * 4, [35, 5, 25, 15])
    operator.process_watermark(MAX_WATERMARK)
    assert [timestamp for _, timestamp in context.output] == [9, 19, 29, 39]


@BOTH
def test_a_window_gets_its_records_in_the_order_they_came(operator_class: Any) -> None:
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(2), Time.milliseconds(1))
    operator = operator_class(WindowSpec(assigner, EventTimeTrigger(), window_function=Process()))
    context = opened(operator)
    operator.process_batch([("a", 1), ("a", 2), ("a", 3)], [0, 1, 0])
    operator.process_watermark(1)
    assert [value for value, _ in context.output] == [
        ("a", -1, [("a", 1), ("a", 3)]),
        ("a", 0, [("a", 1), ("a", 2), ("a", 3)]),
    ]


@BOTH
def test_a_watermark_that_does_not_advance_fires_nothing_twice(operator_class: Any) -> None:
    operator = operator_class(tumbling(window_function=Process(), allowed_lateness=50))
    context = opened(operator)
    operator.process_batch([("a", 1)], [5])
    operator.process_watermark(9)
    operator.process_watermark(9)
    assert len(context.output) == 1
    assert context.watermarks == [9, 9]


@BOTH
def test_an_empty_batch_is_nothing(operator_class: Any) -> None:
    operator = operator_class(tumbling(window_function=Process()))
    context = opened(operator)
    operator.process_batch([], [])
    operator.process_batch([], None)
    operator.process_watermark(MAX_WATERMARK)
    assert context.output == []


@BOTH
def test_records_without_timestamps_give_the_assigners_error(operator_class: Any) -> None:
    operator = operator_class(tumbling(window_function=Process()))
    opened(operator)
    with pytest.raises(FiresteelError) as raised:
        operator.process_batch([("a", 1)], None)
    assert raised.value.hint is not None
    assert "assign_timestamps_and_watermarks" in raised.value.hint


def test_no_state_and_no_timer_is_left_after_the_windows_end() -> None:
    operator = WindowOperator(tumbling(window_function=Process(), allowed_lateness=5))
    context = opened(operator)
    operator.process_batch([(key, 1) for key in range(50)], list(range(50)))
    operator.process_watermark(30)
    assert len(context.timer_services["window-timers"].event) > 0
    operator.process_watermark(1000)
    assert len(context.timer_services["window-timers"].event) == 0
    assert context.backend is not None
    assert [entry for name in context.backend.descriptors() for entry in context.backend.entries(name)] == []


class SharedName(ProcessWindowFunction):
    """Holds a state that has the same name and kind as the trigger's own."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_reducing_state(ReducingStateDescriptor("count", lambda a, b: a + b))

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        self.count.add(100)
        yield self.count.get()


def test_a_triggers_state_does_not_mix_with_a_functions_state_of_the_same_name() -> None:
    operator = WindowOperator(WindowSpec(GlobalWindows.create(), CountTrigger.of(2), window_function=SharedName()))
    context = opened(operator)
    operator.process_batch([("a", 1)] * 4, None)
    assert [value for value, _ in context.output] == [100, 200]


class Forgetful(Trigger[Any, TimeWindow]):
    """A trigger that leaves its timers behind when windows merge."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        ctx.get_metric_group().counter("elements").inc()
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Any) -> None:
        pass


def test_a_timer_of_a_window_that_was_merged_away_is_ignored() -> None:
    operator = WindowOperator(
        WindowSpec(EventTimeSessionWindows.with_gap(Time.milliseconds(10)), Forgetful(), window_function=Process())
    )
    context = opened(operator)
    operator.process_batch([("a", 1), ("a", 2)], [0, 5])
    operator.process_watermark(9)
    assert context.output == []
    operator.process_watermark(14)
    assert context.output == [(("a", 0, [("a", 1), ("a", 2)]), 14)]
    assert context.counter("elements").count == 2


@pytest.mark.parametrize(
    "spec",
    [
        tumbling(),
        tumbling(aggregation="fold", aggregate_function=add),
        tumbling(window_function=object()),
        tumbling(window_function=Process(), allowed_lateness=-1),
    ],
)
@BOTH
def test_a_spec_that_cannot_run_is_refused(operator_class: Any, spec: WindowSpec) -> None:
    with pytest.raises(InvalidProgramError):
        operator_class(spec)


@BOTH
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("count", [3, 30])
def test_a_failing_aggregate_can_be_explained(operator_class: Any, width: int, count: int) -> None:
    """The current key and the local ``value`` of the operator's innermost frame name the record at fault."""

    class Fails(Count):
        def add(self, value: Any, accumulator: int) -> int:
            return accumulator + 1 // value[1]

    assigner = SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(40 // width))
    operator = operator_class(
        WindowSpec(assigner, EventTimeTrigger(), aggregation="aggregate", aggregate_function=Fails())
    )
    context = opened(operator)
    records = [(f"k{i}", 1 if i != count - 2 else 0) for i in range(count)]
    with pytest.raises(ZeroDivisionError) as raised:
        operator.process_batch(records, [5] * count)
    trace, innermost = raised.value.__traceback__, None
    while trace is not None:
        innermost = trace.tb_frame if trace.tb_frame.f_locals.get("self") is operator else innermost
        trace = trace.tb_next
    assert innermost is not None
    assert innermost.f_locals["value"] == (f"k{count - 2}", 0)
    assert context.backend is not None
    assert context.backend.key == f"k{count - 2}"


def test_merging_windows_need_a_trigger_that_can_merge() -> None:
    assigner = EventTimeSessionWindows.with_gap(Time.milliseconds(10))
    with pytest.raises(InvalidProgramError, match="NeverTrigger cannot merge"):
        WindowOperator(WindowSpec(assigner, NeverTrigger(), window_function=Process()))


@BOTH
def test_windows_are_keyed_state(operator_class: Any) -> None:
    operator = operator_class(tumbling(aggregation="reduce", aggregate_function=add, allowed_lateness=50))
    context = opened(operator)
    operator.process_batch(RECORDS, [1, 2, 13])
    operator.process_watermark(9)
    assert context.stored("window-contents") == {
        TimeWindow(0, 10): {"a": ("a", 1), "b": ("b", 2)},
        TimeWindow(10, 20): {"a": ("a", 4)},
    }
