"""Session windows: in whatever order records come, sessions are the connected parts of their windows."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common.time import Time
from firesteel.common.windows import TimeWindow
from firesteel.datastream.functions import AggregateFunction, ProcessWindowFunction
from firesteel.datastream.window import (
    CountTrigger,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
)
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.operators.window.merging_window_set import MergingWindowSet
from firesteel.runtime.operators.window.operator import WindowOperator
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.testing.operator_context import FakeOperatorContext


class Sorted(AggregateFunction):
    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        return [*accumulator, value]

    def get_result(self, accumulator: list[Any]) -> Any:
        return tuple(sorted(accumulator))

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        return acc_a + acc_b


class Describe(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        (contents,) = elements
        yield key, contents, (context.window().start, context.window().end)


def connected_components(records: list[tuple[str, int, int]]) -> Counter[Any]:
    """Sessions by definition: per key, (key, timestamp, gap) whose [ts, ts + gap] intersect, transitively."""
    sessions: list[tuple[str, list[Any]]] = []
    for record in records:
        key, timestamp, gap = record
        joined = [
            session
            for session in sessions
            if session[0] == key and any(timestamp <= ts + g and ts <= timestamp + gap for _, ts, g in session[1])
        ]
        members = [record, *(member for session in joined for member in session[1])]
        sessions = [session for session in sessions if session not in joined] + [(key, members)]
    return Counter(
        (key, tuple(sorted(members)), (min(r[1] for r in members), max(r[1] + r[2] for r in members)))
        for key, members in sessions
    )


def run(assigner: Any, records: list[Any], batches: int, watermarks: list[int], lateness: int = 0) -> Counter[Any]:
    context = FakeOperatorContext(lambda record: record[0])
    operator = WindowOperator(
        WindowSpec(
            assigner=assigner,
            trigger=EventTimeTrigger(),
            aggregation="aggregate",
            aggregate_function=Sorted(),
            window_function=Describe(),
            allowed_lateness=lateness,
        )
    )
    operator.open(context)
    size = max(1, len(records) // batches)
    for start in range(0, len(records), size):
        part = records[start : start + size]
        operator.process_batch(part, [record[1] for record in part])
        if watermarks:
            operator.process_watermark(watermarks.pop(0))
    operator.process_watermark(MAX_WATERMARK)
    assert len(context.timer_services["window-timers"].event) == 0
    if lateness == 0:
        assert context.stored("window-contents") == {}
        assert context.stored("merging-window-set") == {}
    return Counter(value for value, _ in context.output)


GAP = 5
fixed_gap = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-40, 40), st.just(GAP)), max_size=25)
any_gap = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-40, 40), st.integers(1, 15)), max_size=25)


@settings(max_examples=200, deadline=None)
@given(fixed_gap, st.integers(1, 5))
def test_sessions_are_connected_components(records: list[Any], batches: int) -> None:
    assigner = EventTimeSessionWindows.with_gap(Time.milliseconds(GAP))
    assert run(assigner, records, batches, []) == connected_components(records)


@settings(max_examples=200, deadline=None)
@given(any_gap, st.integers(1, 5), st.randoms(use_true_random=False))
def test_sessions_do_not_depend_on_the_order_of_arrival(records: list[Any], batches: int, random: Any) -> None:
    assigner = DynamicEventTimeSessionWindows.with_dynamic_gap(lambda record: record[2])
    expected = connected_components(records)
    assert run(assigner, records, batches, []) == expected
    shuffled = list(records)
    random.shuffle(shuffled)
    assert run(assigner, shuffled, batches, []) == expected


@settings(max_examples=200, deadline=None)
@given(any_gap, st.integers(1, 6), st.lists(st.integers(-50, 60), max_size=6).map(sorted))
def test_with_enough_lateness_every_session_fires_as_a_whole(
    records: list[Any], batches: int, watermarks: list[int]
) -> None:
    """Sessions fire early, and again as they grow and merge; in the end each has fired as a whole."""
    assigner = DynamicEventTimeSessionWindows.with_dynamic_gap(lambda record: record[2])
    fired = run(assigner, records, batches, watermarks, lateness=10_000)
    for session in connected_components(records):
        assert fired[session] >= 1


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(-40, 40), st.integers(1, 15)), max_size=25))
def test_the_window_set_covers_its_windows_without_overlap(pairs: list[tuple[int, int]]) -> None:
    state = Stored()
    assigner = EventTimeSessionWindows.with_gap(Time.milliseconds(1))
    contents: dict[TimeWindow, int] = {}

    def merge(result: Any, merged: list[Any], state_window: Any, state_windows: list[Any]) -> None:
        assert state_window not in state_windows
        for window in state_windows:
            contents[state_window] += contents.pop(window)

    for start, length in pairs:
        windows = MergingWindowSet(assigner, state)
        window = TimeWindow(start, start + length)
        actual = windows.add_window(window, merge)
        assert actual.start <= window.start
        assert actual.end >= window.end
        state_window = windows.get_state_window(actual)
        contents[state_window] = contents.get(state_window, 0) + 1  # type: ignore[index]
        windows.persist()
    in_flight = sorted(MergingWindowSet(assigner, state).mapping)
    assert all(a.end < b.start for a, b in pairwise(in_flight))
    assert sorted(contents) == sorted(MergingWindowSet(assigner, state).mapping.values())
    assert sum(contents.values()) == len(pairs)


class Stored:
    """A value state of one key."""

    def __init__(self) -> None:
        self.stored: Any = None

    def value(self) -> Any:
        return self.stored

    def update(self, value: Any) -> None:
        self.stored = value


def test_a_growing_session_does_not_move_its_contents() -> None:
    state = Stored()
    assigner = EventTimeSessionWindows.with_gap(Time.milliseconds(10))
    windows = MergingWindowSet(assigner, state)
    moves: list[Any] = []
    for time in range(0, 50, 5):
        windows.add_window(TimeWindow(time, time + 10), lambda *merge: moves.append(merge[3]))
    assert windows.mapping == {TimeWindow(0, 55): TimeWindow(0, 10)}
    assert moves == [[]] * 9


def test_count_triggers_of_sessions_leave_nothing_behind() -> None:
    context = FakeOperatorContext(lambda record: record[0])
    operator = WindowOperator(
        WindowSpec(
            EventTimeSessionWindows.with_gap(Time.milliseconds(10)),
            CountTrigger.of(3),
            aggregation="reduce",
            aggregate_function=lambda a, b: (a[0], a[1] + b[1]),
        )
    )
    operator.open(context)
    operator.process_batch([("a", 1), ("a", 2), ("a", 4), ("b", 8)], [0, 16, 8, 3])
    assert context.take_output() == [(("a", 7), 25)]
    operator.process_watermark(MAX_WATERMARK)
    assert context.backend is not None
    assert [entry for name in context.backend.descriptors() for entry in context.backend.entries(name)] == []


def _sum_sessions(lateness: int) -> tuple[WindowOperator, FakeOperatorContext]:
    context = FakeOperatorContext(lambda record: record[0])
    operator = WindowOperator(
        WindowSpec(
            EventTimeSessionWindows.with_gap(Time.milliseconds(10)),
            EventTimeTrigger(),
            aggregation="reduce",
            aggregate_function=lambda a, b: (a[0], a[1] + b[1]),
            allowed_lateness=lateness,
        )
    )
    operator.open(context)
    return operator, context


def test_a_session_has_timers_for_its_present_end_only() -> None:
    operator, context = _sum_sessions(lateness=3)
    operator.process_batch([("a", 1)] * 10, list(range(0, 50, 5)))
    end = TimeWindow(0, 55)
    assert context.timer_services["window-timers"].event.timers() == [(54, "a", end), (57, "a", end)]


def test_a_late_record_is_not_kept_in_the_window_set() -> None:
    operator, context = _sum_sessions(lateness=0)
    operator.process_watermark(100)
    operator.process_batch([("a", 1)], [20])
    assert context.counter("numLateRecords").count == 1
    assert context.stored("merging-window-set") == {}
