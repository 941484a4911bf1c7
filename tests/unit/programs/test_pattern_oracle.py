"""The oracle of patterns and bundles against results worked out by hand, and against the automaton."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from firesteel.cep.nfa.compiler import compile_pattern
from firesteel.cep.nfa.nfa import NFA
from firesteel.testing.programs.keys import KeyOf
from firesteel.testing.programs.nodes import patterns
from firesteel.testing.programs.nodes.bundles import Bundle, LastResult
from firesteel.testing.programs.nodes.patterns import DrawnPattern
from firesteel.testing.programs.nodes.reductions import Add
from firesteel.testing.programs.oracle.flow import MAX_TIME, Flow, Mode
from firesteel.testing.programs.oracle.keyed import run_keyed
from firesteel.testing.programs.oracle.patterns import PatternOracle, Stage, TimedValue
from firesteel.testing.programs.oracle.processes import ProcessOracle
from firesteel.testing.programs.program import Misfit, Ref, Sketch

A, B, C = (0,), (1,), (2,)
"""Remainders of v by 3."""


def _matches(pattern: DrawnPattern, *events: tuple[int, int], end: int = MAX_TIME) -> tuple[list[str], list[str]]:
    """Texts such as ``0 1.2 @5``: the numbers of the events by stage, and the time."""
    timed = [TimedValue(time, v) for time, v in events]
    oracle = PatternOracle(pattern.stages, pattern.within, pattern.skip, pattern.skip_to, timed, end)
    return tuple(sorted(_text(taken, time) for taken, time in found) for found in oracle.run())  # type: ignore[return-value]


def _text(taken: tuple[tuple[int, int], ...], time: int) -> str:
    stages = sorted({stage for stage, _ in taken})
    return " ".join(".".join(str(event) for at, event in taken if at == stage) for stage in stages) + f" @{time}"


def _stage(contiguity: str, remainders: tuple[int, ...], **options: object) -> Stage:
    return Stage(contiguity, 3, remainders, **options)  # type: ignore[arg-type]


def test_contiguity() -> None:
    events = [(1, 0), (2, 2), (3, 1), (4, 4)]  # a c b b
    for contiguity, expected in {
        "next": [],
        "followed_by": ["0 2 @3"],
        "followed_by_any": ["0 2 @3", "0 3 @4"],
    }.items():
        assert _matches(DrawnPattern((_stage("next", A), _stage(contiguity, B))), *events)[0] == expected


def test_loops_and_optional_stages() -> None:
    events = [(1, 0), (2, 3), (3, 1)]  # a a b
    loop = DrawnPattern((_stage("next", A, most=None), _stage("followed_by", B)))
    assert _matches(loop, *events)[0] == ["0 2 @3", "0.1 2 @3", "1 2 @3"]
    optional = DrawnPattern((_stage("next", A), _stage("followed_by", B, optional=True)))
    assert _matches(optional, *events)[0] == ["0 2 @3", "0 @1", "1 2 @3", "1 @2"]


def test_time_and_absence() -> None:
    follows = DrawnPattern((_stage("next", A), _stage("followed_by", B)), within=10)
    assert _matches(follows, (1, 0), (10, 1), (20, 3), (30, 4)) == (["0 1 @10"], ["2 @30"])
    absent = DrawnPattern((_stage("next", A), _stage("not_followed_by", B)), within=10)
    assert _matches(absent, (1, 0), (10, 1), (20, 3), (30, 4)) == (["2 @30"], [])
    assert _matches(absent, (1, 0), end=10) == ([], [])


def test_skipping() -> None:
    stages = (_stage("next", A, least=2, most=2), _stage("followed_by", B))
    events = [(1, 0), (2, 3), (3, 6), (4, 1)]
    assert _matches(DrawnPattern(stages), *events)[0] == ["0.1 3 @4", "1.2 3 @4"]
    assert _matches(DrawnPattern(stages, skip="skip_past_last_event"), *events)[0] == ["0.1 3 @4"]


@pytest.mark.parametrize("part", range(2))
def test_the_automaton_agrees(part: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(part * 200, part * 200 + 200):
        rng = random.Random(seed)
        pattern = DrawnPattern(patterns._draw_stages(Sketch(rng)), within=rng.choice((None, 6, 24)))
        if pattern.has_one_match and rng.random() < 0.7:
            places = [number for number, stage in enumerate(pattern.stages) if not stage.is_negative]
            skip = rng.choice(("skip_to_next", "skip_past_last_event", "skip_to_first", "skip_to_last"))
            pattern = replace(pattern, skip=skip, skip_to=rng.choice(places))
        try:
            pattern.check()
        except Misfit:
            continue
        times = sorted(rng.randrange(40) for _ in range(10))
        events = [(time, rng.randrange(50)) for time in times]
        end = rng.choice((times[-1], 1_000))
        matches, timed_out = _matches(pattern, *events, end=end)
        ours = _run_automaton(pattern, events, end)
        assert sorted(text.partition(" @")[0] for text in matches) == ours[0], (seed, pattern, events)
        if pattern.is_linear and pattern.within is not None and pattern.skip == "no_skip":
            assert timed_out == ours[1], (seed, pattern, events)
            found["timed out"] += len(timed_out)
        found[pattern.skip] += len(matches)
    assert min(found.values()) > 0
    assert len(found) == 6


def _run_automaton(pattern: DrawnPattern, events: list[tuple[int, int]], end: int) -> tuple[list[str], list[str]]:
    nfa = NFA(compile_pattern(pattern.pattern()), handles_timeouts=True)
    state = nfa.initial_state()
    matches, timed_out = [], []
    for number, (time, v) in enumerate([*events, (end, 0)]):
        ended, passed = nfa.advance_time(state, time)
        matches += ended
        timed_out += passed
        if number < len(events):
            matches += nfa.process(state, (number, v, time), time)
    return sorted(map(_numbers, matches)), sorted(f"{_numbers(match)} @{time}" for match, time in timed_out)


def _numbers(match: dict[str, list[Any]]) -> str:
    return " ".join(".".join(str(event[0]) for event in taken) for taken in match.values())


def test_bundles_give_one_result_per_key_at_the_end() -> None:
    flow = Flow()
    for k, v, t in [(0, 1, 4), (1, 8, 8), (0, 2, 12)]:
        flow.emit((k, v, t), t)
    flow.mark(MAX_TIME)
    bundle = Bundle(
        id=1,
        inputs=(Ref(0),),
        key=KeyOf("int"),
        how="pre_aggregate",
        function=Add("numbers"),
        last=LastResult("numbers", dated=True),
    )
    for mode in (Mode.STREAM, Mode.BATCH):
        assert [record.value for record in bundle.interpret([flow], mode)[""].records()] == [(0, 3, 12), (1, 8, 8)]
    flow.watermark, flow.items[-1:] = 0, []
    assert list(bundle.interpret([flow], Mode.STAY)[""].records()) == []


def test_a_result_that_goes_back_is_marked() -> None:
    flow = Flow()
    flow.emit((0, 5, 8), 8)
    flow.emit((0, 3, 4), 4)
    flow.mark(MAX_TIME)

    outputs = run_keyed(lambda: ProcessOracle(LastResult("numbers")), [flow], [KeyOf("int").get_key], Mode.STREAM)
    assert [record.value for record in outputs[""].records()] == [(0, -(10**9), 4), (0, 3, 4)]
