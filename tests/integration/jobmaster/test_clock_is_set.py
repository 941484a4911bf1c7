"""The wall clock is set back and forward by an hour: deadlines and delays of a job do not notice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import JobStatus, WatermarkStrategy
from firesteel.common.errors import TaskFailure
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.jobmaster.model.events import MessageReceived
from firesteel.jobmaster.restart_strategy import (
    ExponentialDelayRestartStrategy,
    FailureRateRestartStrategy,
    FixedDelayRestartStrategy,
    RestartStrategy,
)
from firesteel.jobmaster.shell.slot_allocator import SlotAllocator
from firesteel.jobmaster.slots.ledger import SlotPlace
from firesteel.runtime.model.messages import Heartbeat
from firesteel.testing import eventually
from firesteel.testing.in_process import InProcessExecutor
from tests.support.checkpoints.harness import CoordinatorHarness
from tests.support.clocks import NoWallClock, SettableClock
from tests.support.jobs.running_jobs import HOUR, Probe, RunningJob, environment, no_job_goes_on, start

__all__ = ["no_job_goes_on"]

BOOM = TaskFailure("boom", error_type="ValueError")
STEPS = pytest.mark.parametrize("step", [-HOUR, HOUR], ids=["back", "forward"])


# -- the JobMaster --------------------------------------------------------------------------------------------------


@STEPS
def test_slots_that_are_heard_from_are_not_taken_for_lost(harness: Any, step: int) -> None:
    harness.run()
    for _ in range(5):
        harness.wall_offset += step
        for slot in range(harness.slots):
            harness.feed(MessageReceived(slot, Heartbeat(0, slot, 0)), after=1000)
        harness.fire("heartbeat-timeout")
        assert harness.status is JobStatus.RUNNING


@STEPS
def test_slots_that_fall_silent_are_noticed_in_time(harness: Any, step: int) -> None:
    harness.run()
    before = harness.now
    harness.wall_offset += step
    while harness.status is JobStatus.RUNNING:
        harness.fire("heartbeat-timeout")
    assert harness.status is JobStatus.FAILING
    assert harness.now - before <= harness.jm.settings.heartbeat_timeout


@STEPS
@pytest.mark.parametrize(
    "strategy",
    [
        lambda: FixedDelayRestartStrategy(5, 700),
        lambda: FailureRateRestartStrategy(1, 60_000, 700),
        lambda: ExponentialDelayRestartStrategy(700, 60_000, 1.5, jitter_factor=0),
    ],
    ids=["fixed-delay", "failure-rate", "exponential-delay"],
)
def test_a_restart_waits_for_its_delay(make_harness: Any, strategy: Callable[[], RestartStrategy], step: int) -> None:
    harness = make_harness(strategy())
    for _ in range(2):
        harness.run()
        failed_at = harness.now + 1
        harness.failed(0, BOOM)
        harness.wall_offset += step
        harness.stopped(1)
        harness.attempt_ended()
        assert harness.timers["restart-delay"] - failed_at <= 700 * 1.5
        harness.fire("restart-delay")
        assert harness.status is JobStatus.CREATED
        harness.now += 2 * HOUR  # long enough for any strategy to forget the failure


@STEPS
def test_slots_are_waited_for_as_long_as_is_configured(harness: Any, step: int) -> None:
    harness.start()
    asked_at = harness.now
    harness.wall_offset += step
    harness.fire("slot-request-timeout")
    assert harness.status is JobStatus.FAILING
    assert harness.now - asked_at == harness.jm.settings.slot_request_timeout


@STEPS
def test_people_see_the_wall_clock(harness: Any, step: int) -> None:
    harness.start()
    harness.wall_offset += step
    harness.run()
    assert harness.jm.status_timestamps[JobStatus.CREATED] < harness.now
    running_since = harness.jm.status_timestamps[JobStatus.RUNNING]
    assert abs(running_since - (harness.now + step)) < 100


# -- checkpoints ----------------------------------------------------------------------------------------------------


@STEPS
def test_checkpoints_are_triggered_and_given_up_in_time(step: int) -> None:
    jobs = CoordinatorHarness(interval=1000, timeout=5000, tolerable_failures=10)
    jobs.start()
    first = jobs.trigger()
    triggered_at = jobs.now
    jobs.coordinator.wall_clock.set(jobs.now, jobs.now + step)
    while first in jobs.coordinator.pending():
        jobs.due()
    assert jobs.now == triggered_at + 5000
    (failed,) = [each for each in jobs.coordinator.stats.snapshot().to_json()["history"] if each["status"] == "FAILED"]
    assert failed["trigger_timestamp"] == triggered_at
    assert failed["end_to_end_duration"] == 5000
    assert jobs.triggered[first + 1].timestamp == jobs.now + step


# -- whole jobs -----------------------------------------------------------------------------------------------------


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


def _paced(env: StreamExecutionEnvironment) -> DataStream:
    """Records whose event time grows by a second."""
    source = DataGeneratorSource(int, None, RateLimiterStrategy.per_second(1000))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value * 1000)
    return env.from_source(source, strategy, "paced")


def _windows(stream: DataStream, probe: Probe) -> RunningJob:
    keyed = stream.key_by(lambda _: 0).window(TumblingEventTimeWindows.of(10_000))
    return start(keyed.reduce(lambda _, last: last).map(probe.pass_on))


@STEPS
def test_a_job_goes_on(tmp_path: Path, clock: SettableClock, step: int) -> None:
    probe = Probe()
    env = environment(
        tmp_path,
        executor=InProcessExecutor(concurrency=clock),
        execution__checkpointing__interval="50 ms",
        pipeline__auto_watermark_interval="20 ms",
    )
    job = _windows(_paced(env), probe).runs()
    eventually(lambda: job.completed >= 2)
    probe.awaits(2)
    clock.offset_ms += step
    windows, checkpoints = len(probe.values), job.completed
    probe.awaits(windows + 3)
    eventually(lambda: job.completed >= checkpoints + 3)
    assert job.attempt == 0
    assert job.status is JobStatus.RUNNING
    job.cancel()


class _FailsOnce:
    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def __call__(self, value: int) -> int:
        self._probe.add(value)
        if value == 20 and self._probe.values.count(20) == 1:
            raise RuntimeError("boom")
        return value


@STEPS
def test_a_job_restarts(tmp_path: Path, clock: SettableClock, step: int) -> None:
    probe = Probe()
    env = environment(
        tmp_path,
        executor=InProcessExecutor(concurrency=clock),
        restart_strategy__fixed_delay__delay="500 ms",
    )
    job = start(_paced(env).map(_FailsOnce(probe)))
    eventually(lambda: job.status is JobStatus.RESTARTING)
    clock.offset_ms += step
    eventually(lambda: job.status is JobStatus.RUNNING)
    eventually(lambda: max(probe.values) > 20)
    job.cancel()


@STEPS
def test_a_job_in_epochs_goes_on(tmp_path: Path, clock: SettableClock, step: int) -> None:
    probe = Probe()
    env = environment(
        tmp_path,
        executor=InProcessExecutor(concurrency=clock),
        execution__exchange="spark",
        execution__epoch__trigger="interval",
        execution__epoch__interval="50 ms",
    )
    job = _windows(_paced(env), probe)
    probe.awaits(2)
    clock.offset_ms += step
    windows, epochs = len(probe.values), job.completed
    probe.awaits(windows + 3)
    eventually(lambda: job.completed >= epochs + 3)
    assert job.attempt == 0
    job.cancel()


# -- what never looks at the wall clock -----------------------------------------------------------------------------


def test_slots_are_given_out_without_a_wall_clock() -> None:
    total = [1]
    slots = SlotAllocator(lambda: total[0], is_fixed=False, look_s=0.01, concurrency=NoWallClock())
    assert slots.request("first", 1)
    assert not slots.request("second", 1)
    total[0] = 2
    places: list[SlotPlace] = []
    assert slots.wait("second", places.append, lambda: False)
    assert places[-1].total == 2
