from __future__ import annotations

import pickle
import sys
import threading

import cloudpickle
import pytest

from firesteel.api.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig
from firesteel.common.errors import InvalidProgramError, RecordSerializationError, StateIncompatibleError
from firesteel.common.time import Time
from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
from firesteel.runtime.model.assigned_state import AssignedOperatorState
from firesteel.runtime.model.checkpoint_options import CheckpointLocation
from firesteel.runtime.model.state_handles import BROADCAST, SPLIT, UNION, FileSegment
from firesteel.runtime.state.api.operator_state import OperatorStateBackend

LIST = ListStateDescriptor("list")
UNIONED = ListStateDescriptor("union")
RULES = MapStateDescriptor("rules")


def write(backend):
    files = SnapshotFiles(CheckpointLocation("memory", "memory"), inline_threshold=sys.maxsize)
    handles = backend.snapshot().write(files)
    files.finish()
    return pickle.loads(pickle.dumps(handles))


def restored(*parts):
    backend = OperatorStateBackend()
    with StateFileReader() as files:
        backend.restore([AssignedOperatorState(*part) for part in parts], files)
    return backend


def whole(handles):
    return [(handle, 0, handle.items) for handle in handles]


def test_lists_and_maps_come_back():
    backend = OperatorStateBackend()
    numbers = backend.get_list_state(LIST)
    numbers.update([1, 2])
    numbers.add(3)
    numbers.add_all([4, 5])
    backend.get_union_list_state(UNIONED).add("u")
    rules = backend.get_broadcast_state(RULES)
    rules.put_all({"a": 1, "b": 2, "c": 3})
    del rules["b"]
    handles = write(backend)
    assert {(h.name, h.mode, h.items) for h in handles} == {
        ("list", SPLIT, 5),
        ("union", UNION, 1),
        ("rules", BROADCAST, 2),
    }
    again = restored(*whole(handles))
    assert again.get_list_state(LIST).get() == [1, 2, 3, 4, 5]
    assert list(again.get_union_list_state(UNIONED)) == ["u"]
    assert dict(again.get_broadcast_state(RULES).items()) == {"a": 1, "c": 3}


def test_only_the_assigned_items_are_taken():
    backend = OperatorStateBackend()
    backend.get_list_state(LIST).update(list(range(10)))
    [handle] = write(backend)
    assert restored((handle, 2, 4), (handle, 9, 10)).get_list_state(LIST).get() == [2, 3, 9]
    assert restored((handle, 3, 3)).get_list_state(LIST).get() == []


def test_a_snapshot_is_not_changed_by_what_follows():
    backend = OperatorStateBackend()
    state = backend.get_list_state(LIST)
    element = {"count": 1}
    state.add(element)
    pending = backend.snapshot()
    element["count"] = 2
    state.clear()
    [handle] = pending.write(SnapshotFiles(CheckpointLocation("memory", "memory")))
    assert restored(*whole([handle])).get_list_state(LIST).get() == [{"count": 1}]


def test_reading_while_writing():
    state = OperatorStateBackend().get_list_state(LIST)
    state.update([1, 2])
    for value in state:
        state.add(value * 10)
    assert state.get() == [1, 2, 10, 20]
    rules = OperatorStateBackend().get_broadcast_state(RULES)
    rules.put("a", 1)
    for key, value in rules.items():
        rules[key * 2] = value
    assert (sorted(rules), rules.get("aa"), rules.get("zz"), "a" in rules) == (["a", "aa"], 1, None, True)
    rules.clear()
    assert rules.is_empty()


def test_large_state_goes_into_a_file(tmp_path):
    location = CheckpointLocation(str(tmp_path), str(tmp_path))
    files = SnapshotFiles(location, inline_threshold=100)
    backend = OperatorStateBackend()
    backend.get_list_state(LIST).update(["x" * 50] * 20)
    [handle] = backend.snapshot().write(files)
    files.finish()
    assert isinstance(handle.data, FileSegment)
    assert restored((handle, 18, 20)).get_list_state(LIST).get() == ["x" * 50] * 2


def test_restored_state_that_nobody_asked_for_stays():
    backend = OperatorStateBackend()
    backend.get_list_state(LIST).add(1)
    backend.get_broadcast_state(RULES).put("a", 1)
    untouched = restored(*whole(write(backend)))
    again = restored(*whole(write(untouched)))
    assert again.get_list_state(LIST).get() == [1]
    assert again.get_broadcast_state(RULES).get("a") == 1


def test_an_operators_own_list_is_kept_by_the_snapshot_it_was_put_for_and_no_other():
    backend = OperatorStateBackend()
    backend.put("_splits", SPLIT, (split for split in "ab"))
    first = write(backend)
    assert [(h.name, h.items) for h in first] == [("_splits", 2)]
    assert write(backend) == ()
    again = restored(*whole(first))
    assert write(again) == ()
    assert again.restored("_splits") == ["a", "b"]
    assert again.restored("_splits") == []
    assert again.restored("_unheard-of") == []


def test_state_asked_for_in_another_way_is_refused():
    backend = OperatorStateBackend()
    backend.get_list_state(LIST)
    assert backend.get_list_state(LIST) is backend.get_list_state(LIST)
    with pytest.raises(StateIncompatibleError) as caught:
        backend.get_union_list_state(LIST)
    assert caught.value.state == "list"
    again = restored(*whole(write(backend)))
    with pytest.raises(StateIncompatibleError, match="union list state, but it is list state"):
        again.get_union_list_state(LIST)
    with pytest.raises(StateIncompatibleError):
        again.get_broadcast_state(MapStateDescriptor("list"))


def test_bad_descriptors_and_values_are_refused():
    backend = OperatorStateBackend()
    expiring = ListStateDescriptor("expiring")
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    for ask in (
        lambda: backend.get_list_state(RULES),
        lambda: backend.get_broadcast_state(LIST),
        lambda: backend.get_list_state(ListStateDescriptor("_splits")),
        lambda: backend.get_list_state(expiring),
    ):
        with pytest.raises(InvalidProgramError):
            ask()
    state = backend.get_list_state(LIST)
    for change in (lambda: state.add(None), lambda: state.update([1, None]), lambda: state.add_all([None])):
        with pytest.raises(ValueError, match="None"):
            change()


def test_an_item_that_cannot_be_stored_is_named():
    backend = OperatorStateBackend()
    backend.get_list_state(LIST).add(threading.Lock())
    with pytest.raises(RecordSerializationError, match="operator state 'list'") as caught:
        backend.snapshot()
    assert "lock" in caught.value.record


def test_classes_of_the_users_script():
    scope = {"__name__": "a_script_that_is_not_importable"}
    exec("class Reading:\n    def __init__(self, n): self.n = n", scope)
    reading_class = pickle.loads(cloudpickle.dumps(scope["Reading"]))
    backend = OperatorStateBackend()
    backend.get_list_state(LIST).add(reading_class(7))
    [item] = restored(*whole(write(backend))).get_list_state(LIST).get()
    assert (item.n, type(item)) == (7, reading_class)


def test_an_item_that_cannot_be_read_is_named():
    backend = OperatorStateBackend()
    backend.put("_x", SPLIT, [1])
    [handle] = write(backend)
    broken = type(handle)("gone", SPLIT, 1, type(handle.data)(pickle.dumps([b"c__main__\nNoSuchClass\n."])))
    with pytest.raises(StateIncompatibleError) as caught:
        restored((broken, 0, 1))
    assert caught.value.state == "gone"
