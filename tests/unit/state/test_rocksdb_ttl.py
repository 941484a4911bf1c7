"""Time-to-live in the RocksDB backend: what expires when, what may still be seen, and when it is cleaned up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from firesteel.common.time import Time
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.state.rocksdb.stamped import SWEEP_ROWS
from firesteel.testing import FakeClock
from tests.support.state.keyed_backends import Workbench
from tests.support.state.keyed_states import Collect

TTL = 10
KINDS = ["value", "list", "map", "reducing", "aggregating"]
UpdateType, Visibility = StateTtlConfig.UpdateType, StateTtlConfig.StateVisibility
Make = Callable[..., "ExpiringState"]

every_kind = pytest.mark.parametrize("kind", KINDS)


def ttl(
    update: UpdateType = UpdateType.OnCreateAndWrite,
    visibility: Visibility = Visibility.NeverReturnExpired,
    *,
    background: bool = False,
    snapshots: bool = False,
) -> StateTtlConfig:
    builder = StateTtlConfig.new_builder(Time.milliseconds(TTL))
    builder.set_update_type(update).set_state_visibility(visibility)
    if not background:
        builder.disable_cleanup_in_background()
    if snapshots:
        builder.cleanup_full_snapshot()
    return builder.build()


def descriptor_of(kind: str, config: StateTtlConfig) -> Any:
    made: Any = {
        "value": lambda: ValueStateDescriptor("s"),
        "list": lambda: ListStateDescriptor("s"),
        "map": lambda: MapStateDescriptor("s"),
        "reducing": lambda: ReducingStateDescriptor("s", lambda a, b: a + b),
        "aggregating": lambda: AggregatingStateDescriptor("s", Collect()),
    }[kind]()
    made.enable_time_to_live(config)
    return made


class ExpiringState:
    """A state of one kind, and how to write to it and read it whatever its kind."""

    def __init__(self, bench: Workbench, kind: str, config: StateTtlConfig, backend: Any = None):
        self.bench = bench
        self.clock: Any = bench.clock
        self.kind = kind
        self.backend: Any = backend or bench.backend()
        self.backend.key = "a"
        self.config = config
        self.state = self.backend.get_state(descriptor_of(kind, config))

    def write(self, value: int) -> None:
        if self.kind == "value":
            self.state.update(value)
        elif self.kind == "map":
            self.state.put("m", value)
        else:
            self.state.add(value)

    def read(self) -> Any:
        if self.kind == "value":
            return self.state.value()
        if self.kind == "map":
            return self.state.get("m")
        found = self.state.get()
        return next(iter(found), None) if self.kind == "list" else found

    def stored_keys(self) -> list[Any]:
        return list(self.backend.keys("s"))

    def restored(self, kind: SnapshotKind) -> ExpiringState:
        backend = self.bench.restore([self.bench.snapshot(self.backend, kind)])
        return ExpiringState(self.bench, self.kind, self.config, backend)


@pytest.fixture
def make() -> Iterator[Make]:
    bench = Workbench("rocksdb", 8, FakeClock(1000))
    yield lambda kind, config: ExpiringState(bench, kind, config)
    bench.close()


@every_kind
def test_a_value_lives_for_the_ttl_after_it_was_written(make: Make, kind: str) -> None:
    it = make(kind, ttl())
    it.write(1)
    it.clock.advance(TTL - 1)
    assert it.read() == 1
    it.clock.advance(1)
    assert it.read() is None
    assert it.stored_keys() == [], "what was found expired is removed"


@every_kind
def test_writing_again_prolongs_the_life(make: Make, kind: str) -> None:
    it = make(kind, ttl())
    it.write(1)
    it.clock.advance(TTL - 1)
    if kind == "list":
        it.state.update([2])
    else:
        it.write(2)
    it.clock.advance(TTL - 1)
    assert it.read() == (3 if kind in ("reducing", "aggregating") else 2)
    it.clock.advance(1)
    assert it.read() is None


@every_kind
@pytest.mark.parametrize("update", [UpdateType.OnCreateAndWrite, UpdateType.OnReadAndWrite])
def test_reading_prolongs_the_life_only_if_so_configured(make: Make, kind: str, update: UpdateType) -> None:
    it = make(kind, ttl(update))
    it.write(1)
    for _ in range(3):
        it.clock.advance(TTL - 1)
        alive = it.read()
    assert alive == (1 if update is UpdateType.OnReadAndWrite else None)


@every_kind
def test_an_expired_value_may_be_seen_until_it_is_cleaned_up(make: Make, kind: str) -> None:
    it = make(kind, ttl(visibility=Visibility.ReturnExpiredIfNotCleanedUp))
    it.write(1)
    it.clock.advance(TTL * 5)
    assert it.read() == 1
    assert it.read() is None, "the first read has removed it"


@every_kind
def test_an_expired_value_is_not_built_upon(make: Make, kind: str) -> None:
    it = make(kind, ttl())
    it.write(1)
    it.clock.advance(TTL)
    it.write(5)
    assert it.read() == 5


@every_kind
def test_clear_removes_at_once(make: Make, kind: str) -> None:
    it = make(kind, ttl())
    it.write(1)
    it.state.clear()
    assert it.read() is None
    assert it.stored_keys() == []


def test_list_elements_expire_one_by_one(make: Make) -> None:
    it = make("list", ttl())
    it.state.add(1)
    it.clock.advance(4)
    it.state.add_all([2, 3])
    it.clock.advance(6)
    assert list(it.state.get()) == [2, 3]
    it.state.add(4)
    it.clock.advance(4)
    assert list(it.state) == [4]
    it.state.update([5, 6])
    it.clock.advance(TTL - 1)
    assert list(it.state.get()) == [5, 6]
    with pytest.raises(ValueError, match="None"):
        it.state.add(None)


def test_map_entries_expire_one_by_one(make: Make) -> None:
    it = make("map", ttl())
    it.state.put("x", 1)
    it.clock.advance(6)
    it.state.put_all({"y": 2, "z": None, True: "true"})
    it.clock.advance(4)
    assert not it.state.contains("x")
    assert dict(it.state.items()) == {"y": 2, "z": None, True: "true"}
    assert {type(key) for key in it.state.keys()} == {str, bool}  # noqa: SIM118 - a state is no dict
    assert sorted(map(str, it.state.values())) == ["2", "None", "true"]
    it.state.remove("z")
    assert not it.state.is_empty()
    it.clock.advance(6)
    assert it.state.is_empty()
    assert it.stored_keys() == []


def test_looking_for_a_map_entry_is_a_read(make: Make) -> None:
    it = make("map", ttl(UpdateType.OnReadAndWrite))
    it.state.put_all({"looked for": 1, "forgotten": 2})
    for _ in range(3):
        it.clock.advance(TTL - 1)
        assert it.state.contains("looked for")
    assert dict(it.state.items()) == {"looked for": 1}


@pytest.mark.parametrize("kind", ["reducing", "aggregating"])
def test_expired_values_are_not_merged(make: Make, kind: str) -> None:
    it = make(kind, ttl())
    state = it.state
    state.set_current_namespace("old")
    state.add(100)
    it.clock.advance(TTL)
    for namespace, value in (("w1", 1), ("w2", 2)):
        state.set_current_namespace(namespace)
        state.add(value)
    state.merge_namespaces("target", ["old", "w1", "w2"])
    state.set_current_namespace("target")
    assert state.get() == 3


@pytest.mark.parametrize("key", ["plain", 2.0])
def test_list_elements_keep_their_ages_when_merged(make: Make, key: Any) -> None:
    it = make("list", ttl())
    it.backend.key = key
    state = it.state
    state.set_current_namespace("w1")
    state.add(1)
    it.clock.advance(5)
    state.set_current_namespace("w2")
    state.add(2)
    state.merge_namespaces("w2", ["w1"])
    it.clock.advance(5)
    assert list(state.get()) == [2]


@every_kind
def test_a_read_that_prolongs_the_life_keeps_the_type_of_the_key(make: Make, kind: str) -> None:
    it = make(kind, ttl(UpdateType.OnReadAndWrite))
    it.backend.key = 2.0
    it.write(1)
    it.clock.advance(TTL - 1)
    assert it.read() == 1
    (key,) = it.restored(SnapshotKind.SAVEPOINT).stored_keys()
    assert (key, type(key)) == (2.0, float)


@every_kind
@pytest.mark.parametrize("snapshot", list(SnapshotKind))
def test_ages_survive_a_snapshot(make: Make, kind: str, snapshot: SnapshotKind) -> None:
    it = make(kind, ttl())
    it.write(1)
    it.clock.advance(TTL - 1)
    restored = it.restored(snapshot)
    assert restored.read() == 1
    it.clock.advance(1)
    assert restored.read() is None


@every_kind
@pytest.mark.parametrize("cleaned", [True, False])
def test_a_canonical_savepoint_leaves_out_what_expired_if_so_configured(make: Make, kind: str, cleaned: bool) -> None:
    it = make(kind, ttl(visibility=Visibility.ReturnExpiredIfNotCleanedUp, snapshots=cleaned))
    it.write(1)
    it.clock.advance(TTL)
    it.backend.key = "young"
    it.write(2)
    restored = it.restored(SnapshotKind.SAVEPOINT)
    assert sorted(restored.stored_keys()) == (["young"] if cleaned else ["a", "young"])


@every_kind
def test_use_of_a_state_cleans_up_its_other_keys(make: Make, kind: str) -> None:
    it = make(kind, ttl(background=True))
    for key in range(SWEEP_ROWS + 100):
        it.backend.key = key
        it.write(1)
    it.clock.advance(TTL)
    it.backend.key = "young"
    it.write(1)
    for _ in range(3 * SWEEP_ROWS):
        assert it.read() == 1
    assert it.stored_keys() == ["young"]


def test_snapshots_clean_up_a_state_that_nobody_uses(make: Make) -> None:
    it = make("value", ttl(background=True))
    it.write(1)
    it.clock.advance(TTL)
    it.bench.snapshot(it.backend)
    assert it.stored_keys() == []


def test_no_cleanup_in_the_background_if_it_is_disabled(make: Make) -> None:
    it = make("value", ttl())
    it.write(1)
    it.clock.advance(TTL)
    it.backend.key = "other"
    for _ in range(2 * SWEEP_ROWS):
        it.read()
    it.bench.snapshot(it.backend)
    assert it.stored_keys() == ["a"]
