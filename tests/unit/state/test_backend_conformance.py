"""What every keyed state backend does alike: the five kinds of state, namespaces and keys."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from dataclasses import dataclass
from typing import Any

import pytest

from firesteel.api.state import (
    ListStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.common.errors import InvalidKeyError, InvalidProgramError
from firesteel.common.types import Row
from firesteel.common.windows import CountWindow, GlobalWindow, TimeWindow
from tests.support.state.keyed_backends import Workbench
from tests.support.state.keyed_states import AVERAGE, CHECKPOINT, DESCRIPTORS, LIST, MAP, SAVEPOINT, SUM, VALUE, put


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


@dataclass(frozen=True)
class Point:
    x: int
    name: str


KEYS: list[Any] = [
    0,
    1,
    -1,
    2**70,
    "",
    "abcdefg",  # as long as an encoded number
    int.from_bytes(b"sabcdefg", "little"),  # which an encoded number may equal
    "ü\ud800",
    "x" * 300,
    b"",
    b"bytes",
    2.5,
    3.0,
    True,
    (),
    (1, "a", None, (2.5, b"b")),
    ("abcdefg",),
    (int.from_bytes(b"sabcdefg", "little"),),
    decimal.Decimal("1.10"),
    Colour.RED,
    Colour.BLUE,
    Level.LOW,
    Point(1, "p"),
    Point(1, "q"),
    Row(1, "row"),
    frozenset({1, 2}),
    uuid.UUID(int=7),
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 12, 30, 1, 5),  # noqa: DTZ001 - a key may be any time
    datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    datetime.time(1, 2, 3),
    datetime.timedelta(days=-1, microseconds=3),
]
"""No two of them are equal, except 1, True and Level.LOW."""
NAMESPACES: list[Any] = [
    None,
    TimeWindow(0, 10),
    TimeWindow(-5, 10),
    TimeWindow(0, 2**80),
    CountWindow(3),
    GlobalWindow(),
    "w",
    ("w", 1),
    7,
    Point(2, "namespace"),
]


# ---- the kinds of state -----------------------------------------------------------------------------


def test_value_state(backend: Any) -> None:
    state = backend.get_state(VALUE)
    assert state.value() is None
    state.update(1)
    backend.key = "b"
    assert state.value() is None
    state.update(0)
    assert state.value() == 0
    backend.key = "a"
    assert state.value() == 1
    state.update(None)
    assert state.value() is None
    assert list(backend.keys("value")) == ["b"]
    state.clear()
    backend.key = "b"
    state.clear()
    assert list(backend.keys("value")) == []


def test_list_state(backend: Any) -> None:
    state = backend.get_state(LIST)
    assert list(state.get()) == []
    state.add(1)
    state.add_all([2, 3])
    state.add_all([])
    assert list(state.get()) == list(state) == [1, 2, 3]
    for element in state.get():  # may be changed while it is read
        state.add(element * 10)
    assert list(state.get()) == [1, 2, 3, 10, 20, 30]
    given = [7]
    state.update(given)
    given.append(8)
    assert list(state.get()) == [7]
    for wrong in (lambda: state.add(None), lambda: state.add_all([None]), lambda: state.update([1, None])):
        with pytest.raises(ValueError, match="None"):
            wrong()
    assert list(state.get()) == [7]
    backend.key = "b"
    assert list(state.get()) == []
    backend.key = "a"
    state.update([])
    assert list(backend.keys("list")) == []


def test_map_state(backend: Any) -> None:
    state = backend.get_state(MAP)
    assert state.is_empty()
    assert state.get("x") is None
    state.remove("x")
    state.put("x", 1)
    state["y"] = 2
    state.put_all({"z": 3, "x": 4})
    state.put_all({})
    assert dict(state.items()) == {"x": 4, "y": 2, "z": 3}
    assert list(zip(state.keys(), state.values(), strict=True)) == list(state.items())
    assert state.contains("x")
    assert "q" not in state
    for key in state.keys():  # noqa: SIM118 - may be changed while it is read
        del state[key]
    assert state.is_empty()
    assert list(backend.keys("map")) == []
    state.put("none", None)
    assert state.contains("none")
    assert state.get("none") is None
    backend.key = "b"
    assert state.is_empty()
    backend.key = "a"
    state.clear()
    assert state.is_empty()


def test_reducing_and_aggregating_state(backend: Any) -> None:
    total, average = backend.get_state(SUM), backend.get_state(AVERAGE)
    assert total.get() is None
    assert average.get() is None
    for value in (1, 2, 6):
        total.add(value)
        average.add(value)
    assert (total.get(), average.get()) == (9, 3.0)
    backend.key = "b"
    total.add(5)
    assert (total.get(), average.get()) == (5, None)
    total.clear()
    assert total.get() is None


def test_a_name_is_one_state_of_one_kind(backend: Any) -> None:
    assert backend.get_state(VALUE) is backend.get_state(ValueStateDescriptor("value"))
    with pytest.raises(InvalidProgramError, match="first registered as value state") as caught:
        backend.get_state(ListStateDescriptor("value"))
    assert caught.value.hint
    assert backend.descriptors() == {"value": VALUE}


def test_a_key_that_has_no_stable_form_is_refused_at_the_latest_in_a_savepoint(bench: Workbench, backend: Any) -> None:
    def use() -> None:
        backend.get_state(VALUE).update(1)
        bench.snapshot(backend, SAVEPOINT)

    backend.key = object()
    with pytest.raises(InvalidKeyError):
        use()


@pytest.mark.parametrize("descriptor", [LIST, SUM, AVERAGE], ids=lambda d: d.kind)
@pytest.mark.parametrize("windows", [("w1", "w2", "w3"), tuple(TimeWindow(n, n + 5) for n in range(3)), (1, "1", b"1")])
def test_namespaces_are_apart_and_can_be_merged(backend: Any, descriptor: Any, windows: tuple[Any, ...]) -> None:
    state = backend.get_state(descriptor, namespace_aware=True)
    first, second, third = windows

    def get(namespace: Any) -> Any:
        state.set_current_namespace(namespace)
        found = state.get()
        return list(found) if descriptor is LIST else found

    for namespace, value in ((first, 1), (second, 2), (third, 6)):
        state.set_current_namespace(namespace)
        state.add(value)
    backend.key = "b"
    state.set_current_namespace(second)
    state.add(100)
    backend.key = "a"
    assert get(second) == {LIST: [2], SUM: 2, AVERAGE: 2.0}[descriptor]
    state.merge_namespaces(first, [second, third, "w-none"])
    assert get(first) == {LIST: [1, 2, 6], SUM: 9, AVERAGE: 3.0}[descriptor]
    assert not get(second)
    assert not get(third)
    backend.key = "b"
    assert get(second) == {LIST: [100], SUM: 100, AVERAGE: 100.0}[descriptor]
    assert not get(None)
    assert list(backend.keys(descriptor.name, first)) == ["a"]
    assert list(backend.keys(descriptor.name, second)) == ["b"]


def test_merging_keeps_the_current_namespace(backend: Any) -> None:
    state = backend.get_state(SUM, namespace_aware=True)
    for namespace in ("w1", "w2"):
        state.set_current_namespace(namespace)
        state.add(1)
    state.set_current_namespace("other")
    state.merge_namespaces("w1", ["w2"])
    state.add(7)
    assert state.get() == 7
    state.set_current_namespace("w1")
    assert state.get() == 2


def test_namespaces_come_back(bench: Workbench, backend: Any) -> None:
    for descriptor in DESCRIPTORS:
        state = backend.get_state(descriptor, namespace_aware=True)
        for namespace in NAMESPACES:
            state.set_current_namespace(namespace)
            put(state, descriptor, 1)
    for kind in (CHECKPOINT, SAVEPOINT):
        restored = bench.restore([bench.snapshot(backend, kind)])
        for descriptor in DESCRIPTORS:
            entries = list(restored.entries(descriptor.name))
            assert {namespace: type(namespace) for namespace, _, _ in entries} == {ns: type(ns) for ns in NAMESPACES}
            assert len(entries) == len(NAMESPACES)
            state = restored.get_state(descriptor, namespace_aware=True)
            restored.key = "a"
            for namespace in NAMESPACES:
                assert list(restored.keys(descriptor.name, namespace)) == ["a"]
                state.set_current_namespace(namespace)
                assert not is_empty(state, descriptor)


def is_empty(state: Any, descriptor: Any) -> bool:
    if descriptor is VALUE:
        return state.value() is None
    if descriptor is MAP:
        return bool(state.is_empty())
    return not state.get()


# ---- keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("descriptor", DESCRIPTORS, ids=lambda descriptor: descriptor.kind)
def test_all_keys_are_visited_once_whatever_becomes_of_them(backend: Any, descriptor: Any) -> None:
    state = backend.get_state(descriptor, namespace_aware=True)
    for key in range(100):
        backend.key = key
        for value in (1, 2):
            put(state, descriptor, value)
    state.set_current_namespace("of a window")
    put(state, descriptor, 3)
    state.set_current_namespace(None)
    backend.key = "before"
    visited: list[Any] = []

    def visit(key: Any, found: Any) -> None:
        assert (backend.key, found) == (key, state)
        visited.append(key)
        if key % 2:
            found.clear()
        else:
            put(found, descriptor, 3)

    backend.apply_to_all_keys(descriptor, visit)
    assert sorted(visited) == list(range(100))
    assert backend.key == "before"
    assert sorted(backend.keys(descriptor.name)) == list(range(0, 100, 2))


def test_an_error_in_a_visit_leaves_the_key_it_was_about(backend: Any) -> None:
    put(backend.get_state(VALUE), VALUE, 1)
    backend.key = "before"

    def fail(key: Any, state: Any) -> None:
        raise ValueError(key)

    with pytest.raises(ValueError, match="a"):
        backend.apply_to_all_keys(VALUE, fail)
    assert backend.key == "a"


@pytest.mark.parametrize(
    "keys", [[key for key in KEYS if key is not True and key is not Level.LOW], [True], [Level.LOW]]
)
def test_a_key_comes_back_with_its_type(bench: Workbench, backend: Any, keys: list[Any]) -> None:
    expected = {key: (type(key), repr(key)) for key in keys}
    assert len(expected) == len(keys)
    for key in keys:
        backend.key = key
        for descriptor in DESCRIPTORS:
            put(backend.get_state(descriptor), descriptor, 1)
        backend.timer_queue("t/event").add(5, key, None)
    for kind in (None, CHECKPOINT, SAVEPOINT):
        found = backend if kind is None else bench.restore([bench.snapshot(backend, kind)])
        timers = found.timer_queue("t/event").timers()
        assert {key: (type(key), repr(key)) for _, key, _ in timers} == expected
        for descriptor in DESCRIPTORS:
            assert {key: (type(key), repr(key)) for _, key, _ in found.entries(descriptor.name)} == expected
            assert {key: (type(key), repr(key)) for key in found.keys(descriptor.name)} == expected
            state = found.get_state(descriptor)
            for key in keys:
                found.key = key
                assert not is_empty(state, descriptor)


def test_equal_keys_are_one_and_others_are_not(backend: Any) -> None:
    state = backend.get_state(VALUE)
    expected: dict[Any, int] = {}
    for number, key in enumerate(KEYS):
        backend.key = key
        state.update(number)
        expected[key] = number
    for key in KEYS:
        backend.key = key
        assert state.value() == expected[key]
    assert {key: stored for _namespace, key, stored in backend.entries("value")} == expected


@pytest.mark.parametrize("state_key", ["plain", Point(3, "original")], ids=repr)
def test_map_keys_come_back_with_their_types(bench: Workbench, backend: Any, state_key: Any) -> None:
    expected = {key: number for number, key in enumerate(KEYS)}
    backend.key = state_key
    state = backend.get_state(MAP)
    state.put_all(expected)
    state.put(None, "none")
    expected[None] = "none"  # type: ignore[assignment]
    for key, value in expected.items():
        assert state.contains(key)
        assert state.get(key) == value
    assert dict(state.items()) == expected
    for kind in (CHECKPOINT, SAVEPOINT):
        restored = bench.restore([bench.snapshot(backend, kind)])
        restored.key = state_key
        found = dict(restored.get_state(MAP).items())
        assert found == expected
        types = {key: type(key) for key in expected}
        assert {key: type(key) for key in found} == types
