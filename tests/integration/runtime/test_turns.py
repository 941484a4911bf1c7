"""Turns that take too long end after the record under way, and no record is lost or processed twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import WatermarkStrategy
from firesteel.datastream.functions import CoMapFunction, SinkFunction
from firesteel.process.concurrency import SYSTEM
from firesteel.runtime.time import turns
from firesteel.runtime.time.turns import MAX_TURN_S, Turn, TurnWatch
from firesteel.testing import eventually, test_environment
from tests.support.jobs.virtual_slots import POLL_INTERVAL_S, STEP_S, VirtualSlots, endless_numbers, spend


def process(turn: Turn, records: list[int], work: Callable[[int], None], *, with_timestamps: bool) -> list[int]:
    """A loop as the generated ones are."""
    done = []
    turn.cursor = iter(records)
    if with_timestamps:
        for record, timestamp in zip(turn.cursor, [10 * each for each in records], strict=False):
            assert timestamp == 10 * record
            work(record)
            done.append(record)
    else:
        for record in turn.cursor:
            work(record)
            done.append(record)
    return done


@given(st.integers(0, 50), st.integers(0, 60), st.booleans())
def test_a_loop_ends_after_the_record_under_way(size: int, at: int, with_timestamps: bool) -> None:
    turn = Turn()
    records = list(range(size))

    def work(record: int) -> None:
        if record == at:
            turn.end()

    done = process(turn, records, work, with_timestamps=with_timestamps)
    assert done == records[: at + 1]
    assert turn.take_rest() == records[at + 1 :]
    assert turn.take_rest() == []


@pytest.mark.parametrize("with_timestamps", [False, True])
def test_another_thread_can_end_a_turn_at_any_time(with_timestamps: bool) -> None:
    turn = Turn()
    is_over = threading.Event()

    def end_again_and_again() -> None:
        while not is_over.is_set():
            turn.end()

    thread = threading.Thread(target=end_again_and_again)
    thread.start()
    cuts = 0
    try:
        for _ in range(300):
            records = list(range(5_000))
            while records:
                done = process(turn, records, lambda record: None, with_timestamps=with_timestamps)
                rest = turn.take_rest()
                assert done + rest == records
                cuts += bool(rest)
                records = rest
    finally:
        is_over.set()
        thread.join()
    assert cuts


@contextmanager
def watching(*watched: Turn) -> Iterator[TurnWatch]:
    watch = TurnWatch(watched, SYSTEM)
    try:
        yield watch
    finally:
        watch.close()


def test_the_watch_ends_a_turn_that_takes_too_long() -> None:
    turn, other = Turn(), Turn()
    with watching(turn, other):
        for _ in range(2):
            turn.begin(SYSTEM.monotonic())
            done = process(
                turn, list(range(100)), lambda record: eventually(lambda: turn.is_over), with_timestamps=False
            )
            assert done == [0]
            assert turn.take_rest() == list(range(1, 100))
            turn.finish()
    assert not other.is_over


def test_the_watch_sleeps_while_there_are_no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_IDLE_POLLS_BEFORE_SLEEP", 1)
    turn = Turn()
    with watching(turn) as watch:
        eventually(lambda: watch.is_asleep)
        turn.begin(SYSTEM.monotonic())
        eventually(lambda: turn.is_over)
        turn.finish()
        eventually(lambda: watch.is_asleep)


class SlowSink(SinkFunction):
    def __init__(self, work: Callable[[int], None]):
        self._work = work

    def invoke(self, value: int) -> None:
        self._work(value)


class BothSlow(CoMapFunction):
    def __init__(self, work: Callable[[int], int]):
        self.map1 = self.map2 = work  # type: ignore[assignment, method-assign]

    def map1(self, value: int) -> int:
        raise AssertionError

    map2 = map1


BY_NUMBER = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number: number)


def slow_from(first: int, seconds: float) -> Callable[[int], int]:
    def work(number: int) -> int:
        spend(seconds if number >= first else 1e-6)
        return number

    return work


def longest_turn(stream: Any) -> float:
    """Of a job that ends with the stream, over a minute."""
    env = stream.get_execution_environment()
    stream.filter(lambda _number: False).print()
    return run(env)


def run(env: Any) -> float:
    job = VirtualSlots(env)
    job.run(60.0)
    return max(waits.longest_turn for waits in job.waits) - 2 * STEP_S - POLL_INTERVAL_S


@pytest.mark.parametrize("first", [0, 1, 7, 30_000])
@pytest.mark.parametrize("seconds", [0.5, 0.03, 0.001])
class TestOneSlowFunction:
    """Which is slow from a certain number on, and before that so fast that batches are large."""

    def test_behind_an_exchange(self, first: int, seconds: float) -> None:
        stream = endless_numbers(test_environment(1)).rebalance().map(slow_from(first, seconds))
        assert longest_turn(stream) <= MAX_TURN_S + seconds

    def test_chained_to_a_source(self, first: int, seconds: float) -> None:
        assert longest_turn(endless_numbers(test_environment(1)).map(slow_from(first, seconds))) <= MAX_TURN_S + seconds

    def test_of_two_branches_of_a_source(self, first: int, seconds: float) -> None:
        stream = endless_numbers(test_environment(1))
        branch = stream.map(slow_from(first, seconds / 2)).filter(lambda _number: False)
        assert longest_turn(branch.union(stream.map(slow_from(first, seconds / 2)))) <= MAX_TURN_S + seconds

    def test_behind_timestamps(self, first: int, seconds: float) -> None:
        stream = endless_numbers(test_environment(1)).rebalance().assign_timestamps_and_watermarks(BY_NUMBER)
        assert longest_turn(stream.map(slow_from(first, seconds))) <= MAX_TURN_S + seconds

    def test_behind_timestamps_chained_to_a_source(self, first: int, seconds: float) -> None:
        stream = endless_numbers(test_environment(1)).assign_timestamps_and_watermarks(BY_NUMBER)
        assert longest_turn(stream.map(slow_from(first, seconds))) <= MAX_TURN_S + seconds

    def test_of_two_inputs(self, first: int, seconds: float) -> None:
        env = test_environment(1)
        stream = (
            endless_numbers(env)
            .rebalance()
            .connect(endless_numbers(env).rebalance())
            .map(BothSlow(slow_from(first, seconds)))
        )
        assert longest_turn(stream) <= MAX_TURN_S + seconds

    def test_that_multiplies_in_one_loop_with_others(self, first: int, seconds: float) -> None:
        stream = endless_numbers(test_environment(1)).rebalance()
        stream = stream.flat_map(lambda number: [number] * 4).map(slow_from(first, seconds / 4))
        assert longest_turn(stream) <= MAX_TURN_S + seconds

    def test_of_windows(self, first: int, seconds: float) -> None:
        stream = endless_numbers(test_environment(1)).key_by(lambda number: number % 10)
        stream = stream.count_window(1 << 40).reduce(slow_reduce(first, seconds))
        assert longest_turn(stream) <= MAX_TURN_S + seconds

    def test_of_a_sink(self, first: int, seconds: float) -> None:
        env = test_environment(1)
        endless_numbers(env).rebalance().map(lambda number: number).add_sink(SlowSink(slow_from(first, seconds)))
        assert run(env) <= MAX_TURN_S + seconds

    def test_of_a_sink_alone(self, first: int, seconds: float) -> None:
        env = test_environment(1)
        endless_numbers(env).rebalance().add_sink(SlowSink(slow_from(first, seconds)))
        assert run(env) <= MAX_TURN_S + seconds


def slow_reduce(first: int, seconds: float) -> Callable[[int, int], int]:
    work = slow_from(first, seconds)
    return lambda _before, number: work(number)
