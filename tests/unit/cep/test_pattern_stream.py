"""CEP.pattern and PatternStream, as a program uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firesteel.cep import (
    CEP,
    IterativeCondition,
    MalformedPatternException,
    Pattern,
    PatternFlatSelectFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
)
from firesteel.common import Configuration, WatermarkStrategy
from firesteel.common.errors import InvalidProgramError, JobExecutionError
from firesteel.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from firesteel.testing import test_environment as in_process

TIMED_OUT = OutputTag("timed out")
RECORDS = [("k", "a", 1), ("l", "a", 2), ("k", "b", 3), ("l", "x", 30)]


def stream_of(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record: record[2])
    return env.from_collection(RECORDS).assign_timestamps_and_watermarks(strategy)


def a_then_b() -> Pattern:
    a = Pattern.begin("a").where(lambda record: record[1] == "a")
    return a.followed_by("b").where(lambda record: record[1] == "b").within(10)


class Select(PatternSelectFunction):
    def open(self, runtime_context: Any) -> None:
        self.prefix = "opened"

    def select(self, match: Any) -> Any:
        return self.prefix, match["b"][0][2]


class FlatSelect(PatternFlatSelectFunction):
    def flat_select(self, match: Any) -> Iterator[Any]:
        yield match["a"][0][2]
        yield match["b"][0][2]


class Timeout(PatternTimeoutFunction):
    def timeout(self, match: Any, timeout_timestamp: int) -> Any:
        return match["a"][0][0], timeout_timestamp


def results(build: Callable[[StreamExecutionEnvironment], DataStream]) -> list[Any]:
    return sorted(build(in_process()).execute_and_collect())


def test_select_and_flat_select() -> None:
    def keyed(env: StreamExecutionEnvironment) -> Any:
        return CEP.pattern(stream_of(env).key_by(lambda record: record[0]), a_then_b())

    assert results(lambda env: keyed(env).select(Select())) == [("opened", 3)]
    assert results(lambda env: keyed(env).select(len)) == [2]
    assert results(lambda env: keyed(env).flat_select(FlatSelect())) == [1, 3]
    assert results(lambda env: keyed(env).flat_select(list)) == ["a", "b"]
    assert results(lambda env: keyed(env).in_processing_time().in_event_time().select(len)) == [2]


def test_timed_out_partial_matches() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        pattern_stream = CEP.pattern(stream_of(env).key_by(lambda record: record[0]), a_then_b())
        return pattern_stream.select(TIMED_OUT, Timeout(), Select()).get_side_output(TIMED_OUT)

    def build_flat(env: StreamExecutionEnvironment) -> DataStream:
        pattern_stream = CEP.pattern(stream_of(env).key_by(lambda record: record[0]), a_then_b())
        selected = pattern_stream.flat_select(TIMED_OUT, lambda match, time: [time, len(match)], FlatSelect())
        return selected.get_side_output(TIMED_OUT)

    assert results(build) == [("l", 12)]
    assert results(build_flat) == [1, 12]


def test_a_stream_without_keys_is_matched_as_a_whole() -> None:
    env = in_process()
    env.set_parallelism(2)
    matched = CEP.pattern(stream_of(env), a_then_b()).select(lambda match: match["a"][0][0])
    assert sorted(matched.execute_and_collect()) == ["k", "l"]


def test_conditions_are_opened_and_closed() -> None:
    class Opened(IterativeCondition):
        subtask: int | None = None

        def open(self, runtime_context: Any) -> None:
            self.subtask = runtime_context.get_index_of_this_subtask()

        def filter(self, value: Any, ctx: Any) -> bool:
            return self.subtask == 0

    pattern = Pattern.begin("a").where(Opened())
    assert results(lambda env: CEP.pattern(stream_of(env), pattern).select(len)) == [1, 1, 1, 1]


def test_what_is_refused() -> None:
    stream = stream_of(in_process())
    with pytest.raises(MalformedPatternException, match="never match"):
        CEP.pattern(stream, Pattern.begin("a").not_followed_by("b"))
    with pytest.raises(TypeError, match="needs a Pattern"):
        CEP.pattern(stream, "a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs a DataStream"):
        CEP.pattern([], a_then_b())  # type: ignore[arg-type]
    matched = CEP.pattern(stream, a_then_b())
    with pytest.raises(TypeError, match="PatternProcessFunction"):
        matched.process(len)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="OutputTag as the first"):
        matched.select(len, len)
    with pytest.raises(TypeError, match="PatternSelectFunction"):
        matched.select(3)
    with pytest.raises(TypeError, match="OutputTag"):
        matched.side_output_late_data("late")  # type: ignore[arg-type]


def test_coroutine_functions_are_refused() -> None:
    async def coroutine(*_: Any) -> bool:
        return True

    class Awaited(IterativeCondition):
        async def filter(self, value: Any, ctx: Any) -> bool:  # type: ignore[override]
            return True

    stream = stream_of(in_process())
    matched = CEP.pattern(stream, a_then_b())
    for use in (
        lambda: CEP.pattern(stream, Pattern.begin("a").where(coroutine)),
        lambda: CEP.pattern(stream, Pattern.begin(Pattern.begin("a").one_or_more().until(Awaited()))),
        lambda: matched.select(coroutine),
        lambda: matched.flat_select(TIMED_OUT, coroutine, list),
    ):
        with pytest.raises(InvalidProgramError, match="async def"):
            use()


def test_the_limit_is_an_option() -> None:
    env = in_process()
    env.configure(Configuration.from_dict({"pipeline.cep.max-partial-matches": "2"}))
    always = Pattern.begin("a").followed_by("never").where(lambda _: False)
    CEP.pattern(stream_of(env), always).select(len).print()
    with pytest.raises(JobExecutionError, match="Key 0: There are 3 partial matches"):
        env.execute()


def test_an_error_names_the_function_of_the_program() -> None:
    class Broken(PatternProcessFunction):
        def process_match(self, match: Any, ctx: Any) -> Any:
            raise ValueError("broken function")

    env = in_process()
    CEP.pattern(stream_of(env), a_then_b()).process(Broken()).print()
    with pytest.raises(JobExecutionError, match="broken function") as raised:
        env.execute()
    assert "test_pattern_stream.py" in str(raised.value)
