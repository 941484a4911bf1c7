"""Random operations, snapshots, completions, aborts, restores, rescalings and changes of the backend against a model.

Files are deleted as a coordinator does it: those of an aborted checkpoint at once, those of an older one as soon as a
later one is complete. So a snapshot that relies on what it may not rely on cannot be restored here.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

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
from firesteel.common.windows import TimeWindow
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange, key_group_of
from firesteel.runtime.model.state_handles import KeyedStateHandle
from tests.support.state.keyed_backends import Workbench
from tests.support.state.keyed_states import Collect
from tests.support.state.memory_files import MemorySnapshotFiles, paths_of

MAX = 8
KEYS = st.sampled_from(["a", "abcdefg", 1, 2.0, True, (3, "x"), b"d", -7])
WINDOW = TimeWindow(0, 5)
NAMESPACES = st.sampled_from([None, WINDOW, TimeWindow(5, 10), "w"])
NUMBERS = st.integers(0, 30)
KINDS = [SnapshotKind.CHECKPOINT] * 4 + [
    SnapshotKind.FULL_CHECKPOINT,
    SnapshotKind.SAVEPOINT,
    SnapshotKind.NATIVE_SAVEPOINT,
]


DESCRIPTORS: dict[str, Any] = {
    "value": ValueStateDescriptor("value"),
    "list": ListStateDescriptor("list"),
    "map": MapStateDescriptor("map"),
    "sum": ReducingStateDescriptor("sum", lambda a, b: a + b),
    "all": AggregatingStateDescriptor("all", Collect()),
}
Entries = dict[tuple[Any, Any], Any]


@dataclass
class Taken:
    """A snapshot, and what it should contain."""

    kind: SnapshotKind
    backend: str
    pending: Any
    states: dict[str, Entries]
    timers: dict[Any, int]
    files: MemorySnapshotFiles | None = None
    handle: KeyedStateHandle | None = None


class BackendModel(RuleBasedStateMachine):
    """One backend of all key groups; by name what its states should hold, by timer when it was registered."""

    kind = "rocksdb"

    def __init__(self) -> None:
        super().__init__()
        self.bench = Workbench(self.kind, MAX, lambda: 0)
        self.number = 0
        self.registered = 0
        self.states: dict[str, Entries] = {name: {} for name in DESCRIPTORS}
        self.timers: dict[Any, int] = {}
        self.under_way: dict[int, Taken] = {}
        self.completed: Taken | None = None
        self.savepoint: Taken | None = None

    @initialize()
    def start(self) -> None:
        self.backend: Any = self.bench.backend()
        self.ask()

    def teardown(self) -> None:
        for snapshot in self.under_way.values():
            self.give_up(snapshot)
        self.bench.close()

    def ask(self) -> None:
        self.state = {name: self.backend.get_state(d, namespace_aware=True) for name, d in DESCRIPTORS.items()}
        self.queue = self.backend.timer_queue("timers/event")

    # ---- operations ---------------------------------------------------------------------------------

    def at(self, name: str, key: Any, namespace: Any) -> tuple[Any, Entries, tuple[Any, Any]]:
        self.backend.key = key
        self.state[name].set_current_namespace(namespace)
        return self.state[name], self.states[name], (namespace, key)

    @rule(key=KEYS, namespace=NAMESPACES, value=NUMBERS)
    def update(self, key: Any, namespace: Any, value: int) -> None:
        state, entries, place = self.at("value", key, namespace)
        assert state.value() == entries.get(place)
        state.update(value)
        entries[place] = value

    @rule(key=KEYS, namespace=NAMESPACES, values=st.lists(NUMBERS, max_size=3), replace=st.booleans())
    def change_list(self, key: Any, namespace: Any, values: list[int], replace: bool) -> None:
        state, entries, place = self.at("list", key, namespace)
        if replace:
            state.update(values)
            entries[place] = list(values)
        else:
            state.add_all(values)
            entries.setdefault(place, []).extend(values)
        if not entries[place]:
            del entries[place]

    @rule(key=KEYS, namespace=NAMESPACES, field=st.sampled_from([1, "x", (1, 2), None, 2.0]), value=NUMBERS)
    def put(self, key: Any, namespace: Any, field: Any, value: int) -> None:
        state, entries, place = self.at("map", key, namespace)
        assert state.get(field) == entries.get(place, {}).get(field)
        state.put(field, value)
        entries.setdefault(place, {})[field] = value

    @rule(key=KEYS, namespace=NAMESPACES, data=st.data())
    def remove(self, key: Any, namespace: Any, data: st.DataObject) -> None:
        state, entries, place = self.at("map", key, namespace)
        if place in entries:
            field = data.draw(st.sampled_from(list(entries[place])))
            state.remove(field)
            del entries[place][field]
            if not entries[place]:
                del entries[place]
        assert state.is_empty() == (place not in entries)

    @rule(key=KEYS, namespace=NAMESPACES, value=NUMBERS)
    def add(self, key: Any, namespace: Any, value: int) -> None:
        state, entries, place = self.at("sum", key, namespace)
        state.add(value)
        entries[place] = entries.get(place, 0) + value
        state, entries, place = self.at("all", key, namespace)
        state.add(value)
        entries[place] = [*entries.get(place, []), value]

    @rule(name=st.sampled_from(sorted(DESCRIPTORS)), key=KEYS, namespace=NAMESPACES)
    def clear(self, name: str, key: Any, namespace: Any) -> None:
        state, entries, place = self.at(name, key, namespace)
        state.clear()
        entries.pop(place, None)

    @rule(key=KEYS, name=st.sampled_from(["list", "sum", "all"]), turned_to=NAMESPACES)
    def merge(self, key: Any, name: str, turned_to: Any) -> None:
        state, entries, _place = self.at(name, key, turned_to)
        target, sources = WINDOW, [TimeWindow(5, 10), "w"]
        state.merge_namespaces(target, sources)
        taken = [entries.pop((namespace, key)) for namespace in (target, *sources) if (namespace, key) in entries]
        if taken:
            entries[target, key] = sum(taken[1:], taken[0])

    @rule(key=KEYS, namespace=NAMESPACES, timestamp=st.integers(-3, 10))
    def register_timer(self, key: Any, namespace: Any, timestamp: int) -> None:
        timer = (timestamp, key, namespace)
        assert self.queue.add(*timer) == (timer not in self.timers)
        if timer not in self.timers:
            self.registered += 1
            self.timers[timer] = self.registered

    @precondition(lambda self: self.timers)
    @rule(data=st.data())
    def delete_timer(self, data: st.DataObject) -> None:
        timer = data.draw(st.sampled_from(list(self.timers)))
        self.queue.remove(*timer)
        del self.timers[timer]

    @rule(now=st.integers(-3, 10))
    def fire_timer(self, now: int) -> None:
        due = self.in_order()[:1]
        expected = due[0] if due and due[0][0] <= now else None
        assert self.queue.pop_due(now) == expected
        self.timers.pop(expected, None)

    def in_order(self) -> list[Any]:
        return sorted(self.timers, key=lambda timer: (timer[0], self.timers[timer]))

    # ---- snapshots ----------------------------------------------------------------------------------

    @rule(kind=st.sampled_from(KINDS))
    def snapshot(self, kind: SnapshotKind) -> None:
        self.number += 1
        pending = self.backend.snapshot(self.number, kind)
        self.under_way[self.number] = Taken(kind, self.kind, pending, copy.deepcopy(self.states), dict(self.timers))

    @precondition(lambda self: any(s.handle is None for s in self.under_way.values()))
    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([n for n, s in self.under_way.items() if s.handle is None]))
        snapshot = self.under_way[number]
        snapshot.files = MemorySnapshotFiles(self.bench.store)
        snapshot.handle = snapshot.pending.write(snapshot.files)

    @precondition(lambda self: any(s.handle is not None for s in self.under_way.values()))
    @rule(data=st.data(), told=st.booleans())
    def complete(self, data: st.DataObject, told: bool) -> None:
        """Completes a checkpoint; the backend may come to know of it late or never."""
        number = data.draw(st.sampled_from([n for n, s in self.under_way.items() if s.handle is not None]))
        snapshot = self.under_way.pop(number)
        if snapshot.kind.is_savepoint:
            self.savepoint = snapshot
        else:
            for earlier in [n for n, s in self.under_way.items() if n < number and not s.kind.is_savepoint]:
                self.give_up(self.under_way.pop(earlier))
            self.completed = snapshot
        self.delete_unneeded()
        if told:
            self.backend.notify_checkpoint_complete(number)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.under_way)))
        self.give_up(self.under_way.pop(number))
        self.backend.notify_checkpoint_aborted(number)

    def give_up(self, snapshot: Taken) -> None:
        if snapshot.files is None:
            snapshot.pending.discard()
        else:
            snapshot.files.discard()

    def delete_unneeded(self) -> None:
        handles = [s.handle for s in (self.completed, self.savepoint) if s is not None and s.handle is not None]
        needed = {path for handle in handles for path in paths_of(handle)}
        for snapshot in self.under_way.values():
            if snapshot.files is not None:
                needed.update(snapshot.files._written)
        for path in set(self.bench.store.files) - needed:
            self.bench.store.delete(path)

    # ---- restores -----------------------------------------------------------------------------------

    @precondition(lambda self: self.completed is not None or self.savepoint is not None)
    @rule(data=st.data(), reusable=st.booleans(), splits=st.lists(st.integers(1, MAX - 1), max_size=2, unique=True))
    def restore(self, data: st.DataObject, reusable: bool, splits: list[int]) -> None:
        snapshot = data.draw(st.sampled_from([s for s in (self.completed, self.savepoint) if s is not None]))
        assert snapshot.handle is not None
        for other in self.under_way.values():
            self.give_up(other)
        self.under_way.clear()
        self.bench.close_backends()
        is_canonical = snapshot.kind is SnapshotKind.SAVEPOINT
        self.kind = data.draw(st.sampled_from(["rocksdb", "hashmap"])) if is_canonical else snapshot.backend
        handles = self.rescaled(snapshot.handle, sorted(splits)) if splits else [snapshot.handle]
        reusable = reusable and snapshot is self.completed and not splits
        self.backend = self.bench.restore(handles, kind=self.kind, reusable=reusable)
        self.ask()
        self.states, self.timers = copy.deepcopy(snapshot.states), dict(snapshot.timers)
        if splits:
            # timers of one subtask keep their order; between subtasks there is none
            self.timers = {timer: number for number, timer in enumerate(self.queue.timers())}
            assert set(self.timers) == set(snapshot.timers)
            self.registered = max(self.registered, len(self.timers))
        if not reusable:
            # another job: the files of the old one are not its to use or to delete
            self.completed = None
            self.savepoint = snapshot

    def rescaled(self, handle: KeyedStateHandle, splits: list[int]) -> list[KeyedStateHandle]:
        handles = []
        for start, end in zip([0, *splits], [*splits, MAX], strict=True):
            groups = KeyGroupRange(start, end - 1)
            part = self.bench.restore([handle], groups, kind=self.kind)
            assert all(key_group_of(key, MAX) in groups for name in DESCRIPTORS for _, key, _ in part.entries(name))
            part.timer_queue("timers/event")
            handles.append(self.bench.snapshot(part))
        return handles

    @invariant()
    def holds_what_it_should(self) -> None:
        if not hasattr(self, "backend"):
            return
        for name, expected in self.states.items():
            assert {(ns, key): stored for ns, key, stored in self.backend.entries(name)} == expected, name
        assert self.queue.timers() == self.in_order()


class TestBackendModel(BackendModel.TestCase):  # type: ignore[name-defined, misc]
    """Runs the machine."""

    settings = settings(max_examples=40, stateful_step_count=50, suppress_health_check=list(HealthCheck), deadline=None)
