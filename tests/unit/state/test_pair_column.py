"""A column of pairs has the numbers that a dictionary per slot would have."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest

from firesteel.runtime.state.columnar.pairs import PairColumn, Pairs

VALUES: dict[bool, list[Any]] = {
    False: [0, -1, 1, 1 << 62, -(1 << 63), *range(100, 160)],
    True: [None, "", "a", b"a", 1, (1, "x"), (None, 2), *(f"value {index}" for index in range(50))],
}


def drawn_pairs(draw: random.Random, values: list[Any]) -> list[tuple[int, Any]]:
    pairs = [(slot, value) for slot in range(12) for value in values]
    return draw.sample(pairs, draw.randrange(80))


def arrays(pairs: list[tuple[int, Any]], has_objects: bool) -> tuple[Any, Any]:
    slots = np.array([slot for slot, _ in pairs], np.intp)
    return slots, np.fromiter([value for _, value in pairs], object if has_objects else np.int64, len(pairs))


def entry(numbers: list[int]) -> Any:
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


@pytest.mark.parametrize("has_objects", [False, True])
@pytest.mark.parametrize("width", [1, 3])
def test_numbers_are_those_of_a_dictionary(has_objects: bool, width: int) -> None:
    draw = random.Random(width)
    column = PairColumn(Pairs(width, has_objects))
    model: dict[tuple[int, Any], list[int]] = {}
    every = np.arange(12)
    for _ in range(120):
        pairs = drawn_pairs(draw, VALUES[has_objects])
        found = column.read(*arrays(pairs, has_objects)).tolist()
        assert found == [model.get(pair, [0] * width) for pair in pairs]
        after = [[draw.choice([0, 0, 1, 7, -2]) for _ in range(width)] for _ in pairs]
        column.write(np.array(after, np.int64).reshape(-1, width))
        for pair, numbers in zip(pairs, after, strict=True):
            model.pop(pair, None)
            if any(numbers):
                model[pair] = numbers
        if draw.random() < 0.2:
            cleared = draw.sample(range(20), 3)
            column.clear(np.array(cleared))
            model = {pair: numbers for pair, numbers in model.items() if pair[0] not in cleared}
        if draw.random() < 0.2:
            maps = pickle.loads(pickle.dumps(column.packed_at(every)))
            column = PairColumn(Pairs(width, has_objects))
            column.load(every, maps)
        assert len(column) == len(model)
    expected: list[dict[Any, Any]] = [{} for _ in every]
    for (slot, value), numbers in model.items():
        expected[slot][value] = entry(numbers)
    assert column.maps_at(every) == expected
    assert column.maps_at(every[::-1]) == expected[::-1]


def test_values_come_back_in_their_order_slot_by_slot() -> None:
    column = PairColumn(Pairs(1, has_objects=True))
    column.read(np.array([2, 1, 2, 2]), np.array(["c", "x", "a", "b"], object))
    column.write(np.array([[1], [2], [3], [4]]))
    sizes, values, numbers = column.of(np.array([1, 5, 2]))
    assert (sizes.tolist(), values.tolist(), numbers.tolist()) == (
        [1, 0, 3],
        ["x", "c", "a", "b"],
        [[2], [1], [3], [4]],
    )


def test_no_pairs() -> None:
    column = PairColumn(Pairs(2, has_objects=False))
    nothing = np.array([], np.int64)
    assert column.read(nothing, nothing).shape == (0, 2)
    column.write(np.zeros((0, 2), np.int64))
    column.clear(np.array([3]))
    assert column.maps_at(np.array([0, 3])) == [{}, {}]
