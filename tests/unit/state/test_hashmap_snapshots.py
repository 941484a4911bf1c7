"""What incremental snapshots of the hashmap backend write, hold and rely on."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from firesteel.api.state import ListStateDescriptor, ValueStateDescriptor
from firesteel.common.errors import CheckpointError, CorruptStateError, InvalidProgramError
from firesteel.config.configuration import Configuration
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import KeyedStateHandle
from firesteel.runtime.state.factory import create_keyed_backend
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend, snapshots
from firesteel.runtime.time.timers import InternalTimerService
from firesteel.testing.clock import FakeClock
from tests.support.state.memory_files import MemorySnapshotFiles, MemoryStateFileReader, MemoryStore, paths_of

ALL = KeyGroupRange(0, 127)
CHECKPOINT = SnapshotKind.CHECKPOINT
VALUE = ValueStateDescriptor("value")


class Slot:
    """A backend with one value per key, and a store for its snapshots."""

    def __init__(self, incremental: bool = True, keys: int = 0):
        self.store = MemoryStore()
        self.reader: Any = MemoryStateFileReader(self.store)
        self.backend = HashMapKeyedStateBackend(
            ALL, 128, lambda: 0, incremental=incremental, open_files=lambda: self.reader
        )
        self.state = self.backend.get_state(VALUE)
        self.number = 0
        self.written = 0
        self.update(range(keys), 0)

    def update(self, keys: Any, value: int) -> None:
        for key in keys:
            self.backend.key = key
            self.state.update(value)

    def take(self, kind: SnapshotKind = CHECKPOINT, complete: bool = True) -> KeyedStateHandle:
        self.number += 1
        files: Any = MemorySnapshotFiles(self.store)
        handle = self.backend.snapshot(self.number, kind).write(files)
        self.written = files.bytes_written
        if complete:
            self.store.retain([handle])
            self.backend.notify_checkpoint_complete(self.number)
        return handle

    def read(self, handle: KeyedStateHandle) -> dict[Any, Any]:
        restored = HashMapKeyedStateBackend(ALL, 128, lambda: 0)
        restored.restore([handle], self.reader, reusable=False)
        return {key: value for _, key, value in restored.entries("value")}


def test_with_few_hot_keys_a_checkpoint_writes_little_for_ever() -> None:
    slot = Slot(keys=20_000)
    slot.take()
    whole = slot.written
    amounts = []
    for number in range(1, 101):
        slot.update(range(200), number)
        handle = slot.take()
        amounts.append(slot.written)
        assert len(handle.parts) <= 22
    assert max(amounts) < whole / 10
    assert sum(amounts) / len(amounts) < 2 * amounts[0]
    found = slot.read(handle)
    assert len(found) == 20_000
    assert all(value == (100 if key < 200 else 0) for key, value in found.items())


def test_with_changes_everywhere_files_do_not_outgrow_the_state() -> None:
    slot = Slot(keys=50_000)
    whole = slot.take().size
    for number in range(1, 12):
        slot.update(range(number % 2, 50_000, 2), number)
        handle = slot.take()
        assert handle.size < 2.5 * whole
    found = slot.read(handle)
    assert found == {key: 10 if key % 2 == 0 else 11 for key in range(50_000)}


def test_keys_that_went_are_gone_and_take_no_room() -> None:
    slot = Slot(keys=30_000)
    whole = slot.take().size
    slot.update(range(29_000), None)  # type: ignore[arg-type]
    slot.take()
    slot.take(SnapshotKind.FULL_CHECKPOINT)
    handle = slot.take()
    assert slot.read(handle) == dict.fromkeys(range(29_000, 30_000), 0)
    assert handle.size < whole / 10


def test_without_tracking_every_checkpoint_is_whole_and_shares_nothing() -> None:
    slot = Slot(incremental=False, keys=1000)
    first, second = slot.take(complete=False), slot.take(complete=False)
    assert len(first.parts) == len(second.parts) == 1
    assert not paths_of(first) & paths_of(second)
    assert all("exclusive" in path for path in paths_of(first) | paths_of(second))


@pytest.mark.parametrize("incremental", [True, False])
@pytest.mark.parametrize("kind", list(SnapshotKind))
def test_values_are_as_they_were_at_the_barrier(incremental: bool, kind: SnapshotKind) -> None:
    slot = Slot(incremental=incremental)
    elements = slot.backend.get_state(ListStateDescriptor("elements"))
    slot.backend.key = "a"
    elements.add(1)
    slot.take()
    elements.add(2)
    pending = slot.backend.snapshot(2, kind)
    elements.add(3)
    handle = pending.write(MemorySnapshotFiles(slot.store))  # type: ignore[arg-type]
    restored = HashMapKeyedStateBackend(ALL, 128, lambda: 0)
    restored.restore([handle], slot.reader, reusable=False)
    assert list(restored.entries("elements")) == [(None, "a", [1, 2])]


def test_what_is_held_is_bounded_while_no_checkpoint_completes() -> None:
    slot = Slot(keys=20_000)
    slot.take()
    held = []
    for number in range(1, 100):
        slot.update(range(5_000), number)
        handle = slot.take(complete=False)
        slot.backend.notify_checkpoint_aborted(slot.number)
        held.append(sum(item.length for item in slot.backend._snapshots._held))
    assert max(held) < 4 * handle.size
    assert slot.read(handle) == {key: 99 if key < 5_000 else 0 for key in range(20_000)}


def test_when_a_file_is_lost_the_next_checkpoint_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_MAX_DELTAS", 1)
    slot = Slot(keys=1000)
    slot.take()
    slot.update(range(500), 1)
    slot.take()
    slot.update(range(500), 2)
    slot.store.files.clear()
    with pytest.raises(CorruptStateError):
        slot.take()
    slot.backend.notify_checkpoint_aborted(slot.number)
    handle = slot.take()
    assert slot.read(handle) == {key: 2 if key < 500 else 0 for key in range(1000)}


def test_when_a_value_cannot_be_pickled_the_next_checkpoint_has_the_changes_of_all_states() -> None:
    """The checkpoint fails, the job may go on: what other states had pickled for it is in no file."""
    slot = Slot(keys=3)
    slot.state.set_current_namespace("window")
    slot.update([7], 1)
    slot.state.set_current_namespace(None)
    timers = slot.backend.timer_queue("timers/event")
    timers.add(5, 0, None)
    other = slot.backend.get_state(ValueStateDescriptor("other"))
    slot.take()
    slot.update([0], 1)
    slot.update([1], None)  # type: ignore[arg-type]
    slot.state.set_current_namespace("window")
    slot.update([7], None)  # type: ignore[arg-type]
    slot.state.set_current_namespace(None)
    timers.remove(5, 0, None)
    timers.add(6, 0, None)
    other.update(threading.Lock())
    with pytest.raises(CheckpointError, match="'other'"):
        slot.take()
    slot.backend.notify_checkpoint_aborted(slot.number)
    other.clear()
    timers.add(7, 0, None)
    handle = slot.take()
    restored = HashMapKeyedStateBackend(ALL, 128, lambda: 0)
    restored.restore([handle], slot.reader, reusable=False)
    assert sorted((key, value) for _, key, value in restored.entries("value")) == [(0, 1), (2, 0)]
    assert restored.timer_queue("timers/event").timers() == [(6, 0, None), (7, 0, None)]


def test_a_restored_chain_goes_on() -> None:
    slot = Slot(keys=5_000)
    handle = slot.take()
    whole = slot.written
    again = HashMapKeyedStateBackend(ALL, 128, lambda: 0, incremental=True, open_files=lambda: slot.reader)
    again.restore([handle], slot.reader, reusable=True)
    slot.backend, slot.state = again, again.get_state(VALUE)
    slot.update([1, 2, 3], 7)
    handle = slot.take()
    assert slot.written < whole / 100
    assert slot.read(handle) == {key: 7 if key in (1, 2, 3) else 0 for key in range(5_000)}


def test_a_savepoint_costs_the_job_only_what_changed() -> None:
    slot = Slot(keys=5_000)
    slot.take()
    slot.update([1], 5)
    pending = slot.backend.snapshot(2, SnapshotKind.SAVEPOINT)
    assert sum(held.length for held in pending.held) < 200
    handle = pending.write(MemorySnapshotFiles(slot.store))  # type: ignore[arg-type]
    assert slot.read(handle) == {key: 5 if key == 1 else 0 for key in range(5_000)}
    assert handle.states[0].entries == 5_000


@pytest.mark.parametrize("kind", [CHECKPOINT, SnapshotKind.SAVEPOINT])
@pytest.mark.parametrize("incremental", [True, False])
def test_restored_timers_fire(kind: SnapshotKind, incremental: bool) -> None:
    class Fired:
        def __init__(self) -> None:
            self.timers: list[Any] = []

        def on_event_time(self, *timer: Any) -> None:
            self.timers.append(("event", *timer))

        def on_processing_time(self, *timer: Any) -> None:
            self.timers.append(("processing", *timer))

    clock, slot = FakeClock(100), Slot(incremental=incremental)
    service = InternalTimerService(slot.backend, Fired(), clock, clock.schedule, name="user-timers")
    for key in "cab":
        slot.backend.key = key
        service.register_event_time_timer(None, 50)
        service.register_processing_time_timer("w", 150)
    service.register_event_time_timer(None, 40)
    handle = slot.take(kind)

    fired, later = Fired(), FakeClock(200)
    backend = HashMapKeyedStateBackend(ALL, 128, later, incremental=incremental)
    backend.restore([handle], slot.reader, reusable=False)
    restored = InternalTimerService(backend, fired, later, later.schedule, name="user-timers")
    later.advance(0)
    assert fired.timers == [("processing", 150, key, "w") for key in "cab"], "their time passed while the job was down"
    fired.timers.clear()
    restored.advance_watermark(60)
    assert fired.timers == [("event", 40, "b", None), *(("event", 50, key, None) for key in "cab")]
    backend.key = "a"
    restored.register_event_time_timer(None, 70)
    assert restored.event.timers() == [(70, "a", None)]


def test_the_factory_makes_what_is_configured() -> None:
    def make(**settings: str) -> Any:
        configuration = Configuration()
        for key, value in settings.items():
            configuration.set_string(key.replace("_", "."), value)
        return create_keyed_backend(configuration, ALL, 128, lambda: 0, operator_id="a" * 32, subtask=0)

    assert not make()._incremental
    assert make(**{"execution.checkpointing.interval": "1 s"})._incremental
    off = {"execution.checkpointing.interval": "1 s", "execution.checkpointing.incremental": "false"}
    assert not make(**off)._incremental
    with pytest.raises(InvalidProgramError, match="'postgres'") as raised:
        make(**{"state.backend.type": "postgres"})
    assert raised.value.hint is not None
    assert "hashmap, rocksdb" in raised.value.hint
