"""Patterns that are refused when they are built, with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.cep import AfterMatchSkipStrategy, MalformedPatternException, Pattern, WithinType
from firesteel.cep.nfa.compiler import compile_pattern
from firesteel.common.time import Time


def begin(*skip: Any) -> Pattern:
    return Pattern.begin("a", *skip)


MALFORMED: list[tuple[str, Callable[[], Any]]] = [
    ("until condition but no loop", lambda: begin().until(bool)),
    ("until condition but no loop", lambda: begin().times(3).until(bool)),
    ("until condition already", lambda: begin().one_or_more().until(bool).until(bool)),
    ("never match", lambda: begin().not_followed_by("b")),
    ("Two stages have the name 'a'", lambda: begin().next("b").next("a")),
    ("Two stages have the name 'a'", lambda: begin().next(Pattern.begin("c").next("a"))),
    ("before it is greedy", lambda: begin().one_or_more().greedy().next("b").optional()),
    ("optional already", lambda: begin().optional().optional()),
    ("cannot be optional", lambda: begin().not_next("b").optional()),
    ("before it is optional", lambda: begin().optional().not_next("b")),
    ("before it is optional", lambda: begin().times(0, 2).not_followed_by("b")),
    ("has a quantifier already", lambda: begin().times(2).one_or_more()),
    ("must not occur", lambda: begin().not_next("b").times(2)),
    ("must not occur", lambda: begin().not_next("b").greedy()),
    ("greedy needs", lambda: begin().greedy()),
    ("cannot be greedy", lambda: begin().one_or_more().allow_combinations().greedy()),
    ("A group cannot be greedy", lambda: Pattern.begin(begin()).one_or_more().greedy()),
    ("A group has no condition", lambda: Pattern.begin(begin()).where(bool)),
    ("A group has no condition", lambda: Pattern.begin(begin()).or_(bool)),
    ("A group has no condition", lambda: Pattern.begin(begin()).subtype(str)),
    ("consecutive needs", lambda: begin().consecutive()),
    ("consecutive already", lambda: begin().times(2).consecutive().consecutive()),
    ("either consecutive or", lambda: begin().times(2).consecutive().allow_combinations()),
    ("either consecutive or", lambda: begin().times(2).allow_combinations().consecutive()),
    ("allow_combinations needs", lambda: begin().allow_combinations()),
    ("at least once", lambda: begin().times(0)),
    ("at most 2 times and at least 3", lambda: begin().times(3, 2)),
    ("skips to 'x'", lambda: begin(AfterMatchSkipStrategy.skip_to_first("x")).next("b")),
    ("longer than that of the whole", lambda: begin().next("b").within(9, WithinType.PREVIOUS_AND_CURRENT).within(5)),
    ("repeated for ever", lambda: Pattern.begin(begin().optional()).one_or_more()),
]


@pytest.mark.parametrize(("reason", "build"), MALFORMED)
def test_malformed_patterns_are_refused(reason: str, build: Callable[[], Any]) -> None:
    with pytest.raises(MalformedPatternException, match=reason):
        compile_pattern(build())


@pytest.mark.parametrize(
    "build",
    [
        lambda: Pattern.begin(3),  # type: ignore[arg-type]
        lambda: Pattern.begin("a", "no_skip"),  # type: ignore[arg-type]
        lambda: begin().where("x > 3"),
        lambda: begin().where(lambda _a, _b, _c: True),
        lambda: begin().subtype("str"),  # type: ignore[arg-type]
        lambda: begin().within("5 min"),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_other_types_are_refused(build: Callable[[], Any]) -> None:
    with pytest.raises(TypeError):
        build()


def test_the_shortest_time_counts() -> None:
    pattern = begin().within(Time.seconds(3)).next("b").within(Time.seconds(7))
    assert compile_pattern(pattern).window_time == 3000


def test_a_pattern_shows_its_stages() -> None:
    pattern = begin().followed_by("b").one_or_more().optional()
    assert repr(pattern) == "a (single, strict) -> b (looping optional, skip till next)"
