"""What a user sees when a function of theirs is wrong: the fields of the failure, run in process.

A line that is to be named ends with a comment ``# <-- <its name>``.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.common.errors import JobExecutionError
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkGenerator
from firesteel.connectors.base.rate_limiter import RateLimiterStrategy
from firesteel.connectors.generators.datagen import DataGeneratorSource
from firesteel.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.functions import (
    AggregateFunction,
    CoMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
)
from firesteel.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from firesteel.datastream.windowing.triggers import Trigger, TriggerResult  # type: ignore[attr-defined]
from firesteel.spi.sink import Sink, SinkWriter
from tests.support.jobs.failing_jobs import Build, Env, digits, fail

_LINES = Path(__file__).read_text().splitlines()


def line(name: str) -> int:
    """The number of the line with that name."""
    (number,) = [i for i, text in enumerate(_LINES, 1) if re.search(rf"# <-- {re.escape(name)}$", text)]
    return number


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value) * 1000


def timed(env: StreamExecutionEnvironment, assigner: Any = None) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner or Seconds())
    return digits(env).assign_timestamps_and_watermarks(strategy)


def windowed(env: StreamExecutionEnvironment, assigner: Any = None) -> Any:
    windows = assigner or TumblingEventTimeWindows.of(Time.seconds(5))
    return timed(env).key_by(lambda x: f"key {x % 2}").window(windows)


def explode(value: Any) -> Any:
    raise ValueError(f"cannot take {value}")  # <-- explode


def explode_at_four(value: Any, *_: Any) -> Any:
    if value == 4:
        raise ValueError("four")  # <-- four
    return value


# -- a function that raises ----------------------------------------------------------------------------------


class FailingProcess(KeyedProcessFunction):
    """Raises in the method it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where

    def open(self, runtime_context: Any) -> None:
        if self.where == "open":
            raise ValueError("in open")  # <-- open

    def close(self) -> None:
        if self.where == "close":
            raise ValueError("in close")  # <-- close

    def process_element(self, value: Any, ctx: Any) -> Any:
        timers = ctx.timer_service()
        if self.where == "process_element" and value == 4:
            raise ValueError("in process_element")  # <-- process_element
        if self.where == "event time" and value == 4:
            timers.register_event_time_timer(4444)
        if self.where == "processing time" and value == 4:
            timers.register_processing_time_timer(1)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        raise ValueError("in on_timer")  # <-- on_timer


class FailingAggregate(AggregateFunction):
    def __init__(self, where: str) -> None:
        self.where = where

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        if self.where == "add" and value == 4:
            raise ValueError("in add")  # <-- add
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        if self.where == "get_result":
            raise ValueError("in get_result")  # <-- get_result
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        raise ValueError("in merge")  # <-- merge


class FailingWindow(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        raise ValueError("in process")  # <-- window process


class FailingTrigger(Trigger):
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        if element == 4:
            raise ValueError("in on_element")  # <-- trigger
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Any) -> None: ...

    def clear(self, window: Any, ctx: Any) -> None: ...


class FailingGenerator(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        explode_at_four(event)

    def on_periodic_emit(self, output: Any) -> None: ...


class FailingWriter(SinkWriter[Any]):
    def write_batch(self, values: Any, timestamps: Any) -> None:
        raise ValueError("in write_batch")  # <-- write_batch


class FailingSink(Sink):
    name = "Failing"

    def create_writer(self, context: Any) -> FailingWriter:
        return FailingWriter()


class FullWriter(SinkWriter[Any]):
    def write_batch(self, values: Any, timestamps: Any) -> None: ...

    def has_room(self) -> bool:
        raise ValueError("in has_room")  # <-- has_room


class FullSink(Sink):
    name = "Full"

    def create_writer(self, context: Any) -> FullWriter:
        return FullWriter()


class FailingSecondInput(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return explode_at_four(value)


def generate_watermarks(env: StreamExecutionEnvironment) -> DataStream:
    return digits(env).assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(FailingGenerator))


def merging(env: StreamExecutionEnvironment) -> DataStream:
    order = env.from_collection([0, 4, 2]).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    )
    sessions = order.key_by(lambda _: "one").window(EventTimeSessionWindows.with_gap(Time.seconds(3)))
    return sessions.aggregate(FailingAggregate("merge"))


def generated(env: StreamExecutionEnvironment) -> DataStream:
    source = DataGeneratorSource(explode_at_four, 10)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "gen")


KEY_0 = "'key 0'"
FIRST_WINDOW = "window TimeWindow(start=0, end=5000)"

RAISING: dict[str, tuple[Build, dict[str, Any]]] = {
    "map": (
        lambda env: digits(env).map(explode_at_four).name("my map").uid("map-1").print(),
        {"operator": "my map", "uid": "map-1", "user_line": line("four"), "element": "4", "key": None},
    ),
    "inlined lambda": (
        lambda env: digits(env).map(lambda x: 1 / (x - 4)).print(),  # <-- inlined
        {"operator": "Map", "user_line": line("inlined"), "element": "4", "error_type": "ZeroDivisionError"},
    ),
    "filter": (
        lambda env: digits(env).filter(explode_at_four).print(),
        {"operator": "Filter", "user_line": line("four"), "element": "4"},
    ),
    "flat_map": (
        lambda env: digits(env).flat_map(lambda x: [explode_at_four(x)]).print(),
        {"operator": "FlatMap", "user_line": line("four"), "element": "4"},
    ),
    "key selector": (
        lambda env: digits(env).key_by(explode_at_four).map(lambda x: x).print(),
        {"operator": "Map", "during": "key_by", "user_line": line("four"), "element": "4", "subtask": None},
    ),
    "reduce": (
        lambda env: digits(env).key_by(lambda x: x % 2).reduce(lambda a, b: a + explode_at_four(b)).print(),
        {"operator": "Reduce", "user_line": line("four"), "key": "0", "element": "4"},
    ),
    "process_element": (
        lambda env: timed(env).key_by(lambda x: f"key {x % 2}").process(FailingProcess("process_element")).print(),
        {"operator": "KeyedProcess", "user_line": line("process_element"), "key": KEY_0, "element": "4"},
    ),
    "event-time timer": (
        lambda env: timed(env).key_by(lambda x: f"key {x % 2}").process(FailingProcess("event time")).print(),
        {"during": "on_timer(4444)", "user_line": line("on_timer"), "key": KEY_0, "element": None},
    ),
    "processing-time timer": (
        lambda env: (
            env.from_source(
                DataGeneratorSource(lambda i: i, None, RateLimiterStrategy.per_second(100)),
                WatermarkStrategy.no_watermarks(),
                "slow",
            )
            .key_by(lambda x: f"key {x % 2}")
            .process(FailingProcess("processing time"))
            .print()
        ),
        {"operator": "KeyedProcess", "during": "on_timer(1)", "user_line": line("on_timer"), "key": KEY_0},
    ),
    "open": (
        lambda env: digits(env).key_by(lambda x: x).process(FailingProcess("open")).print(),
        {"operator": "KeyedProcess", "during": "open()", "user_line": line("open"), "key": None},
    ),
    "close": (
        lambda env: digits(env).key_by(lambda x: x).process(FailingProcess("close")).print(),
        {"operator": "KeyedProcess", "during": "close()", "user_line": line("close"), "key": None},
    ),
    "aggregate add, tumbling": (
        lambda env: windowed(env).aggregate(FailingAggregate("add")).print(),
        {"operator": "TumblingEventTimeWindows", "user_line": line("add"), "key": KEY_0, "element": "4"},
    ),
    "aggregate add, sliding": (
        lambda env: (
            windowed(env, SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(1)))
            .aggregate(FailingAggregate("add"))
            .print()
        ),
        {"operator": "SlidingEventTimeWindows", "user_line": line("add"), "key": KEY_0, "element": "4"},
    ),
    "aggregate add, session": (
        lambda env: (
            windowed(env, EventTimeSessionWindows.with_gap(Time.seconds(1))).aggregate(FailingAggregate("add")).print()
        ),
        {"operator": "EventTimeSessionWindows", "user_line": line("add"), "key": KEY_0, "element": "4"},
    ),
    "aggregate get_result": (
        lambda env: windowed(env).aggregate(FailingAggregate("get_result")).print(),
        {"during": FIRST_WINDOW, "user_line": line("get_result"), "key": KEY_0},
    ),
    "aggregate merge": (
        lambda env: merging(env).print(),
        {"operator": "EventTimeSessionWindows", "user_line": line("merge"), "key": "'one'"},
    ),
    "window reduce": (
        lambda env: windowed(env).reduce(lambda a, b: a + explode_at_four(b)).print(),
        {"operator": "TumblingEventTimeWindows", "user_line": line("four"), "key": KEY_0, "element": "4"},
    ),
    "window process": (
        lambda env: windowed(env).process(FailingWindow()).print(),
        {"during": FIRST_WINDOW, "user_line": line("window process"), "key": KEY_0, "element": None},
    ),
    "trigger": (
        lambda env: windowed(env).trigger(FailingTrigger()).process(FailingWindow()).print(),
        {"during": FIRST_WINDOW, "user_line": line("trigger"), "key": KEY_0, "element": "4"},
    ),
    "timestamp assigner": (
        lambda env: timed(env, explode_at_four).print(),
        {"operator": "Timestamps/Watermarks", "user_line": line("four"), "element": "4"},
    ),
    "watermark generator": (
        lambda env: generate_watermarks(env).print(),
        {"operator": "Timestamps/Watermarks", "user_line": line("four"), "element": "4"},
    ),
    "source generator": (
        lambda env: generated(env).print(),
        {"operator": "Source: gen", "user_line": line("four"), "element": "4"},
    ),
    "sink writer": (
        lambda env: digits(env).sink_to(FailingSink()),
        {"operator": "Sink: Failing", "user_line": line("write_batch")},
    ),
    "sink writer asked for room": (
        lambda env: digits(env).sink_to(FullSink()),
        {"operator": "Sink: Full", "user_line": line("has_room")},
    ),
    "partitioner": (
        lambda env: digits(env).partition_custom(explode_at_four, lambda x: x).map(lambda x: x).print(),
        {"operator": "Map", "during": "partition_custom", "user_line": line("four"), "element": "4"},
    ),
    "second input": (
        lambda env: digits(env).connect(digits(env)).map(FailingSecondInput()).print(),
        {"operator": "Co-Map", "user_line": line("four"), "element": "4"},
    ),
}


@pytest.mark.parametrize(("build", "expected"), RAISING.values(), ids=RAISING)
def test_a_function_that_raises(in_process_env: Env, build: Build, expected: dict[str, Any]) -> None:
    failure = fail(in_process_env(1), build)
    assert {name: getattr(failure, name) for name in expected} == expected
    assert failure.error_type == expected.get("error_type", "ValueError")
    assert failure.user_file == __file__
    assert failure.user_source == _LINES[(failure.user_line or 0) - 1].strip()
    assert failure.defined_at is not None
    assert failure.defined_at.startswith(f"{__file__}:")
    assert f", line {failure.user_line}" in failure.traceback or "inlined" in str(failure.user_source)


def test_a_sink_that_raises_when_asked_for_room_in_a_batch(in_process_env: Env) -> None:
    env = in_process_env(1)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    failure = fail(env, RAISING["sink writer asked for room"][0])
    assert (failure.operator, failure.error_type, failure.user_line) == ("Sink: Full", "ValueError", line("has_room"))


def test_the_message_says_it_all_without_the_traceback(in_process_env: Env) -> None:
    env = in_process_env(1)
    digits(env).map(explode_at_four).uid("u").print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("named")
    text = str(caught.value)
    for part in ("'named'", "ValueError: four", "Map (uid u)", f"{__file__}:{line('four')}", "element:  4"):
        assert part in text
    assert "Traceback" not in text
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_results_that_are_collected_end_with_the_error(in_process_env: Env) -> None:
    with pytest.raises(JobExecutionError) as caught:
        list(digits(in_process_env(1)).map(explode_at_four).execute_and_collect())
    assert caught.value.failure.user_line == line("four")


def test_the_first_cause_wins_while_a_record_waits_for_room(in_process_env: Env) -> None:
    def million(_: int) -> Any:
        yield from range(1_000_000)
        raise AssertionError("not the cause")

    env = in_process_env(2)
    env.from_collection([1]).flat_map(million).rebalance().map(lambda x: explode(x) if x > 99_999 else x).print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute()
    assert caught.value.failure.user_line == line("explode")
    assert caught.value.failure.operator == "Map"


# -- a function that returns the wrong thing -----------------------------------------------------------------


def forgets_to_return(a: Any, b: Any) -> None: ...  # <-- no return


class ReturnsNumber(KeyedProcessFunction):
    def __init__(self, where: str) -> None:
        self.where = where

    def process_element(self, value: Any, ctx: Any) -> Any:  # <-- returns a number
        ctx.timer_service().register_event_time_timer(5)
        return 7 if self.where == "process_element" else None

    def on_timer(self, timestamp: int, ctx: Any) -> Any:  # <-- timer returns a number
        return 7


class WindowReturns(ProcessWindowFunction):
    def __init__(self, result: Any) -> None:
        self.result = result

    def process(self, key: Any, context: Any, elements: Any) -> Any:  # <-- window returns
        return self.result


class SilentTrigger(FailingTrigger):
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:  # <-- silent trigger
        return None


WRONG_RESULTS: dict[str, tuple[Build, dict[str, Any]]] = {
    "flat_map, not iterable": (
        lambda env: digits(env).flat_map(lambda x: x + 1).print(),  # <-- not iterable
        {"operator": "FlatMap", "user_line": line("not iterable"), "element": "0"},
    ),
    "process, not iterable": (
        lambda env: timed(env).key_by(lambda x: x).process(ReturnsNumber("process_element")).print(),
        {"operator": "KeyedProcess", "user_line": line("returns a number"), "key": "0", "element": "0"},
    ),
    "on_timer, not iterable": (
        lambda env: timed(env).key_by(lambda x: x).process(ReturnsNumber("on_timer")).print(),
        {"during": "on_timer(5)", "user_line": line("timer returns a number"), "key": "0"},
    ),
    "window, not iterable": (
        lambda env: windowed(env).process(WindowReturns(7)).print(),
        {"operator": "TumblingEventTimeWindows", "user_line": line("window returns"), "key": KEY_0},
    ),
    "reduce, None": (
        lambda env: digits(env).key_by(lambda _: "k").reduce(forgets_to_return).print(),
        {"operator": "Reduce", "user_line": line("no return"), "key": "'k'", "element": "1"},
    ),
    "window reduce, None": (
        lambda env: windowed(env, TumblingEventTimeWindows.of(Time.seconds(4))).reduce(forgets_to_return).print(),
        {"operator": "TumblingEventTimeWindows", "user_line": line("no return"), "key": KEY_0},
    ),
    "map, not the declared type": (
        lambda env: digits(env).map(lambda x: str(x), output_type=Types.INT()).print(),  # <-- declared
        {"operator": "Map", "user_line": line("declared"), "element": "'0'"},
    ),
    "window, not the declared type": (
        lambda env: windowed(env).process(WindowReturns([7]), output_type=Types.STRING()).print(),
        {"operator": "TumblingEventTimeWindows", "user_line": line("window returns"), "element": "7"},
    ),
    "timestamp, a string": (
        lambda env: timed(env, lambda value, _: str(value)).print(),  # <-- string timestamp
        {"operator": "Timestamps/Watermarks", "user_line": line("string timestamp"), "element": "0"},
    ),
    "timestamp, a float later on": (
        lambda env: timed(env, lambda value, _: value / 2 if value == 4 else value).print(),  # <-- float timestamp
        {"operator": "Timestamps/Watermarks", "user_line": line("float timestamp"), "element": "4"},
    ),
    "partitioner, out of range": (
        lambda env: digits(env).partition_custom(lambda key, n: key, lambda x: x).map(lambda x: x).print(),  # <-- range
        {"operator": "Map", "during": "partition_custom", "user_line": line("range"), "element": "1"},
    ),
    "partitioner, not an int": (
        lambda env: digits(env).partition_custom(lambda key, n: "x", lambda x: x).map(lambda x: x).print(),  # type: ignore[return-value] # <-- x
        {"operator": "Map", "during": "partition_custom", "user_line": line("x"), "element": "0"},
    ),
    "trigger, None": (
        lambda env: windowed(env).trigger(SilentTrigger()).process(WindowReturns([])).print(),
        {"operator": "TumblingEventTimeWindows", "user_line": line("silent trigger"), "key": KEY_0},
    ),
}


@pytest.mark.parametrize(("build", "expected"), WRONG_RESULTS.values(), ids=WRONG_RESULTS)
def test_a_function_that_returns_the_wrong_thing(in_process_env: Env, build: Build, expected: dict[str, Any]) -> None:
    failure = fail(in_process_env(1), build)
    assert {name: getattr(failure, name) for name in expected} == expected
    assert failure.error_type in ("InvalidProgramError", "FiresteelError")
    assert failure.user_file == __file__
    assert failure.hint is not None


def test_a_function_of_too_many_arguments(in_process_env: Env) -> None:
    failure = fail(
        in_process_env(1),
        lambda env: digits(env).map(lambda a, b: a).print(),  # type: ignore[misc, arg-type] # <-- two arguments
    )
    assert (failure.error_type, failure.operator, failure.user_line) == ("TypeError", "Map", line("two arguments"))
    assert failure.hint is not None


def test_a_timestamp_that_is_no_int_in_a_later_batch_is_found_where_it_hurts(in_process_env: Env) -> None:
    def late_float(value: int, _: int) -> float:
        return value + 0.5 if value == 5000 else value

    def build(env: StreamExecutionEnvironment) -> None:
        stream = env.from_sequence(0, 8000).assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(late_float)
        )
        stream.key_by(lambda x: x % 2).window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(max).print()

    failure = fail(in_process_env(1), build)
    assert (failure.error_type, failure.element) == ("InvalidProgramError", "5000")
    assert failure.hint is not None


# -- what cannot be told easily ------------------------------------------------------------------------------


class Mute(Exception):
    def __init__(self, lock: Any, _second: int) -> None:
        super().__init__()
        self.lock = lock

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Shapeless:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


def test_an_exception_without_text_on_an_element_without_repr(in_process_env: Env) -> None:
    def mute(_: Any) -> None:
        raise Mute(threading.Lock(), 2)  # <-- mute

    failure = fail(in_process_env(1), lambda env: digits(env).map(lambda _: Shapeless()).map(mute).print())
    assert (failure.error_type, failure.operator, failure.user_line) == ("Mute", "Map", line("mute"))
    assert "Shapeless" in str(failure.element)


def test_what_is_huge_is_cut(in_process_env: Env) -> None:
    def shout(_: Any) -> None:
        raise ValueError("x" * 1_000_000)

    failure = fail(in_process_env(1), lambda env: digits(env).map(lambda x: [x] * 1_000_000).map(shout).print())
    assert len(failure.message) < 3000
    assert len(str(failure.element)) <= 200
    assert len(failure.traceback) < 30_000


@pytest.mark.parametrize("exit_type", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_function_that_wants_to_exit_fails_the_job(in_process_env: Env, exit_type: type[BaseException]) -> None:
    def leave(_: Any) -> None:
        raise exit_type  # <-- exit

    failure = fail(in_process_env(1), lambda env: digits(env).map(leave).print())
    assert (failure.error_type, failure.user_line) == (exit_type.__name__, line("exit"))


def test_a_gauge_that_raises_does_not_fail_the_job(in_process_env: Env) -> None:
    class Measured(MapFunction):
        def open(self, runtime_context: Any) -> None:
            runtime_context.get_metrics_group().gauge("broken", lambda: 1 // 0)

        def map(self, value: Any) -> Any:
            return value

    assert list(digits(in_process_env(1)).map(Measured()).execute_and_collect()) == list(range(10))


def test_timers_without_a_key(in_process_env: Env) -> None:
    class Timed(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(5)  # <-- unkeyed timer

    failure = fail(in_process_env(1), lambda env: digits(env).process(Timed()).print())
    assert (failure.operator, failure.user_line) == ("Process", line("unkeyed timer"))
