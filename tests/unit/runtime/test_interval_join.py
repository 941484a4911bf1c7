"""Interval joins: bounds, late records, what is buffered for how long, and restored state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Duration
from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.common.time import Time
from firesteel.datastream import OutputTag
from firesteel.datastream.functions import ProcessJoinFunction
from firesteel.runtime.operators.join_buffers import SortedJoinBuffer
from firesteel.testing import TwoInputHarness, harness_for, test_environment

LATE_LEFT, LATE_RIGHT = OutputTag("late left"), OutputTag("late right")
LEFT, RIGHT = "LEFT_BUFFER", "RIGHT_BUFFER"
every_backend = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])


class Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        yield left, right


def join(lower: Any, upper: Any, function: ProcessJoinFunction | None = None, **settings: Any) -> TwoInputHarness:
    """A join of records by their first member."""
    env = test_environment()
    left, right = (env.from_collection([]).key_by(lambda record: record[0]) for _ in range(2))
    joined = left.interval_join(right).between(lower, upper)
    joined.side_output_left_late_data(LATE_LEFT).side_output_right_late_data(LATE_RIGHT)
    for setting in settings.pop("bounds", ()):
        getattr(joined, setting)()
    harness: TwoInputHarness = harness_for(joined.process(function or Pair()), **settings)
    return harness


@pytest.mark.parametrize(
    ("lower", "upper", "bounds", "expected"),
    [
        (-2, 2, (), [8, 9, 10, 11, 12]),
        (-2, 2, ("lower_bound_exclusive",), [9, 10, 11, 12]),
        (-2, 2, ("upper_bound_exclusive",), [8, 9, 10, 11]),
        (-2, 2, ("lower_bound_exclusive", "upper_bound_exclusive"), [9, 10, 11]),
        (0, 0, (), [10]),
        (0, 0, ("lower_bound_exclusive",), []),
        (1, 2, (), [11, 12]),
        (-2, -1, (), [8, 9]),
        (Duration.of_millis(1), Time.milliseconds(1), (), [11]),
    ],
)
@every_backend
def test_bounds(lower: Any, upper: Any, bounds: tuple[str, ...], expected: list[int], backend: str) -> None:
    """Whichever side comes first."""
    for first in ("left", "right"):
        with join(lower, upper, bounds=bounds, backend=backend) as harness:
            if first == "left":
                harness.process_element1(("a", 10), 10)
            for time in range(5, 16):
                harness.process_element2(("a", time), time)
            if first == "right":
                harness.process_element1(("a", 10), 10)
            assert [right[1] for _, right in harness.output] == expected
            assert [record.timestamp for record in harness.records] == [max(10, time) for time in expected]


def test_keys_are_joined_apart() -> None:
    with join(-5, 5) as harness:
        harness.process_element1(("a", 1), 0)
        harness.process_element2(("b", 2), 0)
        harness.process_element2(("a", 3), 0)
        assert harness.output == [(("a", 1), ("a", 3))]


@every_backend
def test_a_record_before_the_watermark_is_late(backend: str) -> None:
    with join(-100, 100, backend=backend) as harness:
        harness.process_element1(("a", 1), 10)
        harness.process_watermark(10)
        harness.process_element2(("a", "at the watermark"), 10)
        harness.process_element2(("a", "late"), 9)
        harness.process_element1(("a", "late too"), -50)
        assert harness.output == [(("a", 1), ("a", "at the watermark"))]
        assert harness.side_records(LATE_RIGHT) == [(("a", "late"), 9)]
        assert harness.side_records(LATE_LEFT) == [(("a", "late too"), -50)]


def test_late_records_without_a_side_output_are_counted() -> None:
    env = test_environment()
    left, right = (env.from_collection([]).key_by(lambda record: record[0]) for _ in range(2))
    with harness_for(left.interval_join(right).between(0, 1).process(Pair())) as harness:
        harness.process_watermark(10)
        harness.process_element1(("a", 1), 9)
        assert harness.output == []
        assert harness.counter("numLateRecordsDropped") == 1


@every_backend
def test_what_is_buffered_goes_when_nothing_can_match_it(backend: str) -> None:
    with join(-2, 3, backend=backend) as harness:
        harness.process_element1(("a", 1), 10)
        harness.process_element1(("a", 2), 10)
        harness.process_element2(("a", 3), 10)
        assert harness.num_event_time_timers() == 2
        harness.process_watermark(11)
        assert (harness.state(LEFT, "a"), harness.state(RIGHT, "a")) == (
            {10: [("a", 1), ("a", 2)]},
            {10: [("a", 3)]},
        )
        harness.process_watermark(12)
        assert harness.keys(RIGHT) == []
        harness.process_watermark(13)
        assert harness.keys(LEFT) == []
        assert harness.num_event_time_timers() == 0


@pytest.mark.parametrize(("lower", "upper", "left", "right"), [(2, 5, 5, 0), (-5, -2, 0, 5), (0, 0, 0, 0)])
def test_how_long_each_side_is_buffered(lower: int, upper: int, left: int, right: int) -> None:
    with join(lower, upper) as harness:
        harness.process_element1(("left", 1), 10)
        harness.process_element2(("right", 1), 10)
        assert sorted((timer.key, timer.timestamp - 10) for timer in harness.event_time_timers) == [
            ("left", left),
            ("right", right),
        ]


@every_backend
def test_a_hot_key_with_many_timestamps(backend: str) -> None:
    """Timestamps are found by search there, and by a look at all of them elsewhere."""
    random_ = random.Random(5)
    times = random_.sample(range(1000), 300)
    with join(-7, 11, backend=backend) as harness:
        for time in times:
            harness.process_element1(("a", time), time)
        harness.process_watermark(500)
        kept = sorted(time for time in times if time + 11 > 500)
        found = list(range(500, 1000, 13))
        for time in found:
            harness.process_element2(("a", time), time)
        expected = [(left, right) for right in found for left in kept if left - 7 <= right <= left + 11]
        assert [(left[1], right[1]) for left, right in harness.output] == expected
        harness.process_watermark(2000)
        assert harness.keys(LEFT) == harness.keys(RIGHT) == []


@pytest.mark.parametrize("after", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("before", ["hashmap", "rocksdb"])
def test_restored_state(before: str, after: str) -> None:
    with join(-2, 3, backend=before) as harness:
        harness.process_element1(("a", 1), 10)
        harness.process_element2(("b", 2), 10)
        snapshot = harness.snapshot()
    with join(-2, 3, backend=after).initialize_state(snapshot) as harness:
        harness.process_element2(("a", 3), 13)
        harness.process_element1(("b", 4), 12)
        assert harness.output == [(("a", 1), ("a", 3)), (("b", 4), ("b", 2))]
        harness.process_watermark(20)
        assert harness.keys(LEFT) == harness.keys(RIGHT) == []


@every_backend
def test_restored_with_other_bounds(backend: str) -> None:
    with join(-2, 3, backend=backend) as harness:
        harness.process_element1(("a", 1), 10)
        harness.process_element1(("a", 2), 17)
        snapshot = harness.snapshot()
    with join(-2, 10, backend=backend).initialize_state(snapshot) as harness:
        harness.process_watermark(13)
        harness.process_element2(("a", 3), 20)
        assert harness.output == [(("a", 1), ("a", 3)), (("a", 2), ("a", 3))]
        harness.process_watermark(20)
        assert harness.state(LEFT, "a") == {17: [("a", 2)]}
    with join(-2, 0, backend=backend).initialize_state(snapshot) as harness:
        harness.process_watermark(13)
        harness.process_element2(("a", 3), 17)
        assert harness.output == [(("a", 2), ("a", 3))]
        harness.process_watermark(20)
        assert harness.keys(LEFT) == harness.keys(RIGHT) == []


@every_backend
def test_an_empty_interval_after_restore_joins_nothing_and_keeps_nothing(backend: str) -> None:
    bounds = ("lower_bound_exclusive", "upper_bound_exclusive")
    with join(0, 1, bounds=bounds, backend=backend) as harness:
        harness.process_element1(("a", 1), 10)
        harness.process_element2(("a", 2), 10)
        harness.process_element2(("a", 3), 11)
        assert harness.output == []
        harness.process_watermark(11)
        assert harness.keys(LEFT) == harness.keys(RIGHT) == []


def test_bounds_without_end() -> None:
    forever = Duration.of_millis((1 << 63) - 1)
    with join(0, forever) as harness:
        harness.process_element1(("a", 1), 10)
        harness.process_watermark(1 << 40)
        harness.process_element2(("a", 2), 1 << 41)
        assert harness.output == [(("a", 1), ("a", 2))]
        harness.finish()
        assert harness.keys(LEFT) == []


class Spoil(ProcessJoinFunction):
    """Changes what it is given, and emits it."""

    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        left.append("left")
        right.append("right")
        return [(left, right)]


@every_backend
def test_a_function_may_change_what_it_is_given(backend: str) -> None:
    with join(-5, 5, Spoil(), backend=backend) as harness:
        harness.process_element1(["a", 1], 10)
        harness.process_element1(["a", 2], 10)
        harness.process_element2(["a", 3], 10)
        harness.process_element2(["a", 4], 11)
        assert harness.output == [(["a", left, "left"], ["a", right, "right"]) for right in (3, 4) for left in (1, 2)]


class Silent(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        return None


def test_a_function_may_return_none() -> None:
    with join(0, 0, Silent()) as harness:
        harness.process_element1(("a", 1), 10)
        harness.process_element2(("a", 2), 10)
        assert harness.output == []


def test_records_need_timestamps() -> None:
    with join(0, 1) as harness:
        with pytest.raises(FiresteelError, match="without a timestamp"):
            harness.process_element1(("a", 1))
        harness.process_watermark(10)
        with pytest.raises(FiresteelError, match="without a timestamp"):
            harness.process_element2(("a", 1), -(1 << 63))


def test_the_buffer_of_a_batch() -> None:
    buffer = SortedJoinBuffer()
    for time in (1, 1, 3, 7):
        buffer.add(time, f"at {time}")
    assert list(buffer.between(1, 3)) == [(1, ["at 1", "at 1"]), (3, ["at 3"])]
    assert list(buffer.between(4, 6)) == list(buffer.between(8, 9)) == list(buffer.between(-5, 0)) == []
    buffer.end_key()
    assert list(buffer.between(0, 9)) == []


def test_what_is_refused() -> None:
    env = test_environment()
    stream = env.from_collection([])
    keyed = stream.key_by(lambda record: record)
    with pytest.raises(TypeError, match="KeyedStream"):
        keyed.interval_join(stream)  # type: ignore[arg-type]
    with pytest.raises(InvalidProgramError, match="same StreamExecutionEnvironment"):
        keyed.interval_join(test_environment().from_collection([]).key_by(lambda record: record))
    with pytest.raises(InvalidProgramError, match="event time only"):
        keyed.interval_join(keyed).in_processing_time().between(0, 1)
    with pytest.raises(InvalidProgramError, match="above the upper bound"):
        keyed.interval_join(keyed).in_event_time().between(2, 1)
    with pytest.raises(TypeError, match="ProcessJoinFunction"):
        keyed.interval_join(keyed).between(0, 1).process(lambda left, right: left)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="OutputTag"):
        keyed.interval_join(keyed).between(0, 1).side_output_left_late_data("late")  # type: ignore[arg-type]
