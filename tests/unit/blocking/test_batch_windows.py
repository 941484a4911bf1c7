"""Windows in a batch: all fire at the end of their key, from the earliest to the latest, and nothing is late."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from firesteel.common.time import Time
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.datastream.windowing.triggers import ContinuousEventTimeTrigger
from firesteel.execution.stages.errors import StageTaskError
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.testing.clock import FakeClock
from tests.support.epochs.driven_batches import DrivenBatch, given, graph_of, run

Stamped = list[tuple[Any, int]]


class Contents(ProcessWindowFunction):
    """Emits a window whole, with all its context tells; counts the key's windows."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        assert context.current_watermark() == MAX_WATERMARK
        window = context.window()
        yield key, (window.start, window.end), list(elements), count


def windows_of(assigner: Any, *lists: Stamped, parallelism: int = 1) -> list[Any]:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, *lists, timestamps=True).key_by(lambda value: value[0])
        return keyed.window(assigner).process(Contents())

    return run(build, parallelism)


def test_tumbling_windows_of_a_key_fire_in_order() -> None:
    results = windows_of(
        TumblingEventTimeWindows.of(Time.milliseconds(10)),
        [("a1", 25), ("a2", 3), ("b1", 4)],
        [("a3", 9), ("a4", 3), ("a5", 31)],
        parallelism=2,
    )
    assert [result for result in results if result[0] == "a"] == [
        ("a", (0, 10), ["a2", "a4", "a3"], 1),
        ("a", (20, 30), ["a1"], 2),
        ("a", (30, 40), ["a5"], 3),
    ]
    assert ("b", (0, 10), ["b1"], 1) in results


def test_sliding_windows_overlap() -> None:
    results = windows_of(
        SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5)), [("a1", 12), ("a2", 3), ("a3", 7)]
    )
    assert [(window, values) for _, window, values, _ in results] == [
        ((-5, 5), ["a2"]),
        ((0, 10), ["a2", "a3"]),
        ((5, 15), ["a3", "a1"]),
        ((10, 20), ["a1"]),
    ]


def test_sliding_windows_with_gaps_leave_records_out() -> None:
    results = windows_of(
        SlidingEventTimeWindows.of(Time.milliseconds(2), Time.milliseconds(10)),
        [("a0", 0), ("a5", 5), ("a21", 21), ("a22", 22)],
    )
    assert [(window, values) for _, window, values, _ in results] == [((0, 2), ["a0"]), ((20, 22), ["a21"])]


@settings(max_examples=60, deadline=None)
@drawn(
    records=st.lists(st.tuples(st.sampled_from("ab"), st.integers(-50, 50)), min_size=1, max_size=30),
    size=st.integers(1, 12),
    slide=st.integers(1, 12),
    offset=st.integers(0, 5),
)
def test_sorted_windows_are_what_the_assigner_says(
    records: list[tuple[str, int]], size: int, slide: int, offset: int
) -> None:
    offset %= slide
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(slide), Time.milliseconds(offset))
    stamped = [((key, number), time) for number, (key, time) in enumerate(records)]
    expected: dict[Any, list[Any]] = defaultdict(list)
    for value, time in sorted(stamped, key=lambda record: record[1]):
        for window in assigner.assign_windows(value, time, None):
            expected[value[0], window.start, window.end].append(value)
    found = {(key, *window): values for key, window, values, _ in windows_of(assigner, stamped)}
    assert found == expected


class Total(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + value[1]

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, left: int, right: int) -> int:
        return left + right


def test_aggregates_and_reduces_of_windows() -> None:
    records = [(("a", number), number) for number in range(25)]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, records, timestamps=True).key_by(lambda value: value[0])
        windowed = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        totals = windowed.aggregate(Total())
        reduced = windowed.reduce(lambda left, right: (left[0], left[1] + right[1]))
        return totals.union(reduced.map(lambda value: value[1] * 1000))

    assert sorted(run(build)) == [45, 110, 145, 45_000, 110_000, 145_000]


def test_session_windows_merge() -> None:
    results = windows_of(
        EventTimeSessionWindows.with_gap(Time.milliseconds(5)), [("a1", 20), ("a2", 1), ("a3", 4), ("a4", 9)]
    )
    assert [(window, values) for _, window, values, _ in results] == [
        ((1, 14), ["a2", "a3", "a4"]),
        ((20, 25), ["a1"]),
    ]


def test_count_windows_fire_when_they_are_full() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, ["a1", "b1", "a2", "a3"]).key_by(lambda value: value[0])
        return keyed.count_window(2).reduce(lambda left, right: left + right)

    assert run(build) == ["a1a2"]


def test_global_windows_with_a_trigger() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, [f"a{number}" for number in range(5)]).key_by(lambda value: value[0])
        windowed = keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2)))
        return windowed.reduce(lambda left, right: left + right)

    assert run(build) == ["a0a1", "a2a3"]


def test_processing_time_windows_fire_at_the_end_of_the_key() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, ["a1", "b1", "a2"]).key_by(lambda value: value[0])
        windowed = keyed.window(TumblingProcessingTimeWindows.of(Time.hours(1)))
        return windowed.reduce(lambda left, right: left + right)

    assert sorted(run(build, clock=FakeClock(7_200_000))) == ["a1a2", "b1"]


def test_a_trigger_that_always_sets_the_next_timer_ends() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, [("a1", 1), ("a2", 2)], timestamps=True).key_by(lambda value: value[0])
        windowed = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(1000)))
        trigger = ContinuousEventTimeTrigger.of(Time.milliseconds(10))
        return windowed.trigger(trigger).reduce(lambda left, right: left + right)

    # at its first interval, and at its end
    assert run(build) == ["a1a2", "a1a2"]


class AllContents(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield context.window().start, list(elements)


def test_windows_of_all_records_are_sorted_by_time() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        records = given(env, [("a", 5), ("b", 12)], [("c", 1), ("d", 4)], timestamps=True)
        return records.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(AllContents())

    assert run(build, 2) == [(0, ["c", "d", "a"]), (10, ["b"])]


def test_nothing_is_late() -> None:
    late = OutputTag("late")
    records = [("a1", 100), ("a2", 1), ("a3", 101), ("a4", 2)]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, records, timestamps=True).key_by(lambda value: value[0])
        windowed = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).side_output_late_data(late)
        main = windowed.allowed_lateness(5).reduce(lambda left, right: left + right)
        return main.union(main.get_side_output(late).map(lambda value: f"late {value}"))

    batch = DrivenBatch(graph_of(build))
    assert batch.run() == ["a2a4", "a1a3"]
    assert {report.accumulators.get("numLateRecords") for report in batch.reports} == {None, 0}


def test_a_window_of_reduced_values_takes_them_all() -> None:
    """The result of a reduce has the highest timestamp there is."""

    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, [("a", 1), ("b", 2)], timestamps=True).key_by(lambda value: value)
        totals = keyed.reduce(lambda left, _right: left)
        return totals.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(AllContents())

    ((start, values),) = run(build)
    assert start <= MAX_WATERMARK
    assert sorted(values) == ["a", "b"]


@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows, EventTimeSessionWindows])
def test_a_record_without_a_timestamp_is_refused(assigner: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        windows = assigner.of if hasattr(assigner, "of") else assigner.with_gap
        keyed = given(env, ["a"]).key_by(lambda value: value)
        return keyed.window(windows(Time.milliseconds(10))).reduce(lambda left, _right: left)

    with pytest.raises(StageTaskError, match="assign_timestamps_and_watermarks"):
        run(build)
