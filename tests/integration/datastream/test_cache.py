"""Cached streams: the first batch job that computes the records keeps them for later jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.common.errors import InvalidProgramError, JobExecutionError
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import DataStream, OutputTag, ProcessFunction

BATCH = {"execution.runtime-mode": "BATCH"}


def counting(calls: Path) -> Callable[[int], tuple[int, str]]:
    """A function that notes each of its calls in a file."""

    def counted(number: int) -> tuple[int, str]:
        with calls.open("a") as file:
            file.write(".")
        return number, f"n{number}"

    return counted


def number_of(calls: Path) -> int:
    return len(calls.read_text()) if calls.exists() else 0


def test_later_jobs_read_what_the_first_one_has_computed(in_process_env: Any, tmp_path: Path) -> None:
    env, calls = in_process_env(2, BATCH), tmp_path / "calls"
    expected = [(1, "n1"), (2, "n2"), (3, "n3")]
    cached = env.from_collection([1, 2, 3]).map(counting(calls)).cache()
    assert number_of(calls) == 0
    assert sorted(cached.execute_and_collect()) == expected
    assert sorted(cached.filter(lambda pair: pair[0] > 1).execute_and_collect()) == expected[1:]
    assert sorted(cached.union(cached.map(lambda pair: (-pair[0], ""))).execute_and_collect()) == [
        *((-number, "") for number in (3, 2, 1)),
        *expected,
    ]
    assert number_of(calls) == 3
    cached.invalidate()
    assert sorted(cached.execute_and_collect()) == expected
    assert sorted(cached.execute_and_collect()) == expected
    assert number_of(calls) == 6
    env.close()


def test_an_empty_stream_and_a_shared_directory(in_process_env: Any, tmp_path: Path) -> None:
    env = in_process_env(1, {**BATCH, "execution.checkpointing.dir": str(tmp_path / "shared")})
    cached = env.from_collection([1]).filter(lambda number: number > 1).cache()
    assert list(cached.execute_and_collect()) == []
    assert [path.name.partition("-")[0] for path in (tmp_path / "shared").iterdir()] == ["cache"]
    assert list(cached.execute_and_collect()) == []
    env.close()
    assert list((tmp_path / "shared").iterdir()) == []


def test_a_job_that_fails_keeps_nothing(in_process_env: Any, tmp_path: Path) -> None:
    env, calls = in_process_env(1, {**BATCH, "restart-strategy.type": "none"}), tmp_path / "calls"
    cached = env.from_collection([1]).map(counting(calls)).cache()
    with pytest.raises(JobExecutionError):
        list(cached.map(lambda _: 1 // 0).execute_and_collect())
    failed = number_of(calls)
    assert list(cached.execute_and_collect()) == [(1, "n1")]
    assert number_of(calls) == failed + 1
    env.close()


class Stamped(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 1000


class WithTime(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timestamp()


def test_records_keep_their_timestamps_or_have_none(in_process_env: Any) -> None:
    env = in_process_env(1, BATCH)
    numbers = env.from_collection([1, 2, None])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamped())
    stamped = numbers.filter(lambda n: n is not None).assign_timestamps_and_watermarks(strategy).cache()
    plain = numbers.map(lambda n: n).cache()
    results = [
        (list(stamped.process(WithTime()).execute_and_collect()), list(plain.process(WithTime()).execute_and_collect()))
        for _ in range(2)
    ]
    env.close()
    assert results[0][0] == [(1, 1000), (2, 2000)]
    assert results[1] == results[0]


def test_side_outputs_can_be_cached(in_process_env: Any) -> None:
    tag = OutputTag("odd")

    class Split(ProcessFunction):
        def process_element(self, value: int, _: Any) -> Iterator[Any]:
            yield (tag, value) if value % 2 else value

    env = in_process_env(1, BATCH)
    odd = env.from_collection([1, 2, 3]).process(Split()).get_side_output(tag).cache()
    assert [list(odd.execute_and_collect()), list(odd.execute_and_collect())] == [[1, 3], [1, 3]]
    env.close()


def test_nothing_is_kept_in_streaming_mode(in_process_env: Any, tmp_path: Path) -> None:
    env, calls = in_process_env(1), tmp_path / "calls"
    cached = env.from_collection([1]).map(counting(calls)).cache()
    for _ in range(2):
        assert list(cached.execute_and_collect()) == [(1, "n1")]
    assert number_of(calls) == 2


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda stream: stream.union(stream).cache(), "physical transformation or side output"),
        (lambda stream: stream.key_by(lambda n: n).cache(), "Cache for KeyedStream is not supported"),
        (lambda stream: stream.cache().name("x"), "Set name for CachedDataStream is not supported"),
        (lambda stream: stream.cache().set_parallelism(2), "Set parallelism for CachedDataStream is not supported"),
    ],
)
def test_what_cannot_be_cached_or_set(
    in_process_env: Any, call: Callable[[DataStream[Any]], object], text: str
) -> None:
    with pytest.raises(InvalidProgramError, match=text):
        call(in_process_env().from_collection([1]).map(lambda n: n))
