"""The automaton alone: state, event and time in; matches out."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from firesteel.cep import AfterMatchSkipStrategy, IterativeCondition, Pattern, SimpleCondition
from firesteel.cep.nfa.compiler import compile_pattern
from firesteel.cep.nfa.nfa import NFA, PartialMatchLimitError
from firesteel.common.errors import StateIncompatibleError


def feed(pattern: Pattern, events: str) -> list[str]:
    """The matches of a text of events, one per millisecond, each as the texts of its stages."""
    nfa = NFA(compile_pattern(pattern))
    state = nfa.initial_state()
    found = []
    for time, event in enumerate(events, 1):
        nfa.advance_time(state, time)
        found += nfa.process(state, event, time)
    return [" ".join("".join(stage) for stage in match.values()) for match in found]


def stage(name: str) -> Any:
    return SimpleCondition.of(lambda event: event == name)


def test_kinds_of_contiguity() -> None:
    a = Pattern.begin("a").where(stage("a"))
    assert feed(a.next("b").where(stage("b")), "acbab") == ["a b"]
    assert feed(a.followed_by("b").where(stage("b")), "acbb") == ["a b"]
    assert feed(a.followed_by_any("b").where(stage("b")), "acbb") == ["a b", "a b"]


def test_a_loop_and_what_ends_it() -> None:
    loop = Pattern.begin("d").where(str.isdigit).one_or_more().until(stage("."))
    assert feed(loop, "12.3") == ["1", "12", "2", "3"]


def test_conditions_see_the_events_of_the_partial_match() -> None:
    class Rising(IterativeCondition):
        def filter(self, value: Any, ctx: Any) -> bool:
            return all(value > each for each in ctx.get_events_for_pattern("up"))

    strategy = AfterMatchSkipStrategy.skip_past_last_event()
    up = Pattern.begin("up", strategy).where(Rising()).times_or_more(2).consecutive().greedy().next("down")
    assert feed(up, "12331") == ["123 3"]


def test_the_or_of_conditions() -> None:
    assert feed(Pattern.begin("x").where(stage("a")).or_(stage("b")), "abc") == ["a", "b"]


def test_subtypes() -> None:
    nfa = NFA(compile_pattern(Pattern.begin("x").subtype(int).where(lambda value: value > 1)))
    state = nfa.initial_state()
    assert [nfa.process(state, event, 1) for event in ("a", 1, 2)] == [(), (), [{"x": [2]}]]


def test_a_state_is_pickled_with_long_chains_of_events_that_are_shared() -> None:
    nfa = NFA(compile_pattern(Pattern.begin("d").where(str.isdigit).one_or_more().consecutive().next("end")))
    state = nfa.initial_state()
    for number in range(3000):
        nfa.process(state, str(number), number)
        if number > 3:
            state.partial = [each for each in state.partial if each[0] in (0, 1) or each.last is None]
    copied = pickle.loads(pickle.dumps(state))
    assert len(pickle.dumps(state)) < 200_000
    matches = nfa.process(state, "x", 3001)
    assert [len(match["d"]) for match in matches] == [3000, 2999]
    assert nfa.process(copied, "x", 3001) == matches


def test_time_prunes_partial_matches() -> None:
    nfa = NFA(compile_pattern(Pattern.begin("a").followed_by_any("b").where(stage("b")).within(10)))
    state = nfa.initial_state()
    for time in range(1, 2000):
        nfa.advance_time(state, time)
        nfa.process(state, "x", time)
        assert len(state.partial) <= 11
    nfa.advance_time(state, 3000)
    assert nfa.is_initial(state)


def test_there_is_a_limit_of_partial_matches() -> None:
    nfa = NFA(compile_pattern(Pattern.begin("a").followed_by("b").where(stage("b"))), max_partial_matches=5)
    state = nfa.initial_state()
    for time in range(4):
        nfa.process(state, "x", time)
    with pytest.raises(PartialMatchLimitError, match="There are 6 partial matches of the pattern a "):
        nfa.process(state, "x", 4)


def test_a_state_of_another_pattern_is_refused() -> None:
    nfa = NFA(compile_pattern(Pattern.begin("a").followed_by("b").where(stage("b"))))
    state = nfa.initial_state()
    nfa.process(state, "x", 1)
    other = NFA(compile_pattern(Pattern.begin("a").followed_by("c").where(stage("b"))))
    with pytest.raises(StateIncompatibleError, match="'b'"):
        other.process(state, "x", 2)


def test_a_key_error_of_a_condition_is_its_own() -> None:
    nfa = NFA(compile_pattern(Pattern.begin("a").where(lambda event: event["missing"])))
    with pytest.raises(KeyError, match="missing"):
        nfa.process(nfa.initial_state(), {}, 1)


def test_skipping_to_a_stage_that_is_absent() -> None:
    strategy = AfterMatchSkipStrategy.skip_to_first("b").throw_exception_on_miss()
    pattern = Pattern.begin("a", strategy).where(stage("a")).next("b").where(stage("b")).optional().next("c")
    with pytest.raises(Exception, match="Cannot skip to 'b': the match has events of a, c only"):
        feed(pattern.where(stage("c")), "ac")
    strategy = AfterMatchSkipStrategy.skip_to_last("a").throw_exception_on_miss()
    with pytest.raises(Exception, match="begins with that event"):
        feed(Pattern.begin("a", strategy).next("b"), "ab")
