"""Time-to-live: what expires when, what may still be seen, and when it is cleaned up."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from firesteel.common.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.common.time import Time
from firesteel.datastream.functions import AggregateFunction
from firesteel.runtime.key_groups import KeyGroupRange
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.testing import FakeClock

TTL = 10
UpdateType, Visibility = StateTtlConfig.UpdateType, StateTtlConfig.StateVisibility


class Sum(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        return [*accumulator, value]

    def get_result(self, accumulator: list[int]) -> int:
        return sum(accumulator)

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


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

    def __init__(self, kind: str, config: StateTtlConfig):
        self.clock = FakeClock(1000)
        self.backend = HashMapKeyedStateBackend(KeyGroupRange(0, 7), 8, self.clock)
        self.backend.key = "a"
        self.kind = kind
        descriptor: Any = {
            "value": lambda: ValueStateDescriptor("s"),
            "list": lambda: ListStateDescriptor("s"),
            "map": lambda: MapStateDescriptor("s"),
            "reducing": lambda: ReducingStateDescriptor("s", lambda a, b: a + b),
            "aggregating": lambda: AggregatingStateDescriptor("s", Sum()),
        }[kind]()
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
    (stored,) = bench.backend.snapshot_key_group(_group(bench, "a"))["s"][None].values()
    assert [element for element, _ in stored] == [2]


def test_no_cleanup_in_the_background_if_it_is_disabled() -> None:
    bench = Bench("value", ttl())
    bench.write(1)
    bench.clock.advance(TTL)
    bench.backend.key = "other"
    for _ in range(10):
        bench.read()
    assert bench.stored_keys() == ["a"]


@every_kind
def test_ages_survive_a_snapshot(kind: str) -> None:
    bench = Bench(kind, ttl())
    bench.write(1)
    bench.clock.advance(TTL - 1)
    contents = {group: bench.backend.snapshot_key_group(group) for group in range(8)}
    restored = Bench(kind, ttl())
    restored.clock.advance(TTL - 1)
    for group, part in contents.items():
        restored.backend.restore_key_group(group, part)
    assert restored.read() == 1
    restored.clock.advance(1)
    assert restored.read() is None


def _group(bench: Bench, key: Any) -> int:
    from firesteel.runtime.key_groups import key_group_of

    return key_group_of(key, bench.backend.max_parallelism)
