"""A source that cannot be read, as consumers hold it back or its slot is blocked, is not idle: no record gets late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.datastream import ProcessFunction
from firesteel.runtime.time.input_clock import InputClock
from firesteel.spi.source import InputStatus, ReaderOutput
from firesteel.testing import FakeClock, test_environment
from tests.support.jobs.virtual_slots import EndlessNumbers, VirtualSlots, _EndlessReader, now_ms, spend

AHEAD = 1 << 40
BY_NUMBER = WatermarkStrategy.for_monotonous_timestamps()
late: list[tuple[int, int]] = []
seen = [0, 0]
"""How many records came from each of the streams, the one ahead and the one behind."""


class Slow(ProcessFunction):
    """Takes a little time for each record, and every so many records a lot."""

    def __init__(self, seconds: float, stall: float, every: int):
        self._seconds = seconds
        self._stall = stall
        self._every = every
        self._count = 0

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        self._count += 1
        spend(self._stall if self._count % self._every == 0 else self._seconds)
        seen[value < AHEAD] += 1
        watermark = ctx.timer_service().current_watermark()
        if ctx.timestamp() <= watermark:
            late.append((value, watermark))
        yield from ()


class FallsSilent(EndlessNumbers):
    """Has ten numbers."""

    def create_reader(self, context: Any) -> Any:
        return _SilentReader(1)


class _SilentReader(_EndlessReader):
    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        return InputStatus.NOTHING_AVAILABLE if self._next == 10 else super().poll_next(output, max_records)

    def available_at(self) -> float:
        return now_ms() / 1000 + 0.1


def run(source: EndlessNumbers, slow: Slow, *, seconds: float, shares_slot: bool, in_mid_stream: bool) -> VirtualSlots:
    """A job of a stream that is far ahead of another one, whose source has an idle timeout of 300 ms."""
    late.clear()
    seen[:] = [0, 0]
    env = test_environment(1)
    ahead = env.from_source(EndlessNumbers(), BY_NUMBER.with_timestamp_assigner(lambda number: number + AHEAD), "ahead")
    with_idleness = BY_NUMBER.with_timestamp_assigner(lambda number: number).with_idleness(300)
    if in_mid_stream:
        behind = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").rebalance()
        behind = behind.assign_timestamps_and_watermarks(with_idleness)
    else:
        behind = env.from_source(source, with_idleness, "behind")
    united = ahead.map(lambda number: number + AHEAD).union(behind.map(lambda number: number).name("behind"))
    result = united.rebalance().process(slow)
    if not shares_slot:
        result = result.slot_sharing_group("slow")
    result.print()
    job = VirtualSlots(env)
    job.run(seconds)
    return job


@pytest.mark.parametrize("in_mid_stream", [False, True], ids=["source", "mid-stream"])
@pytest.mark.parametrize("shares_slot", [True, False], ids=["same slot", "slot of its own"])
def test_a_busy_source_is_not_idle(shares_slot: bool, in_mid_stream: bool) -> None:
    run(EndlessNumbers(), Slow(1e-5, 0.7, 9_000), seconds=30.0, shares_slot=shares_slot, in_mid_stream=in_mid_stream)
    assert min(seen) > 10_000
    assert late == []


@pytest.mark.parametrize("in_mid_stream", [False, True], ids=["source", "mid-stream"])
@pytest.mark.parametrize("shares_slot", [True, False], ids=["same slot", "slot of its own"])
@pytest.mark.parametrize("slow", [Slow(1e-4, 0.7, 900), Slow(0.7, 0.7, 100), Slow(0.01, 0.01, 100)], ids=range(3))
def test_a_silent_source_is_idle_however_busy_its_slot_is(slow: Slow, shares_slot: bool, in_mid_stream: bool) -> None:
    job = run(FallsSilent(), slow, seconds=10.0, shares_slot=shares_slot, in_mid_stream=in_mid_stream)
    operators: list[Any] = [chained.operator for task in job.tasks("behind") for chained in task.chain]
    assert [operator._assigner.idle for operator in operators if hasattr(operator, "_assigner")] == [True]


def test_the_clock_stands_still_while_input_waits() -> None:
    clock = FakeClock(1000)
    input_clock = InputClock(clock.monotonic_ms)
    clock.advance(10)
    assert input_clock() == 1010
    input_clock.stop()
    clock.advance(100)
    input_clock.stop()
    assert input_clock() == 1010
    input_clock.go_on()
    assert input_clock() == 1010
    clock.advance(5)
    input_clock.go_on()
    assert input_clock() == 1015
