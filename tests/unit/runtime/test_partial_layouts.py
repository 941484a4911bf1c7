"""Partial results of a bundle that are held as lists of fields give what whole ones give."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.runtime.codegen.inlining import (
    find_inline_expressions,
    inline_expression_of_two,
    register_inline_expressions,
    tuple_fields,
)
from firesteel.runtime.operators.aggregation.function import Aggregation
from firesteel.runtime.operators.aggregation.layouts import FieldsLayout, WholeLayout, layout_of
from firesteel.runtime.operators.aggregation.local_aggregate import LocalAggregateSpec
from firesteel.testing import Emitted, OneInputHarness

FOREVER = 1 << 40
ZERO = 0

IN_FIELDS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: (a[0], a[1] + b[1]),
    lambda a, b: (a[0], min(a[1], b[1]), a[1] if b[1] < ZERO else b[1]),
    lambda a, b: (b[0], b[1], a[1] + b[1]),
    lambda a, b: (a[1], a[0]),
]
WHOLE: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a,
    lambda a, b: (a[0], len(a)),
    lambda a, b: (a[0], a[-1]),
    lambda a, b: (a[0], a[2]),
    lambda a, b: (a[0], a[True]),
    lambda a, b: (a[0], a[1]),
    lambda a, b: [a[0], a[1] + b[1]],
    lambda a, b: (a[0], a[b[1]]),
]
register_inline_expressions(find_inline_expressions([*IN_FIELDS, *WHOLE]))


def key_of(record: Any) -> Any:
    return record[0]


def called(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function that cannot be inlined."""

    class Called:
        def __call__(self, one: Any, other: Any) -> Any:
            return function(one, other)

    return Called()


def local(function: Any) -> OneInputHarness:
    return OneInputHarness(LocalAggregateSpec(function, None, 1000, FOREVER, key_of))


@pytest.mark.parametrize("number", [*range(len(IN_FIELDS))])
def test_a_function_that_makes_a_tuple_of_fields(number: int) -> None:
    assert isinstance(layout_of(Aggregation(IN_FIELDS[number])), FieldsLayout)


@pytest.mark.parametrize("number", [*range(len(WHOLE))])
def test_a_function_that_does_not(number: int) -> None:
    assert isinstance(layout_of(Aggregation(WHOLE[number])), WholeLayout)


def test_texts_of_the_fields() -> None:
    expression = inline_expression_of_two(IN_FIELDS[1])
    assert expression is not None
    assert tuple_fields(expression, "p", {"ZERO": "g['ZERO']"}, "v") == [
        None,
        "(min(p[1], v[1]))",
        "(p[1] if v[1] < g['ZERO'] else v[1])",
    ]


def records_of(kind: str, rng: random.Random) -> list[Any]:
    pairs = [(rng.choice("abc"), rng.randrange(-5, 100)) for _ in range(40)]
    if kind == "rows":
        return [Row(*pair) for pair in pairs]
    if kind == "longer":
        return [(*pair, number, "more") for number, pair in enumerate(pairs)]
    if kind == "mixed":
        return [rng.choice([pair, list(pair), Row(*pair), (*pair, "more")]) for pair in pairs]
    return pairs if kind == "tuples" else [([key], value) for key, value in pairs]


@pytest.mark.parametrize("kind", ["tuples", "rows", "longer", "mixed", "keys that cannot be hashed"])
@pytest.mark.parametrize("timestamps", [True, False])
@pytest.mark.parametrize("number", [*range(len(IN_FIELDS))])
def test_the_results_are_those_of_calls(number: int, timestamps: bool, kind: str) -> None:
    rng = random.Random(f"{number} {timestamps} {kind}")
    records = records_of(kind, rng)
    times = [rng.randrange(1000) for _ in records] if timestamps else None
    outputs: list[list[Emitted]] = []
    for function in (IN_FIELDS[number], called(IN_FIELDS[number])):
        with local(function) as harness:
            for position, record in enumerate(records):
                harness.process_element(record, None if times is None else times[position])
                if position % 17 == 16:
                    harness.process_watermark(position)
            harness.finish()
            outputs.append(harness.records)
    assert outputs[0]
    assert outputs[0] == outputs[1]
    assert [type(each.value[1]) for each in outputs[0]] == [type(each.value[1]) for each in outputs[1]]


def test_a_record_that_is_too_short() -> None:
    """Only fields that the function reads are needed."""
    with local(IN_FIELDS[2]) as harness:
        harness.process_elements([("a", 1), ("a", 2)])
        harness.finish()
        assert harness.output == [("a", ("a", 2, 3))]
    with pytest.raises(Exception, match="index out of range"), local(IN_FIELDS[0]) as harness:
        harness.process_elements([("a",), ("a", 1)])


def test_a_single_record_is_emitted_as_it_is() -> None:
    with local(IN_FIELDS[0]) as harness:
        harness.process_elements([["a", 1], ("b", 2, 3), Row("c", 4)])
        harness.finish()
        assert harness.output == [("a", ["a", 1]), ("b", ("b", 2, 3)), ("c", Row("c", 4))]
