"""What every keyed state backend does alike: snapshots, what they share, and what can be restored."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from firesteel.api.state import (
    ListStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.common import Types
from firesteel.common.errors import CorruptStateError, StateIncompatibleError
from firesteel.common.time import Time
from firesteel.common.windows import TimeWindow
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange, key_group_of
from firesteel.runtime.model.state_handles import CANONICAL, FileSegment, KeyedStateHandle
from firesteel.testing import FakeClock
from tests.support.state.keyed_backends import Workbench
from tests.support.state.keyed_states import (
    CHECKPOINT,
    DESCRIPTORS,
    EVERY_KIND,
    LIST,
    MAP,
    MAX,
    SAVEPOINT,
    SUM,
    VALUE,
    put,
)

# ---- snapshots --------------------------------------------------------------------------------------


def fill(backend: Any, numbers: range) -> None:
    states = {descriptor.name: backend.get_state(descriptor, namespace_aware=True) for descriptor in DESCRIPTORS}
    for number in numbers:
        backend.key = number if number % 3 else f"key-{number}"
        for descriptor in DESCRIPTORS:
            state = states[descriptor.name]
            state.set_current_namespace(TimeWindow(0, 10) if number % 2 else None)
            put(state, descriptor, number)
            if descriptor is LIST:
                state.add_all([number + 1, number + 2])
        backend.timer_queue("t/event").add(number % 7, backend.key, None)
        backend.timer_queue("t/processing").add(number, backend.key, TimeWindow(0, 10))
    for state in states.values():
        state.set_current_namespace(None)


def contents(*backends: Any) -> dict[str, Any]:
    found: dict[str, Any] = {descriptor.name: {} for descriptor in DESCRIPTORS}
    for backend in backends:
        for name, entries in found.items():
            for namespace, key, stored in backend.entries(name):
                assert (namespace, key) not in entries
                entries[namespace, key] = copy.deepcopy(stored)
    for queue in ("t/event", "t/processing"):
        timers = [timer for backend in backends for timer in backend.timer_queue(queue).timers()]
        found[queue] = set(timers)
        assert len(found[queue]) == len(timers)
    return found


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_snapshot_has_everything_and_is_not_changed_by_what_follows(
    bench: Workbench, backend: Any, kind: SnapshotKind
) -> None:
    fill(backend, range(100))
    before = contents(backend)
    pending = backend.snapshot(1, kind)
    fill(backend, range(50, 150))
    backend.timer_queue("t/event").pop_due(100)
    handle = bench.write(pending)
    assert handle.key_groups == bench.all_groups
    assert handle.format == (CANONICAL if kind is SAVEPOINT else backend.name)
    restored = bench.restore([handle])
    assert contents(restored) == before
    kinds = {meta.name: meta.kind for meta in handle.states}
    assert kinds == {
        "value": "value",
        "list": "list",
        "map": "map",
        "sum": "reducing",
        "average": "aggregating",
        "_timers/t/event": "timers",
        "_timers/t/processing": "timers",
    }
    if kind is SAVEPOINT:
        assert {meta.entries for meta in handle.states} == {100}


@pytest.mark.parametrize(
    ("kind", "parallelism"), [*((kind, 3) for kind in EVERY_KIND), (CHECKPOINT, 2), (CHECKPOINT, 16)]
)
def test_state_is_shared_out_and_gathered_again(
    bench: Workbench, backend: Any, kind: SnapshotKind, parallelism: int
) -> None:
    fill(backend, range(200))
    before = contents(backend)
    handle = bench.snapshot(backend, kind)
    parts = []
    for subtask in range(parallelism):
        groups = KeyGroupRange.of(subtask, MAX, parallelism)
        part = bench.restore([handle], groups)
        for name in ("value", "list"):
            assert {key_group_of(key, MAX) for _, key, _ in part.entries(name)} <= set(groups)
        parts.append(part)
    assert contents(*parts) == before
    for part in parts:
        part.key = next(iter(part.keys("sum")), None)
        if part.key is not None:
            part.get_state(SUM).add(1000)
    changed = contents(*parts)
    handles = [bench.snapshot(part, kind) for part in parts]
    # two backends of unequal size: some handles are split, some are taken whole
    middle = KeyGroupRange(5, 15)
    again = [bench.restore(handles, KeyGroupRange(0, 4)), bench.restore(handles[::-1], middle)]
    assert contents(*again) == changed
    once_more = bench.restore([bench.snapshot(backend, kind) for backend in again])
    assert contents(once_more) == changed


def test_timers_keep_their_order_through_rescaling(bench: Workbench, backend: Any) -> None:
    queue = backend.timer_queue("t/event")
    for key in range(50):
        queue.add(7, key, None)
    queue.add(1, "first", None)
    queue.remove(7, 30, None)
    queue.add(7, 30, None)
    handle = bench.snapshot(backend)
    parts = [bench.restore([handle], groups) for groups in (KeyGroupRange(0, 7), KeyGroupRange(8, 15))]
    for part in parts:
        timers = part.timer_queue("t/event").timers()
        assert timers == [timer for timer in queue.timers() if key_group_of(timer[1], MAX) in part.key_groups]
        part.timer_queue("t/event").add(7, "last", None)
    merged = bench.restore([bench.snapshot(part) for part in parts]).timer_queue("t/event")
    assert merged.pop_due(100) == (1, "first", None)
    assert len(merged) == 51
    fired = [merged.pop_due(100) for _ in range(51)]
    assert merged.pop_due(100) is None
    for part in parts:
        own = [timer for timer in part.timer_queue("t/event").timers() if timer[0] == 7]
        assert [timer for timer in fired if timer in set(own)] == own


def test_lists_keep_their_order_after_a_restore(bench: Workbench, backend: Any) -> None:
    backend.get_state(LIST).add_all(["a", "b"])
    for kind in (*EVERY_KIND, CHECKPOINT):
        handle = bench.snapshot(backend, kind)
        backend = bench.restore([handle])
        backend.key = "a"
        backend.get_state(LIST).add(kind)
    found = backend.get_state(LIST).get()
    assert found == ["a", "b", *EVERY_KIND, CHECKPOINT]


def test_state_nobody_asked_for_stays(bench: Workbench, backend: Any) -> None:
    fill(backend, range(20))
    before = contents(backend)
    for kind in EVERY_KIND:
        untouched = bench.restore([bench.snapshot(backend, kind)])
        handle = bench.snapshot(untouched, kind)
        assert contents(bench.restore([handle])) == before


def test_a_backend_without_state_has_an_empty_snapshot(bench: Workbench, backend: Any) -> None:
    for kind in EVERY_KIND:
        handle = bench.snapshot(backend, kind)
        assert handle.parts == ()
        restored = bench.restore([handle])
        assert list(restored.entries("value")) == []
        restored.key = 1
        restored.get_state(VALUE).update(2)
        assert [stored for _, _, stored in restored.entries("value")] == [2]


def test_a_snapshot_that_is_not_written_leaves_nothing(bench: Workbench, backend: Any) -> None:
    fill(backend, range(20))
    for number, kind in enumerate(EVERY_KIND, 1):
        backend.snapshot(number, kind).discard()
        backend.notify_checkpoint_aborted(number)
    assert bench.store.files == {}
    before = contents(backend)
    assert contents(bench.restore([bench.snapshot(backend)])) == before


# ---- sharing ----------------------------------------------------------------------------------------


def segments(handle: KeyedStateHandle) -> set[Any]:
    return {part.data for part in handle.parts if isinstance(part.data, FileSegment)}


def shared(handle: KeyedStateHandle) -> set[Any]:
    return {segment for segment in segments(handle) if "/shared/" in segment.path}


@pytest.mark.parametrize("bench", ["hashmap", "rocksdb"], indirect=True)
def test_a_checkpoint_writes_only_what_changed_since_the_last_complete_one(bench: Workbench, backend: Any) -> None:
    fill(backend, range(2000))
    first = bench.snapshot(backend)
    everything = bench.bytes_written
    backend.notify_checkpoint_complete(bench.number)
    second = bench.snapshot(backend)
    assert bench.bytes_written < everything / 20
    assert shared(first) <= segments(second)
    backend.notify_checkpoint_complete(bench.number)
    fill(backend, range(5))
    third = bench.snapshot(backend)
    assert bench.bytes_written < everything / 10
    before = contents(backend)
    bench.store.retain([third])
    assert contents(bench.restore([third])) == before


@pytest.mark.parametrize("bench", ["hashmap", "rocksdb"], indirect=True)
def test_a_checkpoint_relies_only_on_complete_ones(bench: Workbench, backend: Any) -> None:
    fill(backend, range(100))
    aborted = bench.snapshot(backend)
    backend.notify_checkpoint_aborted(bench.number)
    unknown = bench.snapshot(backend)
    complete = bench.snapshot(backend)
    backend.notify_checkpoint_complete(bench.number)
    after = bench.snapshot(backend)
    assert not segments(aborted) & segments(after)
    assert not segments(unknown) & segments(after)
    assert not segments(aborted) & segments(unknown)
    assert shared(complete) <= segments(after)


@pytest.mark.parametrize("bench", ["hashmap", "rocksdb"], indirect=True)
def test_a_checkpoint_does_not_rely_on_what_another_under_way_may_replace(bench: Workbench, backend: Any) -> None:
    fill(backend, range(100))
    first, number = bench.snapshot(backend), bench.number
    # taken before it is known that the first is complete: it has copies of its own
    second = bench.snapshot(backend)
    backend.notify_checkpoint_complete(number)
    third = bench.snapshot(backend)
    # the second becomes complete, so that the first is no longer needed
    bench.store.retain([second, third])
    for path in {segment.path for segment in segments(first)} - {s.path for s in segments(second)}:
        bench.store.delete(path)
    assert contents(bench.restore([third])) == contents(backend)


@pytest.mark.parametrize("kind", [SnapshotKind.FULL_CHECKPOINT, SnapshotKind.NATIVE_SAVEPOINT, SAVEPOINT])
def test_full_snapshots_share_nothing_with_earlier_ones(bench: Workbench, backend: Any, kind: SnapshotKind) -> None:
    fill(backend, range(100))
    first = bench.snapshot(backend)
    backend.notify_checkpoint_complete(bench.number)
    full = bench.snapshot(backend, kind)
    assert not segments(first) & segments(full)
    if kind.is_savepoint:
        backend.notify_checkpoint_complete(bench.number)
        assert shared(full) == set()
        after = bench.snapshot(backend)
        assert not segments(full) & segments(after), "a savepoint is the user's"
    bench.store.retain([full])
    assert contents(bench.restore([full])) == contents(backend)


@pytest.mark.parametrize("bench", ["hashmap", "rocksdb"], indirect=True)
@pytest.mark.parametrize("reusable", [True, False])
def test_files_a_job_was_restored_from_are_used_again_only_if_they_are_its_own(
    bench: Workbench, backend: Any, reusable: bool
) -> None:
    fill(backend, range(500))
    handle = bench.snapshot(backend)
    restored = bench.restore([handle], reusable=reusable)
    fill(restored, range(3))
    after = bench.snapshot(restored)
    assert (shared(handle) <= segments(after)) is reusable
    assert bool(segments(handle) & segments(after)) is reusable
    assert contents(bench.restore([after])) == contents(restored)


# ---- what cannot be restored ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CHECKPOINT, SAVEPOINT])
def test_state_that_does_not_fit_is_refused_by_name(bench: Workbench, backend: Any, kind: SnapshotKind) -> None:
    backend.get_state(ValueStateDescriptor("typed", Types.INT())).update(1)
    handle = bench.snapshot(backend, kind)
    expiring = ValueStateDescriptor("typed", Types.INT())
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    for wrong in (ListStateDescriptor("typed"), ValueStateDescriptor("typed", Types.STRING()), expiring):
        restored = bench.restore([handle])
        with pytest.raises(StateIncompatibleError, match="'typed'") as caught:
            restored.get_state(wrong)
        assert caught.value.state == "typed"
        assert caught.value.hint
    restored = bench.restore([handle])
    restored.key = "a"
    assert restored.get_state(ValueStateDescriptor("typed")).value() == 1


def test_the_format_of_another_backend_is_refused(bench: Workbench, backend: Any) -> None:
    fill(backend, range(5))
    other = "rocksdb" if bench.kind != "rocksdb" else "hashmap"
    with pytest.raises(StateIncompatibleError, match="backend") as caught:
        bench.restore([bench.snapshot(backend)], kind=other)
    assert "canonical" in (caught.value.hint or "")


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_missing_or_changed_file_is_noticed(bench: Workbench, backend: Any, kind: SnapshotKind) -> None:
    fill(backend, range(500))
    handle = bench.snapshot(backend, kind)
    segment = max(segments(handle), key=lambda s: s.length)
    whole = bench.store.files[segment.path]
    for damaged in (None, whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        if damaged is None:
            del bench.store.files[segment.path]
        else:
            bench.store.files[segment.path] = damaged
        with pytest.raises(CorruptStateError) as caught:
            bench.restore([handle])
        assert caught.value.path == segment.path


@pytest.mark.parametrize("bench", ["hashmap", "rocksdb"], indirect=True)
def test_a_canonical_savepoint_is_read_by_the_other_backend(bench: Workbench, backend: Any, clock: FakeClock) -> None:
    fill(backend, range(300))
    ages: list[Any] = []
    for descriptor in DESCRIPTORS:
        aged = type(descriptor).__new__(type(descriptor))
        aged.__dict__.update(descriptor.__dict__)
        aged.name = f"aged-{descriptor.name}"
        aged.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(50)).build())
        backend.key = "a"
        put_aged(backend.get_state(aged), aged, 1)
        ages.append(aged)
    clock.advance(30)
    for aged in ages:
        put_aged(backend.get_state(aged), aged, 2)
    before, aged_before = contents(backend), [list(backend.entries(aged.name)) for aged in ages]
    handle = bench.snapshot(backend, SAVEPOINT)
    other = "rocksdb" if bench.kind == "hashmap" else "hashmap"
    for groups in ([bench.all_groups], [KeyGroupRange(0, 6), KeyGroupRange(7, 15)]):
        parts = [bench.restore([handle], own, kind=other) for own in groups]
        assert contents(*parts) == before
        assert [[e for part in parts for e in part.entries(aged.name)] for aged in ages] == aged_before
        back = bench.restore([bench.snapshot(part, SAVEPOINT) for part in parts])
        assert contents(back) == before
    clock.advance(30)
    back.key = "a"
    assert [back.get_state(aged).get() for aged in ages if aged.kind == "list"] == [[2]]


def put_aged(state: Any, descriptor: Any, value: int) -> None:
    if descriptor.kind == "value":
        state.update(value)
    elif descriptor.kind == "map":
        state.put(value, value)
    else:
        state.add(value)


# ---- values -----------------------------------------------------------------------------------------


def test_values_of_classes_that_cannot_be_imported(bench: Workbench, backend: Any) -> None:
    @dataclass
    class Local:
        x: int

    backend.get_state(VALUE).update(Local(1))
    backend.get_state(LIST).add(Local(2))
    backend.get_state(MAP).put("m", Local(3))
    for kind in (CHECKPOINT, SAVEPOINT):
        restored = bench.restore([bench.snapshot(backend, kind)])
        restored.key = "a"
        assert restored.get_state(VALUE).value() == Local(1)
        assert restored.get_state(LIST).get() == [Local(2)]
        assert dict(restored.get_state(MAP).items()) == {"m": Local(3)}


def test_timers_that_were_moved_on_do_not_pile_up(bench: Workbench, backend: Any) -> None:
    """An inactivity timeout, through snapshots: the heap has about as many entries as there are timers."""
    queue = backend.timer_queue("t/event")
    for number in range(20_000):
        queue.remove(number - 10, number % 10, None)
        queue.add(number, number % 10, None)
        if number % 5_000 == 0:
            bench.snapshot(backend)
    assert len(queue._heap) < 1100
    handle = bench.snapshot(backend)
    expected = [(number, number % 10, None) for number in range(19_990, 20_000)]
    assert bench.restore([handle]).timer_queue("t/event").timers() == expected
    assert [queue.pop_due(1 << 40) for _ in range(11)] == [*expected, None]
