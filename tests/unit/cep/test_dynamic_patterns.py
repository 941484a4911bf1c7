"""Patterns that records of a broadcast stream replace."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.cep import CEP, MalformedPatternException, Pattern
from firesteel.cep.dynamic_operator import DynamicCepSpec
from firesteel.cep.functions import select_adapter
from firesteel.cep.operator import PARTIAL_MATCHES
from firesteel.common import WatermarkStrategy
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream import RuntimeExecutionMode
from firesteel.testing import BroadcastHarness, FakeClock
from firesteel.testing import test_environment as in_process

BACKENDS = ("hashmap", "rocksdb")


def to_pattern(rule: str) -> Any:
    """``ab`` is an a followed by a b."""
    if rule == "nothing":
        return None
    first = Pattern.begin(rule[0]).where(lambda record: record[1] == rule[0])
    return (
        first.not_followed_by("!")
        if rule[1] == "!"
        else first.followed_by(rule[1]).where(lambda record: record[1] == rule[1])
    )


def text_of(match: dict[str, list[Any]]) -> str:
    return "".join(f"{stage}{event[2]}" for stage, events in match.items() for event in events)


def harness(backend: str, *, is_event_time: bool = True, **options: Any) -> BroadcastHarness:
    spec = DynamicCepSpec(None, select_adapter(text_of), is_event_time=is_event_time, to_pattern=to_pattern)
    return BroadcastHarness(spec, (lambda record: record[0], None), backend=backend, clock=FakeClock(1), **options)


def advance(bench: BroadcastHarness, watermark: int) -> list[str]:
    bench.process_watermark1(watermark)
    bench.process_watermark2(watermark)
    return bench.take_output()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_rule_replaces_the_pattern_and_drops_partial_matches(backend: str) -> None:
    with harness(backend) as bench:
        bench.process_element(("k", "a", 1), 1)
        assert advance(bench, 1) == []  # no rule yet
        bench.process_broadcast_element("ab")
        bench.process_element(("k", "a", 2), 2)
        bench.process_element(("l", "a", 3), 3)
        bench.process_element(("k", "b", 4), 4)
        assert advance(bench, 4) == ["a2b4"]
        assert bench.keys(PARTIAL_MATCHES) == ["l"]
        bench.process_element(("l", "b", 6), 6)
        bench.process_element(("l", "c", 7), 7)
        bench.process_broadcast_element("bc")
        assert bench.keys(PARTIAL_MATCHES) == []
        assert advance(bench, 10) == ["b6c7"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_rule_is_restored(backend: str) -> None:
    with harness(backend) as bench:
        bench.process_broadcast_element("ab")
        bench.process_element(("k", "a", 1), 1)
        assert advance(bench, 1) == []
        snapshot = bench.snapshot()
    with harness(BACKENDS[1 - BACKENDS.index(backend)]).initialize_state(snapshot) as restored:
        restored.process_element(("k", "b", 2), 2)
        assert advance(restored, 2) == ["a1b2"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_rule_that_came_after_the_checkpoint_comes_again(backend: str) -> None:
    """The rule of the checkpoint is in force again, with its partial matches, until the next one is read again."""

    def goes_on(bench: BroadcastHarness) -> list[str]:
        bench.process_element(("k", "b", 2), 2)
        bench.process_element(("l", "c", 3), 3)
        matches = advance(bench, 3)
        bench.process_element(("l", "b", 4), 4)  # waits for the next rule
        bench.process_broadcast_element("bc")
        bench.process_element(("k", "c", 5), 5)
        bench.process_element(("l", "c", 6), 6)
        return matches + advance(bench, 6)

    with harness(backend) as bench:
        bench.process_broadcast_element("ab")
        bench.process_element(("k", "a", 1), 1)
        bench.process_element(("l", "a", 1), 1)
        assert advance(bench, 1) == []
        snapshot = bench.snapshot()
        assert goes_on(bench) == ["a1b2", "b4c6"]
        assert bench.keys(PARTIAL_MATCHES) == []
        # fails here
    with harness(backend).initialize_state(snapshot) as restored:
        assert sorted(restored.keys(PARTIAL_MATCHES)) == ["k", "l"]
        assert goes_on(restored) == ["a1b2", "b4c6"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_rule_is_in_every_subtask_after_a_rescale(backend: str) -> None:
    keys = [f"key {number}" for number in range(20)]
    with harness(backend) as bench:
        bench.process_broadcast_element("ab")
        for key in keys:
            bench.process_element((key, "a", 1), 1)
        assert advance(bench, 1) == []
        for key in keys:
            bench.process_element((key, "b", 2), 2)  # waits
        snapshot = bench.snapshot()
    matches = []
    for subtask in range(2):
        options = {"parallelism": 2, "subtask": subtask}
        with harness(BACKENDS[1 - BACKENDS.index(backend)], **options).initialize_state(snapshot) as restored:
            matches.append(len(advance(restored, 2)))
            restored.process_broadcast_element("bc")
            assert restored.keys(PARTIAL_MATCHES) == []
    assert sum(matches) == len(keys)
    assert all(matches)


def test_processing_time() -> None:
    with harness("hashmap", is_event_time=False) as bench:
        bench.process_broadcast_element("ab")
        bench.process_element(("k", "a", 1))
        bench.process_element(("k", "b", 2))
        assert bench.take_output() == ["a1b2"]


def test_rules_that_are_refused() -> None:
    with harness("hashmap") as bench:
        with pytest.raises(MalformedPatternException, match="never match"):
            bench.process_broadcast_element("a!")
        with pytest.raises(InvalidProgramError, match="returned None for the rule 'nothing'"):
            bench.process_broadcast_element("nothing")


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_a_job(mode: RuntimeExecutionMode) -> None:
    env = in_process()
    env.set_runtime_mode(mode)
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record: record[2])
    records = [("k", "a", 1), ("l", "a", 2), ("k", "b", 3), ("l", "b", 4)]
    # nothing is processed before the end, when the rule is there
    events = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
    rules = env.from_collection(["ab"]).assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks())
    keyed = CEP.dynamic_patterns(events.key_by(lambda record: record[0]), rules, to_pattern).select(text_of)
    whole = CEP.dynamic_patterns(events, rules, to_pattern).select(lambda match: "all " + text_of(match))
    assert sorted(keyed.union(whole).execute_and_collect()) == ["a1b3", "a2b4", "all a1b3", "all a2b3"]


def test_what_is_refused() -> None:
    stream = in_process().from_collection([1])
    with pytest.raises(TypeError, match="two DataStreams"):
        CEP.dynamic_patterns(stream, [], to_pattern)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="function from rules"):
        CEP.dynamic_patterns(stream, stream, "ab")  # type: ignore[arg-type]
