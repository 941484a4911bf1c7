"""Time-to-live: what expires when, what may still be seen, and when it is cleaned up."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from firesteel.api.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.common.errors import StateIncompatibleError
from firesteel.common.time import Duration, Time
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import KeyedStateHandle
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.testing import FakeClock
from tests.support.state.keyed_states import Collect
from tests.support.state.memory_files import MemorySnapshotFiles, MemoryStateFileReader, MemoryStore

TTL = 10
UpdateType, Visibility = StateTtlConfig.UpdateType, StateTtlConfig.StateVisibility


def ttl(
    update: UpdateType = UpdateType.OnCreateAndWrite,
    visibility: Visibility = Visibility.NeverReturnExpired,
    cleanup: int | None = None,
) -> StateTtlConfig:
    builder = StateTtlConfig.new_builder(Time.milliseconds(TTL))
    builder.set_update_type(update).set_state_visibility(visibility)
    if cleanup is None:
        builder.disable_cleanup_in_background()
    else:
        builder.cleanup_incrementally(cleanup, False)
    return builder.build()


class Bench:
    """A state of one kind with a clock, and how to write to it and read it whatever its kind."""

    def __init__(
        self,
        kind: str,
        config: StateTtlConfig | None,
        *,
        incremental: bool = False,
        at: int = 1000,
        handle: KeyedStateHandle | None = None,
        of: Bench | None = None,
    ):
        self.clock = FakeClock(at)
        self.config = config
        self.incremental = incremental
        self.store = MemoryStore() if of is None else of.store
        reader: Any = MemoryStateFileReader(self.store)
        self.backend = HashMapKeyedStateBackend(
            KeyGroupRange(0, 7), 8, self.clock, incremental=incremental, open_files=lambda: reader
        )
        if handle is not None:
            self.backend.restore([handle], reader, reusable=False)
        self.backend.key = "a"
        self.kind = kind
        descriptor: Any = {
            "value": lambda: ValueStateDescriptor("s"),
            "list": lambda: ListStateDescriptor("s"),
            "map": lambda: MapStateDescriptor("s"),
            "reducing": lambda: ReducingStateDescriptor("s", lambda a, b: a + b),
            "aggregating": lambda: AggregatingStateDescriptor("s", Collect()),
        }[kind]()
        if config is not None:
            descriptor.enable_time_to_live(config)
        self.state = self.backend.get_state(descriptor)

    def write(self, value: int) -> None:
        {
            "value": lambda: self.state.update(value),
            "list": lambda: self.state.add(value),
            "map": lambda: self.state.put("m", value),
            "reducing": lambda: self.state.add(value),
            "aggregating": lambda: self.state.add(value),
        }[self.kind]()

    def read(self) -> Any:
        """The one value written, None if there is none."""
        if self.kind == "value":
            return self.state.value()
        if self.kind == "map":
            return self.state.get("m")
        found = self.state.get()
        if self.kind == "list":
            assert len(list(found)) <= 1
            return next(iter(found), None)
        return found

    def stored_keys(self) -> list[Any]:
        return list(self.backend.keys("s"))


KINDS = ["value", "list", "map", "reducing", "aggregating"]
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_a_value_lives_for_the_ttl_after_it_was_written(kind: str) -> None:
    bench = Bench(kind, ttl())
    bench.write(1)
    bench.clock.advance(TTL - 1)
    assert bench.read() == 1
    bench.clock.advance(1)
    assert bench.read() is None
    assert bench.stored_keys() == [], "what was found expired is removed"


@every_kind
def test_writing_again_prolongs_the_life(kind: str) -> None:
    bench = Bench(kind, ttl())
    bench.write(1)
    bench.clock.advance(TTL - 1)
    if kind == "list":
        bench.state.update([2])
    else:
        bench.write(2)
    bench.clock.advance(TTL - 1)
    assert bench.read() == (3 if kind in ("reducing", "aggregating") else 2)
    bench.clock.advance(1)
    assert bench.read() is None


@every_kind
@pytest.mark.parametrize("update", [UpdateType.OnCreateAndWrite, UpdateType.OnReadAndWrite])
def test_reading_prolongs_the_life_only_if_so_configured(kind: str, update: UpdateType) -> None:
    bench = Bench(kind, ttl(update))
    bench.write(1)
    for _ in range(3):
        bench.clock.advance(TTL - 1)
        alive = bench.read()
    assert alive == (1 if update is UpdateType.OnReadAndWrite else None)


@every_kind
def test_an_expired_value_may_be_seen_until_it_is_cleaned_up(kind: str) -> None:
    bench = Bench(kind, ttl(visibility=Visibility.ReturnExpiredIfNotCleanedUp))
    bench.write(1)
    bench.clock.advance(TTL * 5)
    assert bench.read() == 1
    assert bench.read() is None, "the first read has removed it"


@every_kind
def test_an_expired_value_is_not_built_upon(kind: str) -> None:
    bench = Bench(kind, ttl())
    bench.write(1)
    bench.clock.advance(TTL)
    bench.write(5)
    assert bench.read() == 5


@every_kind
def test_clear_removes_at_once(kind: str) -> None:
    bench = Bench(kind, ttl())
    bench.write(1)
    bench.state.clear()
    assert bench.read() is None
    assert bench.stored_keys() == []


@every_kind
def test_keys_have_lives_of_their_own(kind: str) -> None:
    bench = Bench(kind, ttl())
    bench.write(1)
    bench.clock.advance(TTL - 1)
    bench.backend.key = "b"
    bench.write(2)
    bench.clock.advance(1)
    assert bench.read() == 2
    bench.backend.key = "a"
    assert bench.read() is None


def test_list_elements_expire_one_by_one() -> None:
    bench = Bench("list", ttl())
    bench.state.add(1)
    bench.clock.advance(4)
    bench.state.add_all([2, 3])
    bench.clock.advance(6)
    assert list(bench.state.get()) == [2, 3]
    bench.state.add(4)
    bench.clock.advance(4)
    assert list(bench.state) == [4]
    bench.state.update([5, 6])
    bench.clock.advance(TTL - 1)
    assert list(bench.state.get()) == [5, 6]
    with pytest.raises(ValueError, match="None"):
        bench.state.add(None)


def test_a_list_that_is_refused_changes_nothing() -> None:
    bench = Bench("list", ttl())
    bench.state.update(iter([1, 2]))
    with pytest.raises(ValueError, match="None"):
        bench.state.update([3, None])
    with pytest.raises(ValueError, match="None"):
        bench.state.add_all([4, None])
    assert list(bench.state.get()) == [1, 2]


def test_expired_list_elements_may_be_seen_once() -> None:
    bench = Bench("list", ttl(visibility=Visibility.ReturnExpiredIfNotCleanedUp))
    bench.state.add(1)
    bench.clock.advance(TTL)
    bench.state.add(2)
    assert list(bench.state.get()) == [1, 2]
    assert list(bench.state.get()) == [2]


def test_map_entries_expire_one_by_one() -> None:
    bench = Bench("map", ttl())
    bench.state.put("x", 1)
    bench.clock.advance(4)
    bench.state.put_all({"y": 2, "z": None})
    bench.clock.advance(6)
    assert bench.state.get("x") is None
    assert not bench.state.contains("x")
    assert bench.state.contains("z")
    assert dict(bench.state.items()) == {"y": 2, "z": None}
    assert (list(bench.state.keys()), list(bench.state.values())) == (["y", "z"], [2, None])
    bench.state.remove("z")
    assert not bench.state.is_empty()
    bench.clock.advance(4)
    assert bench.state.is_empty()
    assert bench.stored_keys() == []


def test_looking_for_a_map_entry_is_a_read() -> None:
    bench = Bench("map", ttl(UpdateType.OnReadAndWrite))
    bench.state.put_all({"looked for": 1, "forgotten": 2})
    for _ in range(3):
        bench.clock.advance(TTL - 1)
        assert bench.state.contains("looked for")
    assert dict(bench.state.items()) == {"looked for": 1}
    shown = Bench("map", ttl(visibility=Visibility.ReturnExpiredIfNotCleanedUp))
    shown.state.put("x", 1)
    shown.clock.advance(TTL)
    assert shown.state.contains("x")
    assert not shown.state.contains("x")


@pytest.mark.parametrize("kind", ["reducing", "aggregating"])
def test_expired_values_are_not_merged(kind: str) -> None:
    bench = Bench(kind, ttl())
    state = bench.state
    state.set_current_namespace("old")
    state.add(100)
    bench.clock.advance(TTL)
    for namespace, value in (("w1", 1), ("w2", 2)):
        state.set_current_namespace(namespace)
        state.add(value)
    state.merge_namespaces("target", ["old", "w1", "w2"])
    state.set_current_namespace("target")
    assert state.get() == 3


def test_list_elements_keep_their_ages_when_merged() -> None:
    bench = Bench("list", ttl())
    state = bench.state
    state.set_current_namespace("w1")
    state.add(1)
    bench.clock.advance(5)
    state.set_current_namespace("w2")
    state.add(2)
    state.merge_namespaces("w2", ["w1"])
    bench.clock.advance(5)
    assert list(state.get()) == [2]


@every_kind
def test_each_access_cleans_up_some_other_keys(kind: str) -> None:
    bench = Bench(kind, ttl(cleanup=3))
    for key in range(30):
        bench.backend.key = key
        bench.write(1)
    bench.clock.advance(TTL)
    bench.backend.key = "young"
    bench.write(1)
    sizes = []
    for _ in range(24):
        assert bench.read() == 1
        sizes.append(len(bench.stored_keys()))
    assert bench.stored_keys() == ["young"]
    steps = [before - after for before, after in itertools.pairwise(sizes)]
    assert max(steps) <= 3, "never more than so many at once"


def test_cleaning_up_keeps_what_is_alive() -> None:
    bench = Bench("list", ttl(cleanup=10))
    bench.state.add(1)
    bench.clock.advance(TTL - 1)
    bench.state.add(2)
    bench.clock.advance(1)
    bench.backend.key = "other"
    for _ in range(4):
        bench.state.get()
    ((_, _, stored),) = bench.backend.entries("s")
    assert [element for element, _ in stored] == [2]


def test_no_cleanup_in_the_background_if_it_is_disabled() -> None:
    bench = Bench("value", ttl())
    bench.write(1)
    bench.clock.advance(TTL)
    bench.backend.key = "other"
    for _ in range(10):
        bench.read()
    assert bench.stored_keys() == ["a"]


def snapshot_of(bench: Bench, kind: SnapshotKind, number: int = 1) -> KeyedStateHandle:
    return bench.backend.snapshot(number, kind).write(MemorySnapshotFiles(bench.store))  # type: ignore[arg-type]


def restored_from(bench: Bench, handle: KeyedStateHandle) -> Bench:
    """A new backend at the same time."""
    return Bench(bench.kind, bench.config, incremental=bench.incremental, at=bench.clock.now, handle=handle, of=bench)


every_snapshot = pytest.mark.parametrize("snapshot", list(SnapshotKind))


@every_kind
@every_snapshot
@pytest.mark.parametrize("incremental", [True, False])
def test_ages_survive_a_snapshot(kind: str, snapshot: SnapshotKind, incremental: bool) -> None:
    bench = Bench(kind, ttl(), incremental=incremental)
    bench.write(1)
    bench.clock.advance(TTL - 1)
    restored = restored_from(bench, snapshot_of(bench, snapshot))
    assert restored.read() == 1
    restored.clock.advance(1)
    assert restored.read() is None


@every_kind
@pytest.mark.parametrize("touch", [True, False])
def test_an_access_that_prolongs_a_life_is_in_the_next_delta(kind: str, touch: bool) -> None:
    bench = Bench(kind, ttl(UpdateType.OnReadAndWrite if touch else UpdateType.OnCreateAndWrite), incremental=True)
    bench.write(1)
    snapshot_of(bench, SnapshotKind.CHECKPOINT)
    bench.backend.notify_checkpoint_complete(1)
    bench.clock.advance(TTL - 1)
    assert bench.read() == 1
    restored = restored_from(bench, snapshot_of(bench, SnapshotKind.CHECKPOINT, 2))
    restored.clock.advance(TTL - 1)
    assert restored.read() == (1 if touch else None)


@every_kind
def test_a_value_found_expired_is_gone_in_the_next_delta(kind: str) -> None:
    bench = Bench(kind, ttl(), incremental=True)
    bench.write(1)
    snapshot_of(bench, SnapshotKind.CHECKPOINT)
    bench.backend.notify_checkpoint_complete(1)
    bench.clock.advance(TTL)
    assert bench.read() is None
    restored = restored_from(bench, snapshot_of(bench, SnapshotKind.CHECKPOINT, 2))
    assert restored.stored_keys() == []


def half_expired(bench: Bench) -> None:
    """One key that expires and one that does not; of lists and maps also half of the second."""
    bench.write(1)
    bench.backend.key = "b"
    bench.write(1)
    bench.clock.advance(TTL - 1)
    if bench.kind == "map":
        bench.state.put("n", 2)
    else:
        bench.write(2)
    bench.clock.advance(1)


@every_kind
@every_snapshot
@pytest.mark.parametrize("incremental", [True, False])
def test_full_snapshots_leave_expired_values_out_if_told_to(
    kind: str, snapshot: SnapshotKind, incremental: bool
) -> None:
    config = (
        StateTtlConfig.new_builder(Time.milliseconds(TTL)).cleanup_full_snapshot().disable_cleanup_in_background()
    ).build()
    bench = Bench(kind, config, incremental=incremental)
    if incremental:  # everything but the first checkpoint is merged from a base and deltas
        snapshot_of(bench, SnapshotKind.CHECKPOINT, 1)
        bench.backend.notify_checkpoint_complete(1)
    half_expired(bench)
    restored = restored_from(bench, snapshot_of(bench, snapshot, 2))
    is_delta = incremental and snapshot is SnapshotKind.CHECKPOINT
    assert set(restored.stored_keys()) == ({"a", "b"} if is_delta else {"b"})
    assert len(bench.stored_keys()) == 2, "the state itself stays as it is"
    if kind in ("list", "map") and not is_delta:
        ((_, _, stored),) = restored.backend.entries("s")
        assert len(stored) == 1


@every_kind
def test_full_snapshots_keep_expired_values_if_not_told_otherwise(kind: str) -> None:
    bench = Bench(kind, ttl())
    half_expired(bench)
    restored = restored_from(bench, snapshot_of(bench, SnapshotKind.SAVEPOINT))
    assert set(restored.stored_keys()) == {"a", "b"}


@every_kind
@pytest.mark.parametrize("every_record", [True, False])
def test_cleanup_with_every_record_needs_no_access(kind: str, every_record: bool) -> None:
    builder = StateTtlConfig.new_builder(Time.milliseconds(TTL)).cleanup_incrementally(2, every_record)
    bench = Bench(kind, builder.build(), incremental=True)
    bench.write(1)
    bench.clock.advance(TTL)
    for key in range(4):
        bench.backend.key = key
        assert bench.backend.key == key
    assert bench.stored_keys() == ([] if every_record else ["a"])


def test_cleanup_reaches_every_namespace() -> None:
    bench = Bench("value", ttl(cleanup=5), incremental=True)
    for window in range(5):
        bench.state.set_current_namespace(window)
        bench.state.update(window)
    bench.clock.advance(TTL)
    bench.state.set_current_namespace(None)
    for _ in range(4):
        bench.state.value()
    assert list(bench.backend.entries("s")) == []


@pytest.mark.parametrize("was", [True, False])
def test_ttl_cannot_be_switched_on_or_off(was: bool) -> None:
    bench = Bench("value", ttl() if was else None)
    bench.write(1)
    handle = snapshot_of(bench, SnapshotKind.SAVEPOINT)
    with pytest.raises(StateIncompatibleError, match=r"State 's' .* time-to-live") as raised:
        Bench("value", None if was else ttl(), handle=handle, of=bench)
    assert raised.value.state == "s"


def test_the_length_of_a_life_may_change() -> None:
    bench = Bench("value", ttl())
    bench.write(1)
    bench.clock.advance(TTL)
    handle = snapshot_of(bench, SnapshotKind.SAVEPOINT)
    longer = StateTtlConfig.new_builder(Time.milliseconds(2 * TTL)).build()
    restored = Bench("value", longer, at=bench.clock.now, handle=handle, of=bench)
    assert restored.read() == 1


def test_the_compaction_filter_of_rocksdb_is_configured() -> None:
    builder = StateTtlConfig.new_builder(Time.milliseconds(TTL))
    default = builder.build().get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy()
    assert default is not None
    assert default.get_query_time_after_num_entries() == 1000
    assert default.get_periodic_compaction_time() == Duration.of_days(30)
    chosen = builder.cleanup_in_rocksdb_compact_filter(5, Duration.of_hours(1)).build()
    strategy = chosen.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy()
    assert strategy is not None
    assert strategy.get_query_time_after_num_entries() == 5
    assert strategy.get_periodic_compaction_time() == Duration.of_hours(1)
    disabled = StateTtlConfig.new_builder(Time.milliseconds(TTL)).disable_cleanup_in_background().build()
    assert disabled.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy() is None
