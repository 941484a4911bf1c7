"""Async I/O in running jobs: full capacity, checkpoints, failures, cancellation, and what blocks the event loop."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Time
from firesteel.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy
from firesteel.testing import eventually, test_environment
from tests.support.jobs.running_jobs import (
    DEADLINE_S,
    Gate,
    GatedSink,
    Probe,
    RunningJob,
    environment,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    source,
    start,
)

LONG = Time.hours(1)
RECORDS = 300
UNALIGNED = {
    "execution__checkpointing__unaligned__enabled": "true",
    "execution__checkpointing__externalized_checkpoint_retention": "RETAIN_ON_CANCELLATION",
}
every_mode = pytest.mark.parametrize("wait", [AsyncDataStream.ordered_wait, AsyncDataStream.unordered_wait])


class Gated(AsyncFunction[Any, Any]):
    """Answers while its gate is open."""

    def __init__(self, gate: Gate, called: Probe, ended: Probe | None = None):
        self.gate, self.called, self.ended = gate, called, ended

    async def async_invoke(self, value: Any) -> list[Any]:
        self.called.add(value)
        try:
            while not self.gate.is_open:
                await asyncio.sleep(0.002)
        finally:
            if self.ended is not None:
                self.ended.add(value)
        return [value]


def stays_at(probe: Probe, count: int) -> None:
    probe.awaits(count)
    assert len(probe.values) == count


@pytest.mark.parametrize("is_chained", [True, False], ids=["chained", "exchange"])
@every_mode
def test_a_checkpoint_while_the_capacity_is_used_up(wait: Any, is_chained: bool, tmp_path: Path) -> None:
    """The checkpoint completes, and has what is in flight; with another parallelism everything arrives once."""
    gate, called = Gate(), Probe()

    def job(parallelism: int, **options: str) -> RunningJob:
        env = environment(tmp_path, parallelism, **UNALIGNED, **options)
        numbers = source(env, range(RECORDS), range(RECORDS, 2 * RECORDS))
        numbers = numbers if is_chained else numbers.rebalance()
        return start(wait(numbers, Gated(gate, called), LONG, capacity=5).uid("calls"))

    first = job(2)
    stays_at(called, 10)
    path = first.checkpoint()
    in_flight = [state for state in metadata_of(path).operators if _has_in_flight(state)]
    assert in_flight
    assert first.results == []
    first.cancel()
    again = list(called.values)
    second = job(3, execution__state_recovery__path=path)
    called.awaits(len(again) + 10)
    assert set(again) <= set(called.values[10:])
    gate.open()
    assert sorted(second.wait()) == list(range(2 * RECORDS))


def _has_in_flight(state: Any) -> bool:
    return any(each.name == "_in_flight" for subtask in state.subtasks.values() for each in subtask.operator)


def test_a_failure_in_between_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """An attempt fails while calls are under way; the next one begins with those of the checkpoint."""
    gate, called, failing = Gate(), Probe(), Gate()

    class Failing(Gated):
        async def async_invoke(self, value: Any) -> list[Any]:
            result = await super().async_invoke(value)
            if failing.is_open and value == 100:
                failing.close()
                raise ValueError("once")
            return result

    env = environment(tmp_path)
    numbers = source(env, range(RECORDS)).map(lambda value: value)
    job = start(AsyncDataStream.ordered_wait(numbers, Failing(gate, called), LONG, capacity=20))
    stays_at(called, 20)
    job.checkpoint()
    failing.open()
    gate.open()
    assert job.wait() == list(range(RECORDS))
    assert job.attempt == 1
    assert called.values.count(0) == 2


@every_mode
def test_stop_with_a_savepoint(wait: Any, tmp_path: Path) -> None:
    """After the savepoint nothing in flight is emitted: it is called again in the job that continues."""
    gate, called = Gate(), Probe()
    env = environment(tmp_path)
    job = start(wait(source(env, range(50), bounded=False), Gated(gate, called), LONG, capacity=7).uid("calls"))
    stays_at(called, 7)
    path = job.stop()
    assert job.results == []
    gate.open()
    seen = Probe()
    env = environment(tmp_path, execution__state_recovery__path=path)
    calls = wait(source(env, range(50), bounded=False), Gated(gate, called), LONG, capacity=7).uid("calls")
    second = start(calls.map(seen.pass_on))
    seen.awaits(50)
    second.stop()
    assert sorted(second.results) == list(range(50))


class GatedFrom(Gated):
    """Answers for small numbers at once, for others while its gate is open."""

    async def async_invoke(self, value: Any) -> list[Any]:
        return [value] if value < 5 else await super().async_invoke(value)


@pytest.mark.parametrize("is_chained", [True, False], ids=["chained", "exchange"])
@every_mode
def test_results_that_come_while_a_job_stops_are_not_emitted(wait: Any, is_chained: bool, tmp_path: Path) -> None:
    """They come behind the barrier of the savepoint: it has their records, for which the next job calls again."""
    gate, called, ended, seen, room = Gate(), Probe(), Probe(), Probe(), Gate()

    def calls(**options: str) -> Any:
        numbers = source(environment(tmp_path, **options), range(12), bounded=False)
        numbers = numbers if is_chained else numbers.rebalance()
        return (
            wait(numbers, GatedFrom(gate, called, ended), LONG, capacity=8).uid("calls").rebalance().map(seen.pass_on)
        )

    job = start(calls(), GatedSink("results", room))
    stays_at(called, 7)
    tasks = 1 if is_chained else 2
    stopping = job.handle.stop_with_savepoint(False, None, native=False)
    eventually(lambda: _acknowledged(job) == tasks, timeout=DEADLINE_S)
    gate.open()
    ended.awaits(7)
    # the sink, which has not processed what is before the barrier, lets the savepoint complete
    room.open()
    path = stopping.result(DEADLINE_S)
    assert sorted(job.wait()) == list(range(5))
    assert sorted(seen.values) == list(range(5))
    second = start(calls(execution__state_recovery__path=path))
    seen.awaits(12)
    second.stop()
    assert sorted(second.results) == list(range(5, 12))


def _acknowledged(job: RunningJob) -> int:
    history = job.statistics["history"]
    return history[0]["num_acknowledged_subtasks"] if history else 0  # type: ignore[no-any-return]


def test_stop_and_drain(tmp_path: Path) -> None:
    """The savepoint waits for what is in flight."""
    gate, called = Gate(), Probe()
    env = environment(tmp_path)
    numbers = source(env, range(50), bounded=False)
    first = AsyncDataStream.ordered_wait(numbers, Gated(gate, called), LONG, capacity=7)
    job = start(AsyncDataStream.unordered_wait(first, Gated(gate, Probe()), LONG, capacity=2))
    stays_at(called, 7)
    stopping = job.handle.stop_with_savepoint(True, None, native=False)
    assert not stopping.done()
    gate.open()
    stopping.result(DEADLINE_S)
    results = sorted(job.wait())
    assert results == list(range(len(results)))
    assert len(results) >= 7


def test_other_tasks_of_the_slot_go_on(tmp_path: Path) -> None:
    gate, called, seen = Gate(), Probe(), Probe()
    env = environment(tmp_path)
    full = AsyncDataStream.unordered_wait(source(env, range(50)), Gated(gate, called), LONG, capacity=2)
    other = source(env, range(1000), uid="other").map(seen.pass_on)
    job = start(full.union(other))
    seen.awaits(1000)
    stays_at(called, 2)
    gate.open()
    assert sorted(job.wait()) == sorted([*range(50), *range(1000)])


def test_one_record_that_brings_very_many(tmp_path: Path) -> None:
    env = environment(tmp_path)
    many = source(env, [0, 1, 2]).flat_map(lambda value: range(value * 10_000, (value + 1) * 10_000))
    calls = AsyncDataStream.ordered_wait(many, Gated(Gate(is_open=True), Probe()), LONG, capacity=100)
    assert start(calls).wait() == list(range(30_000))


def test_several_functions_in_a_chain(tmp_path: Path) -> None:
    env = environment(tmp_path)
    stream = source(env, range(500))
    for capacity in (50, 3, 20):
        function = Gated(Gate(is_open=True), Probe())
        stream = AsyncDataStream.ordered_wait(stream.map(lambda value: value), function, LONG, capacity=capacity)
    assert start(stream).wait() == list(range(500))


# -- failures -----------------------------------------------------------------------------------------------


class Broken(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [1 // (value - 7)]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_failure_names_the_line_and_the_record(mode: str) -> None:
    env = test_environment()
    env._configuration.set_string("execution.runtime-mode", mode)
    stream = AsyncDataStream.ordered_wait(env.from_collection(range(20)), Broken(), LONG).name("divide")
    failure = start(stream).fails().failure
    lines, first = inspect.getsourcelines(Broken)
    assert failure.operator == "divide"
    assert failure.error_type == "ZeroDivisionError"
    assert failure.element == "7"
    assert Path(failure.user_file).name == "test_async_io.py"
    assert failure.user_line == first + len(lines) - 1


class NoList(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> Any:
        return None if value == 3 else [value]


def test_a_result_that_is_none_names_the_function() -> None:
    env = test_environment()
    failure = start(AsyncDataStream.ordered_wait(env.from_collection(range(20)), NoList(), LONG)).fails().failure
    assert "cannot be None" in failure.message
    assert failure.element == "3"
    assert failure.user_line == inspect.getsourcelines(NoList.async_invoke)[1]


def test_attempts_are_used_up(tmp_path: Path) -> None:
    env = test_environment()
    strategy = AsyncRetryStrategy.fixed_delay(2, 1, None, lambda error: isinstance(error, ZeroDivisionError))
    stream = AsyncDataStream.unordered_wait_with_retry(env.from_collection([7]), Broken(), Time.seconds(60), strategy)
    failure = start(stream).fails().failure
    assert (failure.error_type, failure.element) == ("ZeroDivisionError", "7")


def test_a_cancelled_job_cancels_its_calls(tmp_path: Path) -> None:
    called, ended = Probe(), Probe()
    env = environment(tmp_path)
    job = start(AsyncDataStream.unordered_wait(source(env, range(50)), Gated(Gate(), called, ended), LONG, 10))
    stays_at(called, 10)
    job.cancel()
    ended.awaits(10)


# -- the event loop -----------------------------------------------------------------------------------------


class Blocking(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        self.wait_for_it()
        return [value]

    def wait_for_it(self) -> None:
        # until the warning is there, so that the test does not depend on how fast the machine is
        until = time.monotonic() + DEADLINE_S
        while not _warnings and time.monotonic() < until:
            time.sleep(0.01)


_warnings: list[str] = []


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _warnings.append(record.getMessage())


def test_a_function_that_blocks_the_loop_is_named() -> None:
    handler, logger = _Handler(), logging.getLogger("firesteel.process.event_loop_watch")
    _warnings.clear()
    logger.addHandler(handler)
    try:
        env = test_environment()
        job = start(AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3]), Blocking(), LONG))
        assert job.wait() == [1, 2, 3]
    finally:
        logger.removeHandler(handler)
    line = inspect.getsourcelines(Blocking.async_invoke)[1] + 1
    assert len(_warnings) == 1
    assert "Blocking.async_invoke blocks the event loop" in _warnings[0]
    assert f"test_async_io.py:{line} (self.wait_for_it())" in _warnings[0]
    assert "asyncio.to_thread" in _warnings[0]


def test_a_blocking_call_in_a_thread_is_no_problem() -> None:
    class InThread(AsyncFunction[Any, Any]):
        async def async_invoke(self, value: Any) -> list[Any]:
            return [await asyncio.to_thread(lambda: value + 1)]

    env = test_environment()
    stream = AsyncDataStream.ordered_wait(env.from_collection(range(50)), InThread(), LONG)
    assert start(stream).wait() == list(range(1, 51))
