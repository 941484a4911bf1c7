"""How watermarks and idleness of many channels combine: rules, then random scripts against a plain model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.time.watermarks import ConnectedInputs, create_valve

Script = tuple[int, list[tuple[str, int, int]]]


class Recorded:
    """A valve, and what came out of it since it was last asked: watermarks, "idle" and "active"."""

    def __init__(self, inputs: int, input_of: Sequence[int] | None = None):
        self.out: list[Any] = []
        self.valve = create_valve(
            input_of or [0] * inputs, self.out.append, lambda idle: self.out.append("idle" if idle else "active")
        )

    def watermark(self, index: int, timestamp: int) -> list[Any]:
        self.valve.advance(index, timestamp)
        return self.take()

    def idle(self, index: int) -> list[Any]:
        self.valve.set_idle(index, True)
        return self.take()

    def active(self, index: int) -> list[Any]:
        self.valve.set_idle(index, False)
        return self.take()

    def finish(self, index: int) -> list[Any]:
        self.valve.finish(index)
        return self.take()

    def take(self) -> list[Any]:
        out = list(self.out)
        self.out.clear()
        return out

    def do(self, what: str, index: int, timestamp: int) -> list[Any]:
        return self.watermark(index, timestamp) if what == "watermark" else getattr(self, what)(index)


class Model:
    """Flink's StatusWatermarkValve, and finished inputs, written down rule by rule with no regard to speed."""

    def __init__(self, inputs: int):
        self.inputs = [{"watermark": MIN_TIMESTAMP, "status": "active", "aligned": True} for _ in range(inputs)]
        self.last = MIN_TIMESTAMP
        self.status = "active"

    def do(self, what: str, index: int, timestamp: int) -> list[Any]:
        before, last = self.status, self.last
        channel = self.inputs[index]
        if what == "watermark":
            if channel["status"] == "active" and timestamp > channel["watermark"]:  # type: ignore[operator]
                channel["watermark"] = timestamp
        elif channel["status"] != "finished":
            channel["status"] = what if what != "finish" else "finished"
            if what != "active":
                channel["aligned"] = False
        if channel["status"] == "active" and channel["watermark"] >= last:  # type: ignore[operator]
            channel["aligned"] = True
        statuses = {c["status"] for c in self.inputs}
        aligned = [c["watermark"] for c in self.inputs if c["aligned"]]
        if "active" in statuses:
            self.status, self.last = "active", max(last, min(aligned, default=last))  # type: ignore[call-overload, type-var]
        elif "idle" in statuses:
            if before == "active":
                self.last = max([last, *(c["watermark"] for c in self.inputs if c["status"] == "idle")])  # type: ignore[assignment, type-var]
            self.status = "idle"
        else:
            self.status, self.last = "active", MAX_WATERMARK
        changed = [self.status] if self.status != before else []
        advanced = [self.last] if self.last != last else []
        return advanced + changed if self.status == "idle" else changed + advanced


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    inputs = draw(st.integers(1, 4))
    what = st.sampled_from(["watermark", "watermark", "watermark", "idle", "active", "finish"])
    step = st.tuples(what, st.integers(0, inputs - 1), st.integers(0, 12))
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
"""Input 0 comes back ahead of the output, alone with input 1, which is behind."""


@settings(max_examples=300)
@given(scripts())
@example((3, BACK_AHEAD_OF_THE_OUTPUT))
def test_the_valve_does_what_the_model_does(script: Script) -> None:
    inputs, steps = script
    valve, model = Recorded(inputs), Model(inputs)
    for what, index, timestamp in steps:
        assert valve.do(what, index, timestamp) == model.do(what, index, timestamp)
        assert (valve.valve.watermark, valve.valve.idle) == (model.last, model.status == "idle")


class Downstream:
    """Gets no watermark while the input is idle, none that goes back, and only changes of the status."""

    def __init__(self) -> None:
        self.is_idle = False
        self._last = MIN_TIMESTAMP

    def take(self, outputs: list[Any]) -> None:
        for out in outputs:
            if isinstance(out, str):
                assert self.is_idle == (out == "active")
                self.is_idle = out == "idle"
            else:
                assert not self.is_idle
                assert out > self._last
                self._last = out


@given(scripts())
def test_downstream_never_gets_a_watermark_while_idle_and_never_one_that_goes_back(script: Script) -> None:
    inputs, steps = script
    valve, downstream = Recorded(inputs), Downstream()
    for step in steps:
        downstream.take(valve.do(*step))


@given(scripts())
def test_the_end_of_event_time_comes_when_all_have_finished(script: Script) -> None:
    inputs, steps = script
    valve, finished = Recorded(inputs), set()
    for step in steps:
        valve.do(*step)
        finished |= {step[1]} if step[0] == "finish" else set()
        assert (valve.valve.watermark == MAX_WATERMARK) == (len(finished) == inputs)


@given(scripts())
def test_the_output_is_the_minimum_while_all_are_active(script: Script) -> None:
    inputs, steps = script
    valve = Recorded(inputs)
    highest = [MIN_TIMESTAMP] * inputs
    for what, index, timestamp in steps:
        if what == "watermark":
            valve.watermark(index, timestamp)
            highest[index] = max(highest[index], timestamp)
            assert valve.valve.watermark == min(highest)


@pytest.fixture
def valve() -> Recorded:
    return Recorded(2)


def test_the_slowest_input_decides(valve: Recorded) -> None:
    assert valve.watermark(0, 10) == []
    assert valve.watermark(1, 5) == [5]
    assert valve.watermark(1, 20) == [10]
    assert valve.watermark(0, 8) == [], "a watermark that goes back is ignored"


def test_an_idle_input_does_not_hold_back(valve: Recorded) -> None:
    valve.watermark(0, 10)
    assert valve.idle(1) == [10]
    assert valve.watermark(1, 3) == [], "an idle input has no say"
    assert valve.watermark(0, 12) == [12]


def test_an_input_that_comes_back_behind_waits_until_it_has_caught_up(valve: Recorded) -> None:
    valve.watermark(0, 10)
    valve.idle(1)
    assert valve.active(1) == []
    assert valve.watermark(1, 5) == []
    assert valve.watermark(0, 20) == [20], "it does not hold back the other meanwhile"
    assert valve.watermark(1, 20) == []
    assert valve.watermark(0, 30) == [], "it counts again"
    assert valve.watermark(1, 25) == [25]


def test_an_input_that_comes_back_ahead_while_the_other_is_idle_moves_event_time(valve: Recorded) -> None:
    valve.watermark(0, 10)
    valve.watermark(1, 5)
    valve.idle(0)
    assert valve.idle(1) == [10, "idle"]
    assert valve.active(1) == ["active"]
    assert valve.watermark(1, 7) == []
    assert valve.active(0) == []
    assert valve.watermark(0, 11) == [11], "the other one is behind and does not count"


def test_all_idle_is_sent_once_with_the_furthest_watermark_first(valve: Recorded) -> None:
    valve.watermark(0, 5)
    valve.watermark(1, 7)
    assert valve.idle(1) == []
    assert valve.idle(0) == [7, "idle"]
    assert valve.idle(0) == []
    assert valve.watermark(0, 100) == []
    assert valve.active(0) == ["active"]
    assert valve.watermark(0, 100) == [100]


@pytest.mark.parametrize("ends", ["with its end", "with the end of event time"])
def test_event_time_does_not_end_while_an_input_that_has_not_finished_is_idle(valve: Recorded, ends: str) -> None:
    valve.watermark(1, 500)
    assert (valve.finish(0) if ends == "with its end" else valve.watermark(0, MAX_WATERMARK)) == [500]
    assert valve.idle(1) == ["idle"]
    assert valve.active(1) == ["active"]
    assert valve.watermark(1, 600) == [600]
    assert valve.finish(1) == [MAX_WATERMARK]


def test_the_end_of_an_idle_input_ends_event_time(valve: Recorded) -> None:
    valve.finish(0)
    valve.idle(1)
    assert valve.finish(1) == ["active", MAX_WATERMARK], "what is read from an idle input downstream is ignored"


def test_the_last_active_input_ends_while_the_other_is_idle(valve: Recorded) -> None:
    valve.watermark(1, 500)
    valve.idle(1)
    assert valve.watermark(0, 300) == [300]
    assert valve.finish(0) == [500, "idle"]


def test_nothing_of_a_finished_input_counts(valve: Recorded) -> None:
    valve.finish(0)
    assert valve.watermark(0, 900) == valve.idle(0) == valve.active(0) == valve.finish(0) == []
    assert valve.watermark(1, 5) == [5]


# -- connected inputs --------------------------------------------------------------------------------


class ConnectedModel:
    """Flink's IndexedCombinedWatermarkStatus behind a valve per input, without the inputs that have finished."""

    def __init__(self, input_of: Sequence[int]):
        self.valves = {index: Model(input_of.count(index)) for index in set(input_of)}
        self.channels = [(self.valves[index], input_of[:at].count(index)) for at, index in enumerate(input_of)]
        self.last = MIN_TIMESTAMP

    def do(self, what: str, index: int, timestamp: int) -> None:
        valve, channel = self.channels[index]
        others = [each for each in self.valves.values() if each is not valve]
        for out in valve.do(what, channel, timestamp):
            times = [each.last for each in others if each.last < MAX_WATERMARK and each.status == "active"]
            if valve.last == MAX_WATERMARK:
                # what is left may have come further than the one that has finished
                times = times or [each.last for each in others if each.last < MAX_WATERMARK]
                self.last = max(self.last, min(times, default=MAX_WATERMARK))
            elif out != "idle":
                self.last = max(self.last, min([*times, out if isinstance(out, int) else valve.last]))
            elif times:
                self.last = max(self.last, min(times))

    @property
    def is_idle(self) -> bool:
        unfinished = [valve for valve in self.valves.values() if valve.last < MAX_WATERMARK]
        return bool(unfinished) and all(valve.status == "idle" for valve in unfinished)


@st.composite
def connected_scripts(draw: st.DrawFn) -> tuple[list[int], list[tuple[str, int, int]]]:
    input_of = [*draw(st.permutations([0, 1])), *draw(st.lists(st.integers(0, 1), max_size=3))]
    what = st.sampled_from(["watermark", "watermark", "watermark", "idle", "active", "finish"])
    step = st.tuples(what, st.integers(0, len(input_of) - 1), st.integers(0, 12))
    return input_of, draw(st.lists(step, max_size=40))


ENDS_WHILE_ALL_ARE_IDLE = [("watermark", 0, 4), ("watermark", 1, 9), ("idle", 1, 0), ("idle", 0, 0), ("finish", 0, 0)]


@settings(max_examples=300)
@given(connected_scripts())
@example(([0, 1], ENDS_WHILE_ALL_ARE_IDLE))
def test_connected_inputs_do_what_the_model_does(script: tuple[list[int], list[tuple[str, int, int]]]) -> None:
    input_of, steps = script
    valve, model, downstream, finished = Recorded(0, input_of), ConnectedModel(input_of), Downstream(), set()
    for step in steps:
        model.do(*step)
        downstream.take(valve.do(*step))
        assert (valve.valve.watermark, downstream.is_idle) == (model.last, model.is_idle)
        finished |= {step[1]} if step[0] == "finish" else set()
        assert (valve.valve.watermark == MAX_WATERMARK) == (len(finished) == len(input_of))


def test_an_input_that_is_back_holds_back_the_other_however_far_behind_it_is() -> None:
    valve = Recorded(0, [0, 1])
    assert isinstance(valve.valve, ConnectedInputs)
    assert valve.watermark(0, 40) + valve.watermark(1, 100) == [40]
    assert valve.idle(0) == [100]
    assert valve.active(0) == []
    assert valve.watermark(1, 300) == []
    assert valve.watermark(0, 150) == [150]


def test_event_time_stays_where_it_is_when_all_inputs_are_idle() -> None:
    valve = Recorded(0, [0, 1])
    assert valve.watermark(0, 40) + valve.watermark(1, 100) == [40]
    assert valve.idle(1) + valve.idle(0) == ["idle"]
    assert valve.active(0) + valve.watermark(0, 50) == ["active", 50]
