"""State has its values to itself: what is stored and what is read may be changed, and only storing counts."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.api.state import ListStateDescriptor, MapStateDescriptor, StateDescriptor, ValueStateDescriptor
from firesteel.common import Types
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from tests.support.state.keyed_backends import Workbench
from tests.support.state.keyed_states import MAX

TYPES = [None, Types.PICKLED_BYTE_ARRAY(), Types.LONG(), Types.STRING()]
every_type = pytest.mark.parametrize("type_info", TYPES, ids=str)


@every_type
def test_values_of_every_sort_whatever_was_declared(backend: Any, type_info: Any) -> None:
    state = backend.get_state(ValueStateDescriptor("s", type_info))
    for value in (1, "a", 2.5, (1, 2), (1, [2]), [1, [2]], {"a": {1}}, 3, None, [4], None, 5):
        state.update(value)
        read = state.value()
        assert read == value
        if isinstance(read, (list, dict)):
            read.clear()
        if isinstance(value, (list, dict)):
            expected = list(value) if isinstance(value, list) else dict(value)
            value.clear()
            assert state.value() == expected


@every_type
def test_restored_values_are_the_states_own_too(bench: Workbench, type_info: Any) -> None:
    backend = bench.backend()
    for key, value in (("a", [1]), ("b", 2), ("c", (3, [4]))):
        backend.key = key
        backend.get_state(ValueStateDescriptor("s", type_info)).update(value)
    restored = bench.restore([bench.snapshot(backend)])
    state = restored.get_state(ValueStateDescriptor("s", type_info))
    for key, value in (("a", [1]), ("b", 2), ("c", (3, [4]))):
        restored.key = key
        for _ in range(2):
            read = state.value()
            assert read == value
            if key == "a":
                read.append("changed")
            elif key == "c":
                read[1].append("changed")


def test_restored_lists_and_maps_are_the_states_own_too(bench: Workbench) -> None:
    backend = bench.backend()
    backend.key = "k"
    backend.get_state(ListStateDescriptor("l")).add([1])
    backend.get_state(MapStateDescriptor("m")).put("a", [1])
    restored = bench.restore([bench.snapshot(backend)])
    restored.key = "k"
    elements, entries = restored.get_state(ListStateDescriptor("l")), restored.get_state(MapStateDescriptor("m"))
    for _ in range(2):
        for read in (*elements.get(), entries.get("a"), *entries.values(), *(value for _, value in entries.items())):
            assert read == [1]
            read.append("changed")


def test_methods_that_were_bound_before_the_first_value(backend: Any) -> None:
    state = backend.get_state(ValueStateDescriptor("s"))
    update, value = state.update, state.value
    update(1)
    assert value() == 1
    update([1])
    value().append(2)
    assert value() == [1]


def test_a_change_that_is_not_stored_is_not_in_a_snapshot(bench: Workbench) -> None:
    backend = bench.backend()
    backend.key = "k"
    state = backend.get_state(ValueStateDescriptor("s"))
    value = [1]
    state.update(value)
    bench.snapshot(backend)
    value.append("changed after update")
    state.value().append("changed after value")
    restored = bench.restore([bench.snapshot(backend)])
    restored.key = "k"
    assert restored.get_state(ValueStateDescriptor("s")).value() == [1]


@pytest.mark.parametrize("incremental", [True, False])
@pytest.mark.parametrize("kind", [SnapshotKind.CHECKPOINT, SnapshotKind.SAVEPOINT], ids=str)
def test_a_snapshot_that_is_yet_to_be_written_sees_no_later_change(
    clock: Any, incremental: bool, kind: SnapshotKind
) -> None:
    """Also where objects are reused, and so the state's own object changes."""
    bench = Workbench("hashmap" if incremental else "hashmap-full", MAX, clock)
    backend = HashMapKeyedStateBackend(
        KeyGroupRange(0, MAX - 1), MAX, clock, incremental=incremental, reuses_objects=True
    )
    backend.key = "k"
    state = backend.get_state(ValueStateDescriptor("s"))
    value = [1]
    state.update(value)
    pending = backend.snapshot(1, kind)
    value.append("changed before the snapshot was written")
    state.update([2])
    restored = bench.restore([bench.write(pending)])
    restored.key = "k"
    assert restored.get_state(ValueStateDescriptor("s")).value() == [1]
    bench.close()


def test_objects_are_reused(clock: Any) -> None:
    for incremental in (True, False):
        backend = HashMapKeyedStateBackend(
            KeyGroupRange(0, MAX - 1), MAX, clock, incremental=incremental, reuses_objects=True
        )
        backend.key = "k"
        value: list[Any] = [1]
        one, many = backend.get_state(ValueStateDescriptor("v")), backend.get_state(ListStateDescriptor("l"))
        entries = backend.get_state(MapStateDescriptor("m"))
        one.update(value)
        many.add(value)
        entries.put("a", value)
        assert one.value() is value
        assert many.get()[0] is value
        assert entries.get("a") is value
        internal = HashMapKeyedStateBackend(KeyGroupRange(0, MAX - 1), MAX, clock, incremental=incremental)
        internal.key = "k"
        state = internal.get_state(ValueStateDescriptor("v"), internal=True)
        state.update(value)
        assert state.value() is value


LISTS: list[tuple[StateDescriptor, str]] = [
    (ListStateDescriptor("split"), "get_list_state"),
    (ListStateDescriptor("union"), "get_union_list_state"),
]


@pytest.mark.parametrize(("descriptor", "method"), LISTS)
def test_lists_of_operator_state(descriptor: Any, method: str) -> None:
    state = getattr(OperatorStateBackend(), method)(descriptor)
    one, two = [1], [2]
    state.add(one)
    state.add_all([two])
    one.append("changed")
    two.append("changed")
    for element in state.get():
        element.append("read")
    assert list(state) == [[1], [2]]
    update = [[3]]
    state.update(update)
    update[0].append("changed")
    assert state.get() == [[3]]


def test_broadcast_state() -> None:
    backend = OperatorStateBackend()
    state = backend.get_broadcast_state(MapStateDescriptor("rules"))
    one, two = [1], [2]
    state.put("one", one)
    state.put_all({"two": two})
    one.append("changed")
    two.append("changed")
    view = state.read_only("rules")
    for reader in (state, view):
        for read in (reader.get("one"), *reader.values(), *(value for _, value in list(reader.items()))):
            read.append("read")
    assert dict(view.items()) == {"one": [1], "two": [2]}


def test_operator_state_whose_objects_are_reused() -> None:
    backend = OperatorStateBackend(reuses_objects=True)
    value = [1]
    backend.get_list_state(ListStateDescriptor("l")).add(value)
    backend.get_broadcast_state(MapStateDescriptor("m")).put("a", value)
    assert backend.get_list_state(ListStateDescriptor("l")).get()[0] is value  # type: ignore[index]
    assert backend.get_broadcast_state(MapStateDescriptor("m")).get("a") is value
