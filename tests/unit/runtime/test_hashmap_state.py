"""The five kinds of keyed state: by key, by namespace, and through snapshots of key groups."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.api.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream.functions import AggregateFunction
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange, key_group_of
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.testing import FakeClock
from tests.support.state.memory_files import MemorySnapshotFiles, MemoryStateFileReader, MemoryStore

MAX = 16


class Average(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


VALUE = ValueStateDescriptor("value")
LIST = ListStateDescriptor("list")
MAP = MapStateDescriptor("map")
SUM = ReducingStateDescriptor("sum", lambda a, b: a + b)
AVERAGE = AggregatingStateDescriptor("average", Average())


def backend_of(start: int = 0, end: int = MAX - 1) -> HashMapKeyedStateBackend:
    return HashMapKeyedStateBackend(KeyGroupRange(start, end), MAX, FakeClock())


@pytest.fixture
def backend() -> HashMapKeyedStateBackend:
    backend = backend_of()
    backend.key = "a"
    return backend


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
    state.update([])
    assert list(backend.keys("list")) == []
    for wrong in (lambda: state.add(None), lambda: state.add_all([1, None]), lambda: state.update([None])):
        with pytest.raises(ValueError, match="None"):
            wrong()


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
    assert (list(state.keys()), list(state.values())) == (["x", "y", "z"], [4, 2, 3])
    assert state.contains("x")
    assert "q" not in state
    for key in state.keys():  # noqa: SIM118 - may be changed while it is read
        del state[key]
    assert state.is_empty()
    assert list(backend.keys("map")) == []
    state.put("none", None)
    assert state.contains("none")
    backend.key = "b"
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


@pytest.mark.parametrize("descriptor", [LIST, SUM, AVERAGE])
def test_namespaces_are_apart_and_can_be_merged(backend: Any, descriptor: Any) -> None:
    state = backend.get_state(descriptor, namespace_aware=True)

    def get(namespace: Any) -> Any:
        state.set_current_namespace(namespace)
        found = state.get()
        return list(found) if descriptor is LIST else found

    for namespace, value in (("w1", 1), ("w2", 2), ("w3", 6)):
        state.set_current_namespace(namespace)
        state.add(value)
    backend.key = "b"
    state.set_current_namespace("w2")
    state.add(100)
    backend.key = "a"
    single = {LIST: [2], SUM: 2, AVERAGE: 2.0}[descriptor]
    assert get("w2") == single
    state.merge_namespaces("w1", ["w2", "w3", "w-none"])
    assert get("w1") == {LIST: [1, 2, 6], SUM: 9, AVERAGE: 3.0}[descriptor]
    assert not get("w2")
    assert not get("w3")
    backend.key = "b"
    assert get("w2") == {LIST: [100], SUM: 100, AVERAGE: 100.0}[descriptor]
    assert not get(None)


def test_an_empty_namespace_leaves_nothing_behind(backend: Any) -> None:
    state = backend.get_state(VALUE, namespace_aware=True)
    for window in range(1000):
        state.set_current_namespace(window)
        state.update(window)
        state.clear()
    state.set_current_namespace(None)
    assert list(backend.state_table("value").namespaces) == [None]


keyed_contents = st.dictionaries(
    st.one_of(st.integers(), st.text(max_size=3), st.tuples(st.integers(), st.text(max_size=2))),
    st.lists(st.integers(0, 100), min_size=1, max_size=4),
    max_size=30,
)


def fill(backend: Any, contents: dict[Any, list[int]]) -> None:
    for key, values in contents.items():
        backend.key = key
        for value in values:
            backend.get_state(VALUE).update(value)
            backend.get_state(LIST).add(value)
            backend.get_state(MAP).put(value, str(value))
            backend.get_state(SUM).add(value)
            windowed = backend.get_state(AVERAGE, namespace_aware=True)
            windowed.set_current_namespace(("w", value % 2))
            windowed.add(value)


def contents_of(backend: Any, key: Any) -> Any:
    backend.key = key
    averages = []
    windowed = backend.get_state(AVERAGE, namespace_aware=True)
    for namespace in (("w", 0), ("w", 1)):
        windowed.set_current_namespace(namespace)
        averages.append(windowed.get())
    return (
        backend.get_state(VALUE).value(),
        list(backend.get_state(LIST).get()),
        dict(backend.get_state(MAP).items()),
        backend.get_state(SUM).get(),
        averages,
    )


@pytest.mark.parametrize("kind", [SnapshotKind.CHECKPOINT, SnapshotKind.SAVEPOINT])
@given(contents=keyed_contents, parallelism=st.integers(1, 5))
def test_state_can_be_restored_at_another_parallelism(
    kind: SnapshotKind, contents: dict[Any, list[int]], parallelism: int
) -> None:
    before = backend_of()
    fill(before, contents)
    store = MemoryStore()
    handle = before.snapshot(1, kind).write(MemorySnapshotFiles(store))  # type: ignore[arg-type]
    parts = []
    for subtask in range(parallelism):
        part = HashMapKeyedStateBackend(KeyGroupRange.of(subtask, MAX, parallelism), MAX, FakeClock())
        part.restore([handle], MemoryStateFileReader(store), reusable=False)  # type: ignore[arg-type]
        parts.append(part)
    assert sorted(map(repr, (key for part in parts for key in part.keys("value")))) == sorted(map(repr, contents))
    for key in contents:
        owners = [part for part in parts if key_group_of(key, MAX) in part.key_groups]
        assert len(owners) == 1
        assert contents_of(owners[0], key) == contents_of(before, key)
