"""Window joins and co-groups: pairs, groups, keys, functions, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream import CoGroupFunction, DataStream, FlatJoinFunction, JoinFunction, KeySelector
from firesteel.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.testing import OneInputHarness, collect, harness_for, test_environment

ORDERS: list[tuple[Any, ...]] = [("a", "pen", 1), ("a", "ink", 4), ("b", "cap", 12), ("a", "mug", 15)]
PAYMENTS: list[tuple[Any, ...]] = [(3, "a", 9), (5, "a", 2), (7, "b", 19), (8, "c", 3)]


def _streams() -> tuple[Any, Any]:
    env = test_environment()
    by_time = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda record, _: record[2])
    orders, payments = (env.from_collection(records) for records in (ORDERS, PAYMENTS))
    return orders.assign_timestamps_and_watermarks(by_time), payments.assign_timestamps_and_watermarks(by_time)


def _joined(assigner: Any) -> Any:
    orders, payments = _streams()
    return orders.join(payments).where(lambda order: order[0]).equal_to(lambda paid: paid[1]).window(assigner)


def _grouped(assigner: Any) -> Any:
    orders, payments = _streams()
    return orders.co_group(payments).where(lambda order: order[0]).equal_to(lambda paid: paid[1]).window(assigner)


def _feed(stream: DataStream) -> OneInputHarness:
    """A harness of the window, fed with the tagged records."""
    harness: OneInputHarness = harness_for(stream)
    for tag, records in enumerate((ORDERS, PAYMENTS)):
        for record in records:
            harness.process_element((tag, record), record[2])
    return harness


def _pair(order: Any, paid: Any) -> Any:
    return order[1], paid[0]


@pytest.mark.parametrize(
    ("assigner", "expected"),
    [
        (TumblingEventTimeWindows.of(10), [("ink", 3), ("ink", 5), ("pen", 3), ("pen", 5), ("cap", 7)]),
        (
            SlidingEventTimeWindows.of(10, 5),
            [("ink", 5), ("pen", 5), ("ink", 3), ("ink", 5), ("pen", 3), ("pen", 5), ("cap", 7)],
        ),
        (EventTimeSessionWindows.with_gap(4), [("ink", 5), ("pen", 5)]),
        (EventTimeSessionWindows.with_gap(8), [(n, p) for n in ("pen", "ink", "mug") for p in (3, 5)] + [("cap", 7)]),
    ],
)
def test_each_pair_of_a_window(assigner: Any, expected: list[Any]) -> None:
    assert sorted(collect(_joined(assigner).apply(_pair))) == sorted(expected)


def test_results_have_the_last_timestamp_of_the_window() -> None:
    with _feed(_joined(TumblingEventTimeWindows.of(10)).apply(_pair)) as harness:
        harness.process_watermark(9)
        assert {record.timestamp for record in harness.records} == {9}


class Pair(JoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return _pair(first, second)


class Expensive(FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        if second[0] > 3:
            yield first[1]


class Nothing(FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return None


def test_kinds_of_join_functions() -> None:
    windows = TumblingEventTimeWindows.of(10)
    assert sorted(collect(_joined(windows).apply(Pair()))) == sorted(collect(_joined(windows).apply(_pair)))
    assert sorted(collect(_joined(windows).apply(Expensive(), Types.STRING()))) == ["cap", "ink", "pen"]
    assert collect(_joined(windows).apply(Nothing())) == []


class OuterJoin(CoGroupFunction):
    def __init__(self) -> None:
        self.is_open = False

    def open(self, runtime_context: Any) -> None:
        self.is_open = True

    def co_group(self, first: list[Any], second: list[Any]) -> Iterable[Any]:
        assert self.is_open
        for order in first or [(None, None)]:
            for paid in second or [(None, None)]:
                yield order[1], paid[0]


def test_an_outer_join() -> None:
    results = collect(_grouped(TumblingEventTimeWindows.of(10)).apply(OuterJoin()))
    expected = [("pen", 3), ("pen", 5), ("ink", 3), ("ink", 5), ("cap", 7), ("mug", None), (None, 8)]
    assert sorted(map(str, results)) == sorted(map(str, expected))


def test_a_function_that_returns_a_list_or_none() -> None:
    stream = _grouped(TumblingEventTimeWindows.of(10)).apply(
        lambda orders, payments: [len(orders) - len(payments)] if orders else None
    )
    assert sorted(collect(stream)) == [0, 0, 1]


def test_trigger_evictor_and_lateness() -> None:
    joined = _joined(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(3))).evictor(CountEvictor.of(2))
    with harness_for(joined.apply(_pair)) as harness:
        harness.process_element((0, ("a", "pen", 0)), 0)
        harness.process_element((0, ("a", "ink", 0)), 0)
        harness.process_element((1, (3, "a", 0)), 0)
        assert harness.output == [("ink", 3)]
    late = _joined(TumblingEventTimeWindows.of(10)).allowed_lateness(5)
    with _feed(late.apply(_pair)) as harness:
        harness.process_watermark(9)
        assert len(harness.take_output()) == 4
        harness.process_element((0, ("a", "late", 3)), 3)
        assert len(harness.take_output()) == 6
        harness.process_watermark(14)
        harness.process_element((0, ("a", "too late", 3)), 3)
        assert harness.output == []
        assert harness.counter("numLateRecordsDropped") == 1


def test_settings_leave_what_they_are_called_on_as_it_is() -> None:
    windows = _joined(GlobalWindows.create())
    windows.trigger(CountTrigger.of(2))
    with harness_for(windows.apply(_pair)) as harness:
        harness.process_element((0, ("a", "pen", 0)), 0)
        harness.process_element((1, (3, "a", 0)), 0)
        assert harness.output == []


def test_processing_time() -> None:
    with harness_for(_joined(TumblingProcessingTimeWindows.of(10)).apply(_pair)) as harness:
        harness.process_element((0, ("a", "pen", 0)))
        harness.process_element((1, (3, "a", 0)))
        harness.process_element((1, (4, "b", 0)))
        harness.advance(10)
        assert harness.output == [("pen", 3)]


class ByMember(KeySelector):
    def __init__(self, place: int):
        self.place: Any = None
        self.given = place

    def open(self, runtime_context: Any) -> None:
        self.place = self.given

    def get_key(self, value: Any) -> Any:
        return value[self.place]


def test_key_selectors_are_opened() -> None:
    orders, payments = _streams()
    joined = orders.join(payments).where(ByMember(0), Types.STRING()).equal_to(lambda paid: paid[1], Types.STRING())
    assert len(collect(joined.window(TumblingEventTimeWindows.of(10)).apply(_pair))) == 5


def test_a_join_function_may_change_its_arguments() -> None:
    def mark(one: list[Any], two: list[Any]) -> Any:
        one.append("one")
        two.append("two")
        return one, two

    windows = _joined(TumblingEventTimeWindows.of(10)).apply(mark)
    with harness_for(windows) as harness:
        for record in ((0, ["a", 1]), (0, ["a", 2]), (1, [3, "a"]), (1, [4, "a"])):
            harness.process_element(record, 1)
        harness.process_watermark(9)
        assert harness.output == [(["a", one, "one"], [two, "a", "two"]) for one in (1, 2) for two in (3, 4)]


def test_what_is_refused() -> None:
    orders, payments = _streams()
    with pytest.raises(TypeError, match="join needs a DataStream"):
        orders.join("payments")
    with pytest.raises(InvalidProgramError, match="same StreamExecutionEnvironment"):
        orders.co_group(_streams()[1])
    with pytest.raises(TypeError, match="where needs a KeySelector or a callable"):
        orders.join(payments).where("key")
    with pytest.raises(InvalidProgramError, match="different types"):
        orders.join(payments).where(_pair, Types.STRING()).equal_to(_pair, Types.INT())
    with pytest.raises(TypeError, match="JoinFunction or a callable"):
        _joined(TumblingEventTimeWindows.of(10)).apply(OuterJoin())
    with pytest.raises(TypeError, match="CoGroupFunction or a callable"):
        _grouped(TumblingEventTimeWindows.of(10)).apply(Pair())
    with pytest.raises(TypeError, match="WindowAssigner is needed"):
        _joined("tumbling").apply(_pair)
