"""Random operations, snapshots, aborts, completions and restores of the hashmap backend against plain dictionaries.

Files are deleted as the coordinator would: those of aborted checkpoints at once, those of subsumed ones as soon as a
later one is complete. A snapshot that relied on a file it may not rely on fails here.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from firesteel.api.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.common.errors import CorruptStateError
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange, key_group_of
from firesteel.runtime.model.state_handles import KeyedStateHandle
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend, snapshots
from tests.support.state.memory_files import MemorySnapshotFiles, MemoryStateFileReader, MemoryStore, paths_of

MAX = 8
ALL = KeyGroupRange(0, MAX - 1)
KEYS = st.sampled_from(["a", "b", "c", 1, 2, (3, "x"), "d", "e"])
NAMESPACES = st.sampled_from([None, "w1", "w2", ("w", 3)])
NUMBERS = st.integers(0, 100)


class Collect:
    """An aggregate whose accumulator is changed in place."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[int]) -> int:
        return sum(accumulator)

    def merge(self, a: list[int], b: list[int]) -> list[int]:
        return a + b


DESCRIPTORS: dict[str, Any] = {
    "value": ValueStateDescriptor("value"),
    "list": ListStateDescriptor("list"),
    "map": MapStateDescriptor("map"),
    "sum": ReducingStateDescriptor("sum", lambda a, b: a + b),
    "all": AggregatingStateDescriptor("all", Collect()),
}
Model = dict[str, dict[Any, dict[Any, Any]]]


def contents_of(backend: HashMapKeyedStateBackend) -> Model:
    found: Model = {name: {} for name in DESCRIPTORS}
    for name in DESCRIPTORS:
        for namespace, key, stored in backend.entries(name):
            found[name].setdefault(namespace, {})[key] = stored
    return found


def without_empty(model: Model) -> Model:
    return {name: {ns: table for ns, table in tables.items() if table} for name, tables in model.items()}


@dataclass
class UnderWay:
    """A snapshot whose end is open."""

    kind: SnapshotKind
    pending: Any
    contents: Model
    timers: list[Any]
    files: MemorySnapshotFiles | None = None
    handle: KeyedStateHandle | None = None
    may_fail: bool = False
    """Something was asked for meanwhile that shares nothing, so that what a savepoint reads is deleted."""


class LifecycleOfSnapshots(RuleBasedStateMachine):
    """The backend of all key groups; what it should hold is ``model``. Hardly anything but snapshots happens."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.number = 0
        self.model: Model = {name: {} for name in DESCRIPTORS}
        self.timers: list[Any] = []
        self.under_way: dict[int, UnderWay] = {}
        self.completed: UnderWay | None = None
        self.savepoints: list[UnderWay] = []

    @initialize(incremental=st.sampled_from([True, True, True, False]))
    def start(self, incremental: bool) -> None:
        self.incremental = incremental
        self.open(ALL)

    def open(self, groups: KeyGroupRange) -> None:
        self.backend = self.new_backend(groups)
        self.ask()

    def new_backend(self, groups: KeyGroupRange) -> HashMapKeyedStateBackend:
        return HashMapKeyedStateBackend(
            groups,
            MAX,
            lambda: 0,
            incremental=self.incremental,
            open_files=lambda: MemoryStateFileReader(self.store),  # type: ignore[arg-type, return-value]
        )

    def ask(self) -> None:
        self.states = {name: self.backend.get_state(d, namespace_aware=True) for name, d in DESCRIPTORS.items()}
        self.queue = self.backend.timer_queue("timers/event")

    def at(self, name: str, key: Any, namespace: Any) -> dict[Any, Any]:
        self.backend.key = key
        self.states[name].set_current_namespace(namespace)
        return self.model[name].setdefault(namespace, {})

    # ---- snapshots ----------------------------------------------------------------------------------

    @rule(
        kind=st.sampled_from(
            [SnapshotKind.CHECKPOINT] * 4
            + [SnapshotKind.FULL_CHECKPOINT, SnapshotKind.SAVEPOINT, SnapshotKind.NATIVE_SAVEPOINT]
        ),
        key=KEYS,
        value=NUMBERS,
    )
    def snapshot(self, kind: SnapshotKind, key: Any, value: int) -> None:
        self.at("list", key, None).setdefault(key, []).append(value)
        self.states["list"].add(value)
        self.number += 1
        pending = self.backend.snapshot(self.number, kind)
        if kind is SnapshotKind.FULL_CHECKPOINT:
            for other in self.under_way.values():
                other.may_fail = other.kind.is_savepoint
        self.under_way[self.number] = UnderWay(kind, pending, copy.deepcopy(self.model), list(self.timers))

    @rule(key=KEYS, value=NUMBERS, times=st.integers(1, 4))
    def take_checkpoints(self, key: Any, value: int, times: int) -> None:
        for _ in range(times):
            self.snapshot(SnapshotKind.CHECKPOINT, key, value)
            self.write_one(self.under_way[self.number])
            self.complete_number(self.number)

    @rule(key=KEYS, steps=st.lists(st.sampled_from("sswwcca"), min_size=4, max_size=20))
    def overlap_checkpoints(self, key: Any, steps: list[str]) -> None:
        for value, step in enumerate(steps):
            if step == "s" and len(self.under_way) < 5:
                self.snapshot(SnapshotKind.CHECKPOINT, key, value)
            elif step == "w" and self.unwritten():
                self.write_one(self.unwritten()[0])
            elif step == "c" and (written := [n for n, s in self.under_way.items() if s.handle is not None]):
                self.complete_number(written[0])
            elif step == "a" and self.under_way:
                self.abort_number(next(iter(self.under_way)))

    @precondition(lambda self: self.unwritten())
    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        self.write_one(data.draw(st.sampled_from(self.unwritten())))

    def write_one(self, snapshot: UnderWay) -> None:
        snapshot.files = MemorySnapshotFiles(self.store, inline_threshold=40)
        try:
            snapshot.handle = snapshot.pending.write(snapshot.files)
        except CorruptStateError:
            assert snapshot.may_fail
            self.abort_number(next(number for number, other in self.under_way.items() if other is snapshot))

    def unwritten(self) -> list[UnderWay]:
        return [snapshot for snapshot in self.under_way.values() if snapshot.handle is None]

    @precondition(lambda self: any(s.handle for s in self.under_way.values()))
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        self.complete_number(data.draw(st.sampled_from([n for n, s in self.under_way.items() if s.handle is not None])))

    def complete_number(self, number: int) -> None:
        snapshot = self.under_way.pop(number)
        if snapshot.kind.is_savepoint:
            self.savepoints.append(snapshot)
        else:
            for earlier in [n for n, s in self.under_way.items() if n < number and not s.kind.is_savepoint]:
                self.give_up(self.under_way.pop(earlier))
            self.completed = snapshot
            self.delete_unneeded()
            assert snapshot.handle is not None
            assert paths_of(snapshot.handle) <= set(self.store.files), "the checkpoint relies on files that are gone"
            self.check(snapshot, [snapshot.handle])
        self.backend.notify_checkpoint_complete(number)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        self.abort_number(data.draw(st.sampled_from(sorted(self.under_way))))

    def abort_number(self, number: int) -> None:
        self.give_up(self.under_way.pop(number))
        self.backend.notify_checkpoint_aborted(number)

    def give_up(self, snapshot: UnderWay) -> None:
        if snapshot.files is None:
            snapshot.pending.discard()
        else:
            snapshot.files.discard()

    def delete_unneeded(self) -> None:
        # what snapshots under way have written themselves is theirs until they end
        mine = [s.files for s in self.under_way.values() if s.files is not None]
        kept = {path for files in mine for path in files._written}
        needed = [s.handle for s in self.savepoints if s.handle is not None]
        if self.completed is not None and self.completed.handle is not None:
            needed.append(self.completed.handle)
        doomed = set(self.store.files)
        self_store = dict(self.store.files)
        self.store.retain(needed)
        for path in kept & doomed:
            self.store.files[path] = self_store[path]

    def check(self, snapshot: UnderWay, handles: Sequence[KeyedStateHandle]) -> None:
        backend = self.new_backend(ALL)
        backend.restore(handles, MemoryStateFileReader(self.store), reusable=False)  # type: ignore[arg-type]
        assert contents_of(backend) == without_empty(snapshot.contents)
        assert set(backend.timer_queue("timers/event").timers()) == set(snapshot.timers)

    # ---- restores -----------------------------------------------------------------------------------

    @precondition(lambda self: self.completed is not None or self.savepoints)
    @rule(data=st.data(), incremental=st.booleans(), reusable=st.booleans(), split=st.integers(1, MAX - 1))
    def restore(self, data: st.DataObject, incremental: bool, reusable: bool, split: int) -> None:
        sources = [*self.savepoints, *([] if self.completed is None else [self.completed])]
        snapshot = data.draw(st.sampled_from(sources))
        assert snapshot.handle is not None
        for other in self.under_way.values():
            self.give_up(other)
        self.under_way.clear()
        self.incremental = incremental
        reusable = reusable and snapshot is self.completed
        rescale = data.draw(st.booleans(), label="rescale")
        handle = self.rescaled(snapshot, split) if rescale else (snapshot.handle,)
        self.backend = self.new_backend(ALL)
        self.backend.restore(handle, MemoryStateFileReader(self.store), reusable=reusable)  # type: ignore[arg-type]
        self.ask()
        self.model, self.timers = copy.deepcopy(snapshot.contents), list(snapshot.timers)
        if len(handle) > 1:
            ranked = {timer: number for number, timer in enumerate(self.queue.timers())}
            self.timers.sort(key=ranked.__getitem__)
        if not reusable:
            self.completed = None
            self.savepoints = [s for s in self.savepoints if s is snapshot]

    def rescaled(self, snapshot: UnderWay, split: int) -> tuple[KeyedStateHandle, ...]:
        """The snapshot as two subtasks write it after a restore, with a change more between two checkpoints."""
        handles = []
        for groups in (KeyGroupRange(0, split - 1), KeyGroupRange(split, MAX - 1)):
            part = self.new_backend(groups)
            assert snapshot.handle is not None
            part.restore([snapshot.handle], MemoryStateFileReader(self.store), reusable=False)  # type: ignore[arg-type]
            assert all(key_group_of(key, MAX) in groups for name in DESCRIPTORS for _, key, _ in part.entries(name))
            part.timer_queue("timers/event")
            files = MemorySnapshotFiles(self.store)
            handles.append(part.snapshot(1, SnapshotKind.CHECKPOINT).write(files))  # type: ignore[arg-type]
        return tuple(handles)

    @invariant()
    def holds_what_it_should(self) -> None:
        if not hasattr(self, "backend"):
            return
        assert contents_of(self.backend) == without_empty(self.model)
        expected = sorted(self.timers, key=lambda timer: timer[0])
        assert self.queue.timers() == expected


class OperationsAndSnapshots(LifecycleOfSnapshots):
    """Everything that can happen to state and timers between snapshots."""

    @rule(key=KEYS, namespace=NAMESPACES, value=NUMBERS)
    def update_value(self, key: Any, namespace: Any, value: int) -> None:
        self.at("value", key, namespace)[key] = value
        self.states["value"].update(value)

    @rule(key=KEYS, namespace=NAMESPACES, value=NUMBERS)
    def add_to_list(self, key: Any, namespace: Any, value: int) -> None:
        self.at("list", key, namespace).setdefault(key, []).append(value)
        self.states["list"].add(value)

    @rule(key=KEYS, namespace=NAMESPACES, values=st.lists(NUMBERS, max_size=3))
    def update_list(self, key: Any, namespace: Any, values: list[int]) -> None:
        table = self.at("list", key, namespace)
        table.pop(key, None)
        if values:
            table[key] = list(values)
        self.states["list"].update(values)

    @rule(key=KEYS, namespace=NAMESPACES, field=NUMBERS, value=NUMBERS)
    def put(self, key: Any, namespace: Any, field: int, value: int) -> None:
        self.at("map", key, namespace).setdefault(key, {})[field] = value
        self.states["map"].put(field, value)

    @rule(key=KEYS, namespace=NAMESPACES, fields=st.dictionaries(NUMBERS, NUMBERS, min_size=1, max_size=3))
    def put_all(self, key: Any, namespace: Any, fields: dict[int, int]) -> None:
        self.at("map", key, namespace).setdefault(key, {}).update(fields)
        self.states["map"].put_all(fields)

    @rule(key=KEYS, namespace=NAMESPACES, data=st.data())
    def remove(self, key: Any, namespace: Any, data: st.DataObject) -> None:
        table = self.at("map", key, namespace)
        if table.get(key):
            field = data.draw(st.sampled_from(sorted(table[key])))
            del table[key][field]
            if not table[key]:
                del table[key]
            self.states["map"].remove(field)

    @rule(key=KEYS, namespace=NAMESPACES, value=NUMBERS)
    def reduce(self, key: Any, namespace: Any, value: int) -> None:
        table = self.at("sum", key, namespace)
        table[key] = table.get(key, 0) + value
        self.states["sum"].add(value)

    @rule(key=KEYS, namespace=NAMESPACES, value=NUMBERS)
    def aggregate(self, key: Any, namespace: Any, value: int) -> None:
        self.at("all", key, namespace).setdefault(key, []).append(value)
        self.states["all"].add(value)

    @rule(name=st.sampled_from(sorted(DESCRIPTORS)), key=KEYS, namespace=NAMESPACES)
    def clear(self, name: str, key: Any, namespace: Any) -> None:
        self.at(name, key, namespace).pop(key, None)
        self.states[name].clear()

    @rule(name=st.sampled_from(sorted(DESCRIPTORS)), namespace=NAMESPACES)
    def clear_namespace(self, name: str, namespace: Any) -> None:
        for key in list(self.model[name].get(namespace, ())):
            self.clear(name, key, namespace)
        self.states[name].set_current_namespace(None)

    @rule(key=KEYS, name=st.sampled_from(["list", "sum", "all"]), data=st.data())
    def merge_namespaces(self, key: Any, name: str, data: st.DataObject) -> None:
        target, *sources = data.draw(st.permutations(["w1", "w2", ("w", 3)]))
        self.backend.key = key
        tables = self.model[name]
        taken = [tables[ns].pop(key) for ns in (target, *sources) if key in tables.get(ns, {})]
        if taken:
            tables.setdefault(target, {})[key] = sum(taken[1:], taken[0])
        self.states[name].merge_namespaces(target, sources)

    @rule(key=KEYS, namespace=NAMESPACES, timestamp=st.integers(0, 20))
    def register_timer(self, key: Any, namespace: Any, timestamp: int) -> None:
        timer = (timestamp, key, namespace)
        if self.queue.add(*timer):
            assert timer not in self.timers
            self.timers.append(timer)

    @precondition(lambda self: self.timers)
    @rule(data=st.data())
    def delete_timer(self, data: st.DataObject) -> None:
        timer = data.draw(st.sampled_from(self.timers))
        self.queue.remove(*timer)
        self.timers.remove(timer)

    @rule(now=st.integers(0, 20))
    def fire_timer(self, now: int) -> None:
        due = min((timer for timer in self.timers if timer[0] <= now), key=lambda timer: timer[0], default=None)
        assert self.queue.pop_due(now) == due
        if due is not None:
            self.timers.remove(due)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_MAX_DELTAS", 2)
    monkeypatch.setattr(snapshots, "_MIN_BASE", 200)
    monkeypatch.setattr(snapshots, "_MAX_HELD", 4)


_settings = settings(suppress_health_check=list(HealthCheck), deadline=None)


class TestLifecycleOfSnapshots(LifecycleOfSnapshots.TestCase):  # type: ignore[name-defined, misc]
    """Runs the machine."""

    settings = settings(_settings, max_examples=150, stateful_step_count=25)


class TestOperationsAndSnapshots(OperationsAndSnapshots.TestCase):  # type: ignore[name-defined, misc]
    """Runs the machine."""

    settings = settings(_settings, max_examples=100, stateful_step_count=60)
