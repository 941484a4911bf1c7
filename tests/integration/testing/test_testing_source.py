"""TestingSource: records, watermarks, pauses, failures and ends as items of a list."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration, Time, WatermarkStrategy
from firesteel.common.errors import JobExecutionError
from firesteel.datastream import OutputTag, ProcessFunction
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.spi.execution_traits import PIPELINED
from firesteel.spi.source import Boundedness, InputStatus
from firesteel.testing import (
    ABORT,
    EOF,
    PAUSE,
    WATERMARK,
    At,
    FakeClock,
    InjectedFailure,
    TestingSource,
    collect,
    test_environment,
)
from firesteel.testing.source import TestingSplit

NO_WATERMARKS = WatermarkStrategy.no_watermarks()


def restarting(attempts: int) -> Configuration:
    configuration = Configuration()
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.attempts", str(attempts))
    configuration.set_string("restart-strategy.fixed-delay.delay", "0 ms")
    return configuration


def stream_of(source: TestingSource, env: Any = None, strategy: WatermarkStrategy = NO_WATERMARKS) -> Any:
    return (env or test_environment()).from_source(source, strategy, "source")


class ShowTime(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        watermark = ctx.timer_service().current_watermark()
        yield value, ctx.timestamp(), None if watermark == MIN_TIMESTAMP else watermark


class ShowAttempt(ProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self._attempt = runtime_context.get_attempt_number()

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield self._attempt, value


def test_records_come_in_order() -> None:
    assert collect(stream_of(TestingSource([3, None, "x", [1]]))) == [3, None, "x", [1]]


def test_an_empty_source_ends() -> None:
    assert collect(stream_of(TestingSource([]))) == []


def test_records_with_timestamps_and_watermarks_in_line() -> None:
    items = ["a", At("b", 5), WATERMARK(3), At("c", 7), WATERMARK(2), "d", WATERMARK(6), At("e", 1)]
    assert collect(stream_of(TestingSource(items)).process(ShowTime())) == [
        ("a", None, None),
        ("b", 5, None),
        ("c", 7, 3),
        ("d", None, 3),
        ("e", 1, 6),
    ]


def test_a_timestamp_assigner_sees_the_records_own_timestamp() -> None:
    strategy = NO_WATERMARKS.with_timestamp_assigner(lambda value, timestamp: timestamp + value)
    shown = collect(stream_of(TestingSource([At(1, 10), At(2, 20)]), strategy=strategy).process(ShowTime()))
    assert [(value, timestamp) for value, timestamp, _ in shown] == [(1, 11), (2, 22)]


def test_late_records_can_be_tested_without_waiting_for_watermarks() -> None:
    late = OutputTag("late")
    items = [At(("a", 1), 1), At(("a", 2), 8), WATERMARK(9), At(("a", 4), 3), At(("a", 8), 12)]
    stream = stream_of(TestingSource(items)).key_by(lambda record: record[0])
    sums = (
        stream.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .side_output_late_data(late)
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    tagged = sums.map(lambda record: ("sum", *record)).union(
        sums.get_side_output(late).map(lambda record: ("late", *record))
    )
    assert sorted(collect(tagged)) == [("late", "a", 4), ("sum", "a", 3), ("sum", "a", 8)]


def test_the_watermark_is_the_lowest_of_the_splits() -> None:
    """
    split 0:  a@1  W(10)  c@2
    split 1:  b@1  W(4)   d@2
    """
    source = TestingSource.with_splits([At("a", 1), WATERMARK(10), At("c", 2)], [At("b", 1), WATERMARK(4), At("d", 2)])
    shown = collect(stream_of(source).process(ShowTime()))
    assert shown == [("a", 1, None), ("b", 1, None), ("c", 2, 4), ("d", 2, 4)]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_splits_go_to_the_subtasks_in_turn(parallelism: int) -> None:
    source = TestingSource.with_splits([0, 10], [1, 11], [2, 12])

    class ShowSubtask(ProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self._subtask = runtime_context.get_index_of_this_subtask()

        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value, self._subtask

    seen = dict(collect(stream_of(source, test_environment(parallelism)).process(ShowSubtask())))
    assert seen == {value + 10 * i: value % parallelism for value in range(3) for i in range(2)}


def test_abort_fails_a_job_that_does_not_restart() -> None:
    with pytest.raises(JobExecutionError) as caught:
        collect(stream_of(TestingSource([1, ABORT("out of order"), 2])))
    failure = caught.value.failure
    assert failure.error_type == InjectedFailure.__name__
    assert failure.message == "out of order"
    assert failure.operator == "Source: source"
    assert failure.hint


@pytest.mark.parametrize("parallelism", [1, 2])
def test_each_abort_fails_one_attempt(parallelism: int) -> None:
    source = TestingSource([1, ABORT(), 2, ABORT(), 3])
    env = test_environment(parallelism, restarting(2))
    results = collect(stream_of(source, env).process(ShowAttempt()))
    assert [value for attempt, value in results if attempt == 2] == [1, 2, 3]
    # what a failed attempt had sent before may have arrived or not, but nothing from behind its ABORT
    assert {value for attempt, value in results if attempt == 0} <= {1}
    assert {value for attempt, value in results if attempt == 1} <= {1, 2}


def test_more_aborts_than_restarts_fail_the_job() -> None:
    source = TestingSource([ABORT("first"), ABORT("second"), ABORT("third")])
    with pytest.raises(JobExecutionError) as caught:
        collect(stream_of(source, test_environment(1, restarting(2))))
    assert caught.value.failure.message == "third"


def test_eof_ends_the_source_there() -> None:
    assert collect(stream_of(TestingSource([1, EOF(), 2]))) == [1]
    assert collect(stream_of(TestingSource([1, EOF(), 2], bounded=False))) == [1]


def test_an_unbounded_source_stays_open() -> None:
    assert TestingSource([]).get_boundedness() is Boundedness.BOUNDED
    source = TestingSource([1, 2], bounded=False)
    assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    clock = FakeClock()
    with stream_of(source, test_environment(clock=clock)).execute_and_collect() as results:
        assert [next(results), next(results)] == [1, 2]
        clock.advance(3_600_000)
        assert not results._job_client.get_job_execution_result().done()


def test_a_pause_lasts_as_long_as_the_clock_says() -> None:
    class ShowProcessingTime(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value, ctx.timer_service().current_processing_time()

    clock = FakeClock(1000)
    source = TestingSource(["a", PAUSE(500), "b", PAUSE(until=5000), "c", PAUSE(until=4000), "d"])
    stream = stream_of(source, test_environment(clock=clock)).process(ShowProcessingTime())
    results = stream.execute_and_collect()
    clock.advance(499)
    clock.advance(1)
    clock.advance(3499)
    clock.advance(1)
    assert list(results) == [("a", 1000), ("b", 1500), ("c", 5000), ("d", 5000)]


def test_a_pause_without_a_fake_clock_ends_by_itself() -> None:
    assert collect(stream_of(TestingSource([1, PAUSE(5), 2]))) == [1, 2]


def test_a_paused_split_does_not_hold_back_the_others_records() -> None:
    clock = FakeClock()
    source = TestingSource.with_splits(["a1", PAUSE(10), "a2"], ["b1", "b2", "b3"])
    results = stream_of(source, test_environment(clock=clock)).execute_and_collect()
    clock.advance(10)
    assert list(results) == ["a1", "b1", "b2", "b3", "a2"]


@pytest.mark.parametrize("wrong", [{}, {"milliseconds": 1, "until": 2}])
def test_a_pause_has_one_end(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="PAUSE needs"):
        PAUSE(**wrong)


def test_a_source_needs_a_split() -> None:
    with pytest.raises(ValueError, match="at least one split"):
        TestingSource.with_splits()


class FakeTask:
    """Context and output of a reader."""

    attempt_number = 0
    execution = PIPELINED
    reuses_objects = False

    def __init__(self) -> None:
        self.collected: list[Any] = []

    def send_split_request(self) -> None:
        pass

    def collect(self, split_id: str, values: Any, timestamps: Any = None) -> None:
        self.collected += values

    def release_split(self, split_id: str) -> None:
        pass


def test_a_reader_goes_on_from_a_snapshot() -> None:
    source = TestingSource([1, 2, ABORT(), 3])
    task = FakeTask()
    reader = source.create_reader(task)  # type: ignore[arg-type]
    reader.add_splits([TestingSplit("0")])
    assert reader.poll_next(task, 1) is InputStatus.MORE_AVAILABLE  # type: ignore[arg-type]
    (split,) = reader.snapshot_state(1)
    assert split == TestingSplit("0", 1)

    task.attempt_number = 1
    restored = source.create_reader(task)  # type: ignore[arg-type]
    restored.add_splits([split])
    restored.notify_no_more_splits()
    while restored.poll_next(task, 10) is not InputStatus.END_OF_INPUT:  # type: ignore[arg-type]
        pass
    assert task.collected == [1, 2, 3]
    assert restored.snapshot_state(2) == []
