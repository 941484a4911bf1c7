"""What a failed job says: operator, the user's own line, element, key and hint, wherever user code runs."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from firesteel.common import Time, WatermarkStrategy
from firesteel.common.errors import JobExecutionError, TaskFailure
from firesteel.datastream import (
    AggregateFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
)
from firesteel.datastream.window import CountTrigger, TumblingEventTimeWindows
from firesteel.testing import WATERMARK, At, TestingSource, collect, test_environment

FILE = __file__


def failure_of(build: Any, items: Any = (("a", 1), ("b", 0)), parallelism: int = 1) -> TaskFailure:
    """Runs a job that must fail; all jobs read the same records."""
    source = TestingSource([item if isinstance(item, WATERMARK) else At(item, 5) for item in items])
    env = test_environment(parallelism)
    stream = build(env.from_source(source, WatermarkStrategy.no_watermarks(), "records"))
    with pytest.raises(JobExecutionError) as caught:
        collect(stream)
    failure = caught.value.failure
    for part in (failure.message, failure.operator, failure.hint or ""):
        assert part in str(caught.value)  # type: ignore[operator]
    return failure


def line_of(function: Any, text: str) -> int:
    """The line of this file where a function has that text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


class Divide(MapFunction):
    def map(self, value: Any) -> float:
        return helper(value)


def helper(value: Any) -> float:
    return float(1 / value[1])


def test_a_plain_function() -> None:
    failure = failure_of(lambda stream: stream.map(Divide()).name("divide").uid("my-uid"))
    assert failure.error_type == "ZeroDivisionError"
    assert failure.operator == "divide"
    assert failure.uid == "my-uid"
    assert failure.subtask == 0
    assert (failure.user_file, failure.user_line) == (FILE, line_of(helper, "1 / value"))
    assert failure.user_source == "return float(1 / value[1])"
    assert failure.element == "('b', 0)"
    assert failure.key is None
    assert failure.defined_at
    assert "test_failure_descriptions.py" in failure.defined_at
    assert "in helper" in failure.traceback


def test_an_inlined_function() -> None:
    # fmt: off
    build = lambda stream: stream.map(lambda value: value[1]).map(
        lambda value: 1 / value).name("inverse")
    # fmt: on
    failure = failure_of(build)
    assert failure.operator == "inverse"
    assert failure.element == "0"
    assert (failure.user_file, failure.user_line) == (FILE, line_of(test_an_inlined_function, "1 / value"))


def test_a_later_operator_of_the_same_chain_has_its_own_element() -> None:
    failure = failure_of(
        lambda stream: (
            stream.map(lambda value: value[1]).filter(lambda value: value < 1).map(lambda value: "ab"[value + 2])
        )
    )
    assert failure.error_type == "IndexError"
    assert failure.operator == "Map"
    assert failure.element == "0"


class FailOnZero(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        if value[1] == 0:
            raise ValueError("zero is not allowed")
        yield value


def test_a_keyed_function() -> None:
    failure = failure_of(lambda stream: stream.key_by(lambda value: value[0]).process(FailOnZero()))
    assert failure.message == "zero is not allowed"
    assert failure.operator == "KeyedProcess"
    assert failure.key == "'b'"
    assert failure.element == "('b', 0)"
    assert failure.user_line == line_of(FailOnZero, "raise ValueError")


class FailInTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        if ctx.get_current_key() == "b":
            raise RuntimeError(f"timer {timestamp}")
        return ()


def test_a_timer() -> None:
    failure = failure_of(lambda stream: stream.key_by(lambda value: value[0]).process(FailInTimer()).name("timers"))
    assert failure.message == "timer 10"
    assert failure.operator == "timers"
    assert failure.key == "'b'"
    assert failure.user_line == line_of(FailInTimer, "raise RuntimeError")
    assert failure.element is None


class FailInWindow(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        if key == "b":
            raise LookupError(f"window {context.window().start}")
        return ()


class FailInAdd(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1 // value[1]

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def windows(stream: Any, aligned: bool) -> Any:
    windowed = stream.key_by(lambda value: value[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windowed if aligned else windowed.trigger(CountTrigger.of(1))


@pytest.mark.parametrize("aligned", [True, False])
def test_a_window_function(aligned: bool) -> None:
    failure = failure_of(lambda stream: windows(stream, aligned).process(FailInWindow()).name("per window"))
    assert failure.error_type == "LookupError"
    assert failure.operator == "per window"
    assert failure.key == "'b'"
    assert failure.user_line == line_of(FailInWindow, "raise LookupError")


@pytest.mark.parametrize("aligned", [True, False])
def test_an_aggregation_in_a_window(aligned: bool) -> None:
    failure = failure_of(lambda stream: windows(stream, aligned).aggregate(FailInAdd()))
    assert failure.error_type == "ZeroDivisionError"
    assert failure.operator == "TumblingEventTimeWindows"
    assert failure.user_line == line_of(FailInAdd, "1 // value")


class FailInOpen(FlatMapFunction):
    def open(self, runtime_context: Any) -> None:
        raise ConnectionError("no such host")

    def flat_map(self, value: Any) -> Any:
        yield value


def test_open() -> None:
    failure = failure_of(lambda stream: stream.map(lambda value: value).flat_map(FailInOpen()).name("connect"))
    assert failure.message == "no such host"
    assert failure.operator == "connect"
    assert failure.user_line == line_of(FailInOpen, "raise ConnectionError")
    assert failure.element is None
    assert failure.key is None


class FailInClose(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def close(self) -> None:
        raise OSError("cannot close")


def test_close() -> None:
    failure = failure_of(lambda stream: stream.process(FailInClose()).name("closing"))
    assert failure.message == "cannot close"
    assert failure.operator == "closing"
    assert failure.user_line == line_of(FailInClose, "raise OSError")


def test_the_wrong_shape() -> None:
    failure = failure_of(lambda stream: stream.flat_map(lambda value: 5).name("flat"))
    assert failure.operator == "flat"
    assert failure.element == "('a', 1)"
    assert failure.hint
    assert failure.user_line == line_of(test_the_wrong_shape, "lambda value: 5")


@pytest.mark.parametrize(
    ("selector", "error_type", "key"),
    [
        (lambda value: None, "InvalidKeyError", "None"),
        (lambda value: [value[0]], "InvalidKeyError", "['a']"),
        (lambda value: float("nan"), "InvalidKeyError", "nan"),
        (lambda value: value[7], "IndexError", None),
    ],
    ids=["none", "unhashable", "nan", "missing"],
)
def test_a_bad_key(selector: Any, error_type: str, key: str | None) -> None:
    failure = failure_of(lambda stream: stream.key_by(selector).map(lambda value: value), parallelism=2)
    assert failure.error_type == error_type
    assert failure.element == "('a', 1)"
    assert failure.key in (None, key)
    assert failure.hint


def test_a_bad_key_of_a_keyed_operator_alone() -> None:
    failure = failure_of(lambda stream: stream.key_by(lambda value: value[1] or None).process(FailOnZero()))
    assert failure.error_type == "InvalidKeyError"
    assert failure.element == "('b', 0)"


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("not even a repr")


def test_an_element_that_cannot_be_shown() -> None:
    failure = failure_of(lambda stream: stream.map(lambda value: Hostile()).map(lambda value: value.missing))
    assert failure.error_type == "AttributeError"
    assert failure.element
    assert "Hostile" in failure.element


def test_a_long_element_is_cut() -> None:
    failure = failure_of(lambda stream: stream.map(lambda value: "x" * 100_000).map(int))
    assert failure.error_type == "ValueError"
    assert failure.element
    assert len(failure.element) < 1000


def test_the_second_of_two_subtasks() -> None:
    source = TestingSource.with_splits([1], [0])
    env = test_environment(2)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "records").map(lambda value: 1 / value)
    with pytest.raises(JobExecutionError) as caught:
        collect(stream)
    assert caught.value.failure.subtask == 1
    assert caught.value.failure.task
    assert "(2/2)" in caught.value.failure.task


def test_a_side_output_reader() -> None:
    from firesteel.datastream import OutputTag

    tag = OutputTag("side")

    class Aside(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield tag, value[1]

    def build(stream: Any) -> Any:
        return stream.process(Aside()).get_side_output(tag).map(lambda value: 1 / value).name("of side")

    failure = failure_of(build)
    assert failure.operator == "of side"
    assert failure.element == "0"
