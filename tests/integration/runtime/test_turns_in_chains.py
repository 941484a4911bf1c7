"""Chains whose turns end after any record: all records come, in their order, each ahead of the watermark behind it."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.common.watermark_strategy import WatermarkGenerator, WatermarkOutput
from firesteel.datastream import ProcessFunction
from firesteel.runtime.time.turns import Turn
from firesteel.testing import At, TestingSource, collect, test_environment

RECORDS = 1500
_turns: dict[int, Turn] = {}
"""The present turn of each thread."""


@pytest.fixture(autouse=True)
def noted_turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    begin = Turn.begin

    def noting(self: Turn, now: float) -> None:
        _turns[threading.get_ident()] = self
        begin(self, now)

    monkeypatch.setattr(Turn, "begin", noting)
    yield
    _turns.clear()


class EveryTenth(WatermarkGenerator):
    """A generator of the program's own: a watermark behind every tenth record."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp % 10 == 9:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Ending(ProcessFunction):
    """Ends some turns, as the watch does if a function is slow or the outputs are full."""

    def __init__(self, one_in: int):
        self._one_in = one_in

    def open(self, runtime_context: Any) -> None:
        self._rng = random.Random(7)

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        if self._rng.randrange(self._one_in) == 0:
            _turns[threading.get_ident()].end()
        assert ctx.timestamp() == value
        yield value, ctx.timer_service().current_watermark()


STRATEGIES = {
    "none": WatermarkStrategy.no_watermarks(),
    "batches": WatermarkStrategy.for_monotonous_timestamps(),
    "own": WatermarkStrategy.for_generator(EveryTenth),
}


def timed(name: str) -> WatermarkStrategy:
    return STRATEGIES[name].with_timestamp_assigner(lambda value, _time: value)


@pytest.mark.parametrize("behind_exchange", [False, True], ids=["chained", "exchange"])
@pytest.mark.parametrize("strategies", list(itertools.product(STRATEGIES, [*STRATEGIES, ""], ["batches", "own", ""])))
@pytest.mark.parametrize("one_in", [2, 100])
def test_all_records_come_in_order(strategies: tuple[str, ...], behind_exchange: bool, one_in: int) -> None:
    first, second, third = strategies
    env = test_environment(1)
    stream = env.from_source(TestingSource([At(n, n) for n in range(RECORDS)]), timed(first), "numbers")
    if behind_exchange:
        stream = stream.rebalance()
    for name in (second, third):
        if name:
            stream = stream.assign_timestamps_and_watermarks(timed(name))
    results = collect(stream.process(Ending(one_in)))
    assert [value for value, _ in results] == list(range(RECORDS))
    assert all(value > watermark for value, watermark in results), "late"
