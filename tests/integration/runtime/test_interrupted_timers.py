"""Timers that fire in large numbers leave room for everything else, and fire once each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream.function_base import CheckpointedFunction, CheckpointListener
from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions, SnapshotKind
from firesteel.runtime.model.messages import TriggerCheckpoint
from firesteel.runtime.time.input_clock import InputClock
from firesteel.runtime.time.turns import MAX_TURN_S, Turn
from firesteel.testing import KeyedProcessFunctionHarness, collect, test_environment
from firesteel.testing.source import At, TestingSource
from tests.support.jobs.virtual_slots import POLL_INTERVAL_S, STEP_S, VirtualSlots, endless_numbers, now_ms, spend

TIMERS = 2_000
TIMER_S = 0.002
DUE = 10_000

log: Any = []
"""What functions, which are copies, tell the test."""


@pytest.fixture(autouse=True)
def _new_log() -> None:
    log.clear()


class EndsTurns(KeyedProcessFunction):
    """Registers a timer per record; each ends the turn it fires in, as if it took very long."""

    def __init__(self, *, event_time: bool):
        self._event_time = event_time
        self.turn = Turn()
        self.input_clock = InputClock(lambda: 0)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        if self._event_time:
            timers.register_event_time_timer(value)
        else:
            timers.register_processing_time_timer(value)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        self.turn.end()
        yield ctx.get_current_key(), timestamp


def harness(function: EndsTurns, backend: str) -> Any:
    made = KeyedProcessFunctionHarness(function, lambda value: value % 7, backend=backend)
    function.turn = made._chained.turn
    return made


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_timers_that_are_left_are_in_a_snapshot_taken_meanwhile(backend: str) -> None:
    with harness(EndsTurns(event_time=True), backend) as first:
        first.process_elements(range(1, 21))
        turn = first._chained.turn
        for _ in range(4):
            turn.begin(1.0)
            assert not first._chained.fire_timers(10)
            turn.finish()
        assert first.output == [(n % 7, n) for n in range(1, 5)]
        snapshot = first.snapshot()
        first.process_watermark(10)
        assert first.output == [(n % 7, n) for n in range(1, 11)]
        assert first.watermarks == [10]
    with harness(EndsTurns(event_time=True), backend).initialize_state(snapshot) as second:
        second.process_watermark(30)
        assert second.output == [(n % 7, n) for n in range(5, 21)]


def test_processing_time_timers_go_on_in_the_next_turn() -> None:
    with harness(EndsTurns(event_time=False), "hashmap") as made:
        turn = made._chained.turn
        turn.begin(1.0)
        made.process_elements(range(1, 21))
        made.advance(30)
        assert made.output == [(n % 7, n) for n in range(1, 21)]


class ManyTimers(KeyedProcessFunction, CheckpointedFunction):
    """All keys have a timer at the same time; the last one to register some tells when they are there."""

    def __init__(self, *, event_time: bool):
        self._event_time = event_time
        self._fired = 0

    def initialize_state(self, context: Any) -> None:
        pass

    def snapshot_state(self, context: Any) -> None:
        log.append(("snapshot", now_ms(), self._fired))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        if value < TIMERS:
            if self._event_time:
                timers.register_event_time_timer(DUE)
            else:
                timers.register_processing_time_timer(1_000)
        elif self._event_time and timers.current_watermark() >= DUE and self._fired < TIMERS:
            log.append(("record before timers", value))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        spend(TIMER_S)
        if not self._fired:
            log.append(("first", now_ms()))
        self._fired += 1
        if self._fired == TIMERS:
            log.append(("last", now_ms()))


def a_little_slow(number: int) -> int:
    spend(50e-6)
    return number


def with_many_timers(tmp_path: Path, *, event_time: bool) -> VirtualSlots:
    """Beside them a job that has nothing to do with them."""
    env = test_environment(1, Configuration().set_string("execution.checkpointing.dir", tmp_path.as_uri()))
    endless_numbers(env, at_a_time=10).key_by(lambda n: n).process(ManyTimers(event_time=event_time)).name("timers")
    endless_numbers(env, at_a_time=10).rebalance().map(a_little_slow).name("beside").filter(lambda n: False).print()
    return VirtualSlots(env)


def told(what: str) -> list[Any]:
    return [entry[1:] for entry in log if entry[0] == what]


@pytest.mark.parametrize("event_time", [True, False])
def test_others_get_on_while_very_many_timers_fire(tmp_path: Path, event_time: bool) -> None:
    job = with_many_timers(tmp_path, event_time=event_time)
    beside: list[int] = []
    job.run(15.0, lambda: beside.append(job.tasks("beside")[0].records_in))
    ((first,),), ((last,),) = told("first"), told("last")
    assert last - first >= (TIMERS - 1) * TIMER_S * 1000
    progress = [after - before for before, after in pairwise(beside)]
    assert min(progress[:14]) * 10 > max(progress[:14])
    assert told("record before timers") == []
    # of a task, and before the next one what timers take
    assert job.waits[0].longest_turn <= 2 * MAX_TURN_S + 2 * TIMER_S + POLL_INTERVAL_S + 2 * STEP_S


@pytest.mark.parametrize("event_time", [True, False])
def test_an_unaligned_barrier_does_not_wait_for_timers(tmp_path: Path, event_time: bool) -> None:
    job = with_many_timers(tmp_path, event_time=event_time)
    options = CheckpointOptions(
        SnapshotKind.CHECKPOINT, CheckpointLocation(f"{tmp_path}/1", f"{tmp_path}/shared"), unaligned=True
    )
    sent: list[int] = []

    def trigger() -> None:
        if told("first") and not sent:
            sources = [(t.descriptor.vertex_id, t.descriptor.subtask) for t in job.tasks("numbers")]
            sent.append(now_ms())
            job.send(TriggerCheckpoint(1, now_ms(), options, tuple(sources)))

    job.run(15.0, trigger)
    ((at, fired),) = told("snapshot")
    assert 0 < fired < TIMERS
    assert at - sent[0] <= 1000 * (4 * (MAX_TURN_S + TIMER_S) + POLL_INTERVAL_S)
    assert told("last")


class FailsOnce(KeyedProcessFunction, CheckpointListener):
    """A timer per record, all due at once and slow; fails while they fire, after a checkpoint."""

    def __init__(self, flag: Path):
        self._flag = flag
        self._fired = 0
        self._fails = False

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        ctx.timer_service().register_event_time_timer(DUE)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[int]:
        time.sleep(0.001)
        self._fired += 1
        if self._fails:
            self._fails = False
            self._flag.write_text(str(self._fired))
            raise RuntimeError("once")
        yield ctx.get_current_key()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._fails = self._fired > 0 and not self._flag.exists()

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        pass


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_job_that_fails_while_timers_fire_fires_each_once(tmp_path: Path, backend: str) -> None:
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.dir": (tmp_path / "checkpoints").as_uri(),
        "state.backend.type": backend,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }.items():
        configuration.set_string(key, value)
    env = test_environment(2, configuration)
    source = TestingSource([At(n, n) for n in range(1_000)])
    numbers = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "numbers")
    flag = tmp_path / "failed"
    results = collect(numbers.key_by(lambda n: n).process(FailsOnce(flag)))
    assert Counter(results) == Counter(range(1_000))
    assert 0 < int(flag.read_text()) < 1_000
