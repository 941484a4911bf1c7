"""FakeClock: processing time in jobs and harnesses without waiting."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.common.errors import JobExecutionError
from firesteel.datastream import KeyedProcessFunction
from firesteel.datastream.window import TumblingProcessingTimeWindows
from firesteel.testing import At, FakeClock, TestingSource, test_environment

HOUR = 3_600_000
NO_WATERMARKS = WatermarkStrategy.no_watermarks()


def test_time_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(100)
    assert (clock.now, clock.now_ms(), clock()) == (100, 100, 100)
    clock.advance(50)
    assert clock.now == 150
    clock.advance_to(120)
    assert clock.now == 150
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


def test_callbacks_come_in_order_at_their_own_times() -> None:
    clock = FakeClock()
    called: list[Any] = []
    clock.schedule(20, lambda now: called.append(("b", now)))
    clock.schedule(10, lambda now: (called.append(("a", now)), clock.schedule(15, called.append)))
    clock.schedule(20, lambda now: called.append(("c", now)))
    clock.schedule(31, called.append)
    clock.advance(30)
    assert called == [("a", 10), 15, ("b", 20), ("c", 20)]
    assert clock.now == 30


def test_the_wall_clock_is_set() -> None:
    clock = FakeClock(1000)
    called: list[Any] = []
    clock.schedule_after(100, lambda: called.append(("delay", clock.now)))
    clock.schedule(5000, lambda now: called.append(("timer", now)))
    clock.step(-900)
    assert (clock.now, clock.monotonic_ms()) == (100, 1000)
    clock.advance(100)
    assert called == [("delay", 200)]
    clock.step(4800)
    assert called == [("delay", 200)], "no time has passed"
    clock.advance(1)
    assert called == [("delay", 200), ("timer", 5000)]
    assert (clock.now, clock.monotonic_ms()) == (5001, 1101)


class CountsSeconds(KeyedProcessFunction):
    """A processing-time timer every second."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 1000)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp
        ctx.timer_service().register_processing_time_timer(timestamp + 1000)


def test_timers_of_a_job_follow_the_wall_clock_within_a_second() -> None:
    clock = FakeClock()
    env = test_environment(clock=clock)
    numbers = env.from_source(TestingSource([1], bounded=False), NO_WATERMARKS, "numbers")
    with numbers.key_by(lambda value: value).process(CountsSeconds()).execute_and_collect() as results:
        clock.advance(2000)
        assert [next(results)] == [1000]
        clock.step(10_000)
        clock.advance(1000)
        assert [next(results) for _ in range(3)] == [2000, 3000, 4000]
        clock.step(-HOUR)
        clock.advance(HOUR)
        assert [next(results) for _ in range(5)][-1] == 9000


def test_a_clock_does_not_travel() -> None:
    with pytest.raises(TypeError, match="stays with the test"):
        pickle.dumps(FakeClock())


@pytest.mark.parametrize("parallelism", [1, 2])
def test_processing_time_windows_of_a_job(parallelism: int) -> None:
    clock = FakeClock()
    env = test_environment(parallelism, clock=clock)
    source = TestingSource.with_splits([("a", 1), ("b", 2)], [("a", 4)], bounded=False)
    sums = (
        env.from_source(source, NO_WATERMARKS, "source")
        .key_by(lambda record: record[0])
        .window(TumblingProcessingTimeWindows.of(Time.hours(1)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    with sums.execute_and_collect() as results:
        clock.advance(3_600_000)
        assert sorted([next(results), next(results)]) == [("a", 5), ("b", 2)]


class Remind(KeyedProcessFunction):
    """Says how long ago a key was seen, every 10 ms, three times."""

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 10)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        if timestamp < 30:
            ctx.timer_service().register_processing_time_timer(timestamp + 10)
        yield ctx.get_current_key(), timestamp


def test_timers_of_a_job_fire_while_its_input_is_idle() -> None:
    clock = FakeClock()
    env = test_environment(clock=clock)
    source = TestingSource(["x"], bounded=False)
    stream = env.from_source(source, NO_WATERMARKS, "source").key_by(lambda value: value).process(Remind())
    with stream.execute_and_collect() as results:
        clock.advance(10)
        assert next(results) == ("x", 10)
        clock.advance(100)  # one jump, but no timer is lost
        assert [next(results), next(results)] == [("x", 20), ("x", 30)]


def test_periodic_watermarks_and_idleness_go_by_the_clock() -> None:
    class ShowWatermark(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(value)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield timestamp, ctx.timer_service().current_processing_time()

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0)).with_idleness(
        Duration.of_seconds(60)
    )
    clock = FakeClock()
    env = test_environment(clock=clock)
    # the second split has nothing: it holds back the watermark until it is idle
    source = TestingSource.with_splits([At(5, 5), At(8, 8)], [], bounded=False)
    stream = env.from_source(source, strategy, "source").key_by(lambda value: 0).process(ShowWatermark())
    with stream.execute_and_collect() as results:
        clock.advance_to(59_000)
        clock.advance_to(59_900)
        clock.advance_to(61_000)
        assert next(results) == (5, 61_000)


def test_a_job_that_is_over_lets_go_of_the_clock() -> None:
    clock = FakeClock()
    env = test_environment(clock=clock)
    stream = env.from_source(TestingSource([1]), NO_WATERMARKS, "source")
    assert list(stream.execute_and_collect()) == [1]
    clock.advance(10)
    assert clock._followers == []


def test_settle_waits_for_a_job_without_moving_time() -> None:
    clock = FakeClock(7)
    env = test_environment(2, clock=clock)
    env.from_source(TestingSource([1]), NO_WATERMARKS, "source").key_by(lambda x: x).map(lambda x: 1 / 0).print()
    client = env.execute_async("fails")
    clock.settle()
    assert clock.now == 7
    result = client.get_job_execution_result()
    with pytest.raises(JobExecutionError, match="division by zero"):
        result.result()
