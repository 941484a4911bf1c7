"""Copies of values: deep as those of ``copy.deepcopy``, and no copy of what cannot change."""

from __future__ import annotations

import collections
import copy
import datetime as dt
import decimal
import enum
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Instant, Row, RowKind
from firesteel.types.copying import are_immutable, copy_all, copy_value


class Color(enum.Enum):
    RED = 1


@dataclass
class Plain:
    name: str
    parts: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    name: str
    parts: Any = None


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    name: str
    parts: Any = None


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self, left: Any):
        self.left = left


class Derived(Slotted):
    def __init__(self, left: Any, extra: Any):
        super().__init__(left)
        self.extra = extra


class Pair(NamedTuple):
    left: Any
    right: Any


class Counting:
    """Says itself what is copied."""

    def __init__(self, parts: list[Any]):
        self.parts = parts
        self.copies = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Counting:
        made = Counting(copy.deepcopy(self.parts, memo))
        made.copies = self.copies + 1
        return made


class Reduced:
    def __init__(self, parts: list[Any]):
        self.parts = parts
        self.connection = object()

    def __getstate__(self) -> Any:
        return {"parts": self.parts}

    def __setstate__(self, state: Any) -> None:
        self.parts = state["parts"]
        self.connection = "made anew"


class Listed(list):  # type: ignore[type-arg]
    def __init__(self, *args: Any):
        super().__init__(*args)
        self.label: Any = None


IMMUTABLE: list[Any] = [
    *(None, True, 1, 1.5, 2j, "text", b"bytes", (), (1, "a"), (1, (2, ("three",))), range(3), ..., int, len),
    *(dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc), dt.timedelta(1)),
    *(decimal.Decimal("1.5"), uuid.UUID(int=1), Color.RED, RowKind.INSERT, Instant(1, 2), frozenset({1, 2})),
    *(Frozen("a", 1), Frozen("a", (1, 2)), FrozenSlots("a", 1), Pair(1, "b"), Pair(1, ("b", 2)), np.int64(3)),
]


@pytest.mark.parametrize("value", IMMUTABLE, ids=repr)
def test_immutable_values_are_not_copied(value: Any) -> None:
    assert copy_value(value) is value


MUTABLE: list[Any] = [
    *([], [1, 2], [[1], [2]], {"a": 1}, {"a": [1]}, {1, 2}, bytearray(b"ab"), collections.deque([1, [2]], 5)),
    *((1, [2]), ([1], ([2],)), ("a", {"b": {"c": [1]}}), [(1, 2), (3, 4)], {(1, 2): [3]}, [dt.date(2020, 1, 1), []]),
    *(Row(1, [2]), Row(a=1, b=[2]), Row(a=Row(b=1)), Row.of_kind(RowKind.DELETE, 1)),
    *(Plain("a", [1]), Frozen("a", [1]), FrozenSlots("a", [1]), [Plain("a")], {"p": Plain("a", [[1]])}),
    *(Pair([1], 2), Pair(Pair(1, [2]), 3), collections.defaultdict(list, a=[1]), collections.OrderedDict(a=[1])),
    *(collections.Counter("aab"), np.array([1, 2]).tolist(), frozenset({Frozen("a", (1,))})),
]


@pytest.mark.parametrize("value", MUTABLE, ids=repr)
def test_copies_are_equal_and_of_the_same_class(value: Any) -> None:
    copied = copy_value(value)
    assert copied == value
    assert type(copied) is type(value)
    assert repr(copied) == repr(value)


def mutable_parts(value: Any) -> set[int]:
    """The ids of all objects in a value that can change."""
    can_change = isinstance(value, (list, set, dict, Row, Plain, collections.deque, bytearray))
    found = {id(value)} if can_change else set()
    if isinstance(value, dict):
        parts: Any = [*value, *value.values()]
    elif isinstance(value, (list, tuple, set, Row, collections.deque)):
        parts = list(value)
    else:
        parts = list(getattr(value, "__dict__", {}).values())
        parts += [getattr(value, name) for name in getattr(value, "__slots__", ()) if hasattr(value, name)]
    return found.union(*map(mutable_parts, parts))


@pytest.mark.parametrize("value", MUTABLE, ids=repr)
def test_copies_share_nothing_that_can_change(value: Any) -> None:
    assert not mutable_parts(value) & mutable_parts(copy_value(value))


ATOMS = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.binary(max_size=3)
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(lambda values: Row(*values))
        | inner.map(lambda value: Plain("p", [value]))
        | inner.map(lambda value: Frozen("f", value))
        | st.tuples(inner, inner).map(lambda pair: Pair(*pair))
    ),
    max_leaves=12,
)


@given(VALUES)
def test_any_value(value: Any) -> None:
    copied = copy_value(value)
    assert copied == value
    assert type(copied) is type(value)
    assert not mutable_parts(value) & mutable_parts(copied)


@given(st.lists(VALUES, max_size=4))
def test_several_values(values: list[Any]) -> None:
    copied = copy_all(values)
    assert copied == values
    if are_immutable(values):
        assert copied is values
        assert not mutable_parts(values) - {id(values)}
    else:
        assert not mutable_parts(values) & mutable_parts(copied)


def test_an_object_that_occurs_twice_is_one_object_in_the_copy() -> None:
    for shared in ([1], {"a": 1}, Plain("a"), Row(1)):
        for value in (
            [shared, shared],
            {"a": shared, "b": {"c": shared}},
            (shared, [shared]),
            Plain("p", [shared, shared]),
        ):
            copied = copy_value(value)
            assert copied == value
            found = [part for part in _walk(copied) if part == shared]
            assert len(found) >= 2
            assert len(set(map(id, found))) == 1


def _walk(value: Any) -> list[Any]:
    parts = value.values() if isinstance(value, dict) else getattr(value, "parts", value)
    found = [value]
    for part in parts if isinstance(parts, (list, tuple)) or isinstance(value, dict) else ():
        found += _walk(part)
    return found


def test_a_value_that_contains_itself() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    copied = copy_value(loop)
    assert copied[1] is copied
    assert copied is not loop
    holder = Plain("a")
    holder.parts.append((holder, "x"))
    copied = copy_value(holder)
    assert copied.parts[0][0] is copied


def test_objects_with_slots() -> None:
    value = Derived([1], {"a": [2]})
    copied = copy_value(value)
    assert (copied.left, copied.extra) == ([1], {"a": [2]})
    assert copied.left is not value.left
    assert copied.extra["a"] is not value.extra["a"]
    assert not hasattr(copied, "right")


def test_a_class_says_itself_how_it_is_copied() -> None:
    value = Counting([1])
    copied = copy_value([value])[0]
    assert (copied.copies, copied.parts) == (1, [1])
    assert copied.parts is not value.parts
    reduced = copy_value(Reduced([1]))
    assert (reduced.parts, reduced.connection) == ([1], "made anew")
    listed = Listed([[1]])
    listed.label = {"a": 1}
    copied = copy_value(listed)
    assert (copied, copied.label) == ([[1]], {"a": 1})
    assert copied[0] is not listed[0]
    assert copied.label is not listed.label


def test_what_python_cannot_copy_is_in_the_copy_as_it_is() -> None:
    lock, numbers = threading.Lock(), (number for number in range(3))
    assert copy_value(numbers) is numbers
    value = Plain("a", [lock, numbers, [1]])
    copied = copy_value(value)
    assert copied.parts[0] is lock
    assert copied.parts[1] is numbers
    assert copied.parts[2] == [1]
    assert copied.parts[2] is not value.parts[2]
    assert copy_value({"lock": {"deep": [lock]}})["lock"]["deep"][0] is lock


def test_an_error_of_a_copy_method_is_not_hidden() -> None:
    class Broken:
        def __deepcopy__(self, memo: Any) -> Any:
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        copy_value([Broken()])


def test_arrays() -> None:
    array = np.array([1, 2])
    copied = copy_value({"array": array})["array"]
    array[0] = 5
    assert copied.tolist() == [1, 2]


def test_classes_defined_in_a_function() -> None:
    @dataclass
    class Local:
        parts: list[Any]

    value = {"a": {"b": [Local([1])]}}
    copied = copy_value(value)
    value["a"]["b"][0].parts.append(2)
    assert copied["a"]["b"][0].parts == [1]
