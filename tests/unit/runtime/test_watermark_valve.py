"""How watermarks and idleness of many channels combine: rules, then random scripts against a plain model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firesteel.runtime.elements import MIN_TIMESTAMP
from firesteel.runtime.time.watermarks import WatermarkValve


class Model:
    """Flink 2.3's StatusWatermarkValve, written down rule by rule with no regard to speed."""

    def __init__(self, inputs: int):
        self.inputs = [{"watermark": MIN_TIMESTAMP, "active": True, "aligned": True} for _ in range(inputs)]
        self.last = MIN_TIMESTAMP
        self.idle = False

    def advance(self, index: int, timestamp: int) -> int | None:
        channel = self.inputs[index]
        if self.idle or not channel["active"] or timestamp <= channel["watermark"]:
            return None
        channel["watermark"] = timestamp
        channel["aligned"] = channel["aligned"] or timestamp >= self.last
        return self._output(min, [c for c in self.inputs if c["aligned"]])

    def set_idle(self, index: int, idle: bool) -> tuple[bool, int | None]:
        channel = self.inputs[index]
        if idle and channel["active"]:
            channel["active"] = channel["aligned"] = False
            watermark = None
            all_idle = not any(c["active"] for c in self.inputs)
            if channel["watermark"] == self.last:
                if all_idle:
                    watermark = self._output(max, self.inputs)
                else:
                    watermark = self._output(min, [c for c in self.inputs if c["aligned"]])
            self.idle = all_idle
            return all_idle, watermark
        if not idle and not channel["active"]:
            channel["active"] = True
            if channel["watermark"] >= self.last:
                channel["aligned"] = True
            was_idle, self.idle = self.idle, False
            return was_idle, None
        return False, None

    def _output(self, choose: Any, channels: list[Any]) -> int | None:
        if not channels or choose(c["watermark"] for c in channels) <= self.last:
            return None
        self.last = choose(c["watermark"] for c in channels)
        return self.last


@st.composite
def scripts(draw: st.DrawFn) -> tuple[int, list[tuple[str, int, int]]]:
    inputs = draw(st.integers(1, 4))
    step = st.tuples(
        st.sampled_from(["watermark", "watermark", "idle", "active"]), st.integers(0, inputs - 1), st.integers(0, 12)
    )
    return inputs, draw(st.lists(step, max_size=40))


BACK_AHEAD_OF_THE_OUTPUT = [
    ("watermark", 0, 11),
    ("watermark", 2, 10),
    ("idle", 1, 0),
    ("idle", 0, 0),
    ("active", 1, 0),
    ("idle", 2, 0),
    ("active", 0, 0),
    ("idle", 1, 0),
]
"""Input 0 comes back ahead of the output; input 1, which was behind, held nobody back when it goes."""


@settings(max_examples=300)
@given(scripts())
@example((3, BACK_AHEAD_OF_THE_OUTPUT))
def test_the_valve_does_what_flinks_does(script: tuple[int, list[tuple[str, int, int]]]) -> None:
    inputs, steps = script
    valve, model = WatermarkValve(inputs), Model(inputs)
    for what, index, timestamp in steps:
        if what == "watermark":
            assert valve.advance(index, timestamp) == model.advance(index, timestamp)
        else:
            assert valve.set_idle(index, what == "idle") == model.set_idle(index, what == "idle")
        assert (valve.watermark, valve.idle) == (model.last, model.idle)


@given(scripts())
def test_the_output_never_goes_back_and_is_the_minimum_while_all_are_active(
    script: tuple[int, list[tuple[str, int, int]]],
) -> None:
    inputs, steps = script
    valve = WatermarkValve(inputs)
    highest = [MIN_TIMESTAMP] * inputs
    last = MIN_TIMESTAMP
    for what, index, timestamp in steps:
        if what != "watermark":
            continue
        out = valve.advance(index, timestamp)
        highest[index] = max(highest[index], timestamp)
        assert valve.watermark == min(highest)
        if out is not None:
            assert out > last
            last = out
    assert valve.watermark == last


@pytest.fixture
def valve() -> WatermarkValve:
    return WatermarkValve(2)


def test_the_slowest_input_decides(valve: WatermarkValve) -> None:
    assert valve.advance(0, 10) is None
    assert valve.advance(1, 5) == 5
    assert valve.advance(1, 20) == 10
    assert valve.advance(0, 8) is None, "a watermark that goes back is ignored"


def test_an_idle_input_does_not_hold_back(valve: WatermarkValve) -> None:
    valve.advance(0, 10)
    assert valve.set_idle(1, True) == (False, 10)
    assert valve.advance(1, 3) is None, "an idle input has no say"
    assert valve.advance(0, 12) == 12


def test_an_input_that_comes_back_behind_waits_until_it_has_caught_up(valve: WatermarkValve) -> None:
    valve.advance(0, 10)
    valve.set_idle(1, True)
    assert valve.set_idle(1, False) == (False, None)
    assert valve.advance(1, 5) is None
    assert valve.advance(0, 20) == 20, "it does not hold back the other meanwhile"
    assert valve.advance(1, 20) is None
    assert valve.advance(0, 30) is None, "it counts again"
    assert valve.advance(1, 25) == 25


def test_all_idle_is_told_once_with_the_furthest_watermark_first(valve: WatermarkValve) -> None:
    valve.advance(0, 5)
    valve.advance(1, 7)
    assert valve.set_idle(1, True) == (False, None)
    assert valve.set_idle(0, True) == (True, 7)
    assert valve.idle
    assert valve.set_idle(0, True) == (False, None)
    assert valve.advance(0, 100) is None
    assert valve.set_idle(0, False) == (True, None)
    assert not valve.idle
    assert valve.advance(0, 100) == 100
