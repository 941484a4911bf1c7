"""Values of the type BITMAP against sets of Python, and the counts of integers against counters."""

from __future__ import annotations

import operator
import random
from collections import Counter

import pytest

from firesteel.table.values.bitmap import (
    BitmapError,
    bitmap_array,
    bitmap_cardinality,
    bitmap_text,
    dump_bitmap,
    from_bytes,
    from_integers,
    load_bitmap,
    new_bitmap,
)
from firesteel.table.values.bitmap_counter import Layers, add, cancel, present, shared

OPERATIONS = (operator.and_, operator.or_, operator.xor, operator.sub)


def drawn(chance: random.Random) -> set[int]:
    """Integers without a sign, some of them in runs and in several containers."""
    start, span = chance.choice([0, 65_530, -5, 2**31 - 9]), chance.choice([3, 12, 100, 20_000])
    return {start + chance.randrange(span) & 0xFFFFFFFF for _ in range(chance.choice([0, 1, 3, 5, 50, 5000]))}


def test_equal_sets_are_equal_bytes() -> None:
    """Whatever operation they come of."""
    chance = random.Random(1)
    for _ in range(100):
        left, right = drawn(chance), drawn(chance)
        values = from_integers(left), from_integers(right)
        assert [number & 0xFFFFFFFF for number in bitmap_array(values[0])] == sorted(left)
        assert bitmap_cardinality(values[0]) == len(left)
        assert from_bytes(values[0]) == values[0]
        for combine in OPERATIONS:
            found = dump_bitmap(combine(load_bitmap(values[0]), load_bitmap(values[1])))
            assert found == from_integers(combine(left, right)), (combine, sorted(left), sorted(right))


def test_runs_that_could_be_arrays_become_arrays() -> None:
    as_runs = bytes.fromhex("3b300100030000020001000200010001000200010001000200")
    assert bitmap_array(as_runs) == [1, 2, 3, 65537, 65538, 65539]
    assert from_bytes(as_runs) == from_integers([1, 2, 3, 65537, 65538, 65539])


@pytest.mark.parametrize("data", [b"", b"\0", b"3A300000", bytes.fromhex("3a3000000100000000000200100000000300020001")])
def test_bytes_that_are_no_bitmap(data: bytes) -> None:
    with pytest.raises(BitmapError):
        from_bytes(data)


def test_a_long_text_ends_as_in_java() -> None:
    text = bitmap_text(from_integers(range(200_000)))
    assert text.endswith(",...}")
    assert 0x80000 < len(text) < 0x80000 + 20


def test_counts_of_integers() -> None:
    chance = random.Random(2)
    for _ in range(150):
        plus: Layers = []
        minus: Layers = []
        counts: Counter[int] = Counter()
        for _ in range(chance.randrange(20)):
            numbers = {chance.randrange(6) for _ in range(chance.randrange(5))}
            comes = chance.random() < 0.5
            add(plus if comes else minus, new_bitmap(numbers))
            (counts.update if comes else counts.subtract)(numbers)
            if chance.random() < 0.5:
                plus, minus = cancel(plus, minus)
        plus, minus = cancel(plus, minus)
        assert set(present(plus)) == {number for number, count in counts.items() if count > 0}
        assert set(present(minus)) == {number for number, count in counts.items() if count < 0}
        for count in range(1, 9):
            assert set(shared(plus, count)) == {number for number, found in counts.items() if found == count}
