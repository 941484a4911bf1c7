"""The hashmap backend: one dictionary per state and namespace.

A table is not split by key group: that would cost every access a second lookup, while only a canonical snapshot needs
the groups. The key group of a key is computed when its state is written out so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from firesteel.api.state import StateDescriptor
from firesteel.runtime.codegen.ownership import Ownership, ownership_of_type
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import KeyedStateHandle, StateMeta
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, Clock, KeyedStateBackend, ObjectStateBackend
from firesteel.runtime.state.api.chunks import is_timer_table, timer_table
from firesteel.runtime.state.api.compatibility import check_compatible, check_kind, meta_of
from firesteel.runtime.state.api.ttl import create_ttl_state, snapshot_cleanup
from firesteel.runtime.state.hashmap import owning_states, states, tracked_states
from firesteel.runtime.state.hashmap.restore import read_tables
from firesteel.runtime.state.hashmap.snapshots import BASE, DELTA, HashMapSnapshot, Held, Snapshots
from firesteel.runtime.state.hashmap.stamped import IncrementalCleanup, cell_format, raw_kind
from firesteel.runtime.state.hashmap.state_table import Cleanup, StateTable
from firesteel.runtime.state.hashmap.timers import TrackedTimerQueue
from firesteel.runtime.time.timers import TimerQueue

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import StateFileReader

__all__ = ["HashMapKeyedStateBackend"]


class HashMapKeyedStateBackend(ObjectStateBackend):
    """Keyed state in dictionaries of this process.

    With ``incremental`` every change is tracked, and a checkpoint writes only what changed; without, nothing is
    tracked, and every snapshot pickles everything. With ``reuses_objects`` values are not copied: one that a function
    changes in place is in the state at once, but counts as changed only when it is stored again.
    """

    __slots__ = (
        "_cleanups",
        "_clock",
        "_descriptors",
        "_incremental",
        "_open_files",
        "_queues",
        "_restored",
        "_reuses_objects",
        "_snapshots",
        "_states",
        "_tables",
    )

    name: ClassVar[str] = "hashmap"  # type: ignore[misc]

    def __init__(
        self,
        key_groups: KeyGroupRange,
        max_parallelism: int,
        clock: Clock,
        *,
        incremental: bool = False,
        open_files: Callable[[], StateFileReader] | None = None,
        reuses_objects: bool = False,
    ):
        super().__init__(key_groups, max_parallelism)
        self._clock = clock
        self._incremental = incremental
        self._reuses_objects = reuses_objects
        self._open_files = open_files or _open_storage
        self._tables: dict[str, StateTable] = {}
        self._states: dict[str, Any] = {}
        self._cleanups: list[Callable[[int], None]] = []
        """Those that run with every record."""
        self._descriptors: dict[str, StateDescriptor] = {}
        self._queues: dict[str, TimerQueue] = {}
        self._restored: dict[str, StateMeta] = {}
        self._snapshots = Snapshots()

    # ---- state and timers ---------------------------------------------------------------------------

    def get_state(self, descriptor: StateDescriptor, namespace_aware: bool = False, *, internal: bool = False) -> Any:
        """The state of a descriptor; every hashmap state supports namespaces."""
        name = descriptor.get_name()
        state = self._states.get(name)
        if state is None:
            if name in self._restored:
                check_compatible(self._restored[name], descriptor)
            state = self._states[name] = self._create(descriptor, internal or self._reuses_objects)
            self._descriptors[name] = descriptor
        else:
            check_kind(self._descriptors[name], descriptor)
        return state

    def state_table(self, name: str) -> StateTable:
        """The dictionaries of a state, for an operator that works on them directly and tracks changes itself."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = StateTable(name, self._incremental)
        return table

    def replace_table(self, table: StateTable) -> None:
        """Takes the entries of a state from another table from now on."""
        self._tables[table.name] = table

    def timer_queue(self, name: str) -> TimerQueue:
        """The timers of that name, with those restored."""
        queue = self._queues.get(name)
        if queue is None:
            table = self.state_table(timer_table(name))
            queue = TrackedTimerQueue(table) if self._incremental else TimerQueue(table.namespaces[VOID_NAMESPACE])
            self._queues[name] = queue
        return queue

    def descriptors(self) -> Mapping[str, StateDescriptor]:
        """The descriptor each state was first asked for with, by name."""
        return self._descriptors

    def restored_states(self) -> Mapping[str, StateMeta]:
        """What the backend was restored with, by name; timers under the name of their table."""
        return self._restored

    def drop_state(self, name: str) -> None:
        """Drops a restored state that was not accessed."""
        self._restored.pop(name, None)
        table = self._tables.get(name)
        if table is not None:
            for namespace in list(table.namespaces):
                if namespace is not VOID_NAMESPACE:
                    table.drop(namespace)
            if table.tracked:
                table.changed(VOID_NAMESPACE).update(table.namespaces[VOID_NAMESPACE])
            table.namespaces[VOID_NAMESPACE].clear()

    def keys(self, state_name: str, namespace: Any = VOID_NAMESPACE) -> Iterator[Any]:
        """The keys that have a value in a state."""
        table = self._tables.get(state_name)
        return iter([] if table is None else list(table.namespaces.get(namespace, ())))

    def entries(self, state_name: str) -> Iterator[tuple[Any, Any, Any]]:
        """Everything a state holds as (namespace, key, stored value)."""
        table = self._tables.get(state_name)
        for namespace, entries in [] if table is None else list(table.namespaces.items()):
            for key, stored in list(entries.items()):
                yield namespace, key, stored

    def stored(self, state_name: str, key: Any) -> dict[Any, Any]:
        """What a state holds of one key, by namespace."""
        table = self._tables.get(state_name)
        namespaces = {} if table is None else table.namespaces
        return {namespace: entries[key] for namespace, entries in namespaces.items() if key in entries}

    def _create(self, descriptor: StateDescriptor, shares: bool) -> Any:
        table = self.state_table(descriptor.get_name())
        if descriptor.ttl_config is not None:
            return self._create_expiring(descriptor, table, shares)
        if shares:
            classes = tracked_states.STATES if self._incremental else states.STATES
        else:
            is_plain = ownership_of_type(descriptor.type_info) is Ownership.FIXED
            classes = owning_states.classes(is_plain, self._incremental)
        return classes[descriptor.kind](self, table, descriptor)

    def _create_expiring(self, descriptor: StateDescriptor, table: StateTable, shares: bool) -> Any:
        assert descriptor.ttl_config is not None
        classes = tracked_states.STATES if self._incremental else states.STATES
        raw = classes[raw_kind(descriptor.kind)](self, table, descriptor)
        strategy = descriptor.ttl_config.get_cleanup_strategies().get_incremental_cleanup_strategy()
        clean_up = None
        if strategy is not None:
            clean_up = IncrementalCleanup(raw, table, descriptor, strategy.get_cleanup_size()).clean_up
            if strategy.run_cleanup_for_every_record():
                self._cleanups.append(clean_up)
                self.__class__ = _CleaningBackend
        return create_ttl_state(descriptor, self._clock, raw, cell_format(shares), clean_up)

    # ---- snapshots ----------------------------------------------------------------------------------

    def snapshot(self, checkpoint_id: int, kind: SnapshotKind) -> HashMapSnapshot:
        """Pickles what changed since the last snapshot, or everything; see ``snapshots``."""
        now = self._clock()
        cleanups: dict[str, Cleanup] = {
            name: cleanup
            for name, descriptor in self._descriptors.items()
            if (cleanup := snapshot_cleanup(descriptor)) is not None
        }
        snapshot = HashMapSnapshot(
            0,
            kind,
            self.key_groups,
            self.max_parallelism,
            self._metas(),
            (),
            (),
            self._open_files,
            self.name,
            cleanups=cleanups,
            now=now,
            shares=self._incremental and not kind.is_savepoint,
        )
        if kind is SnapshotKind.SAVEPOINT and self.derived_timers is not None:
            snapshot.derived = self.derived_timers()
        everything = not self._incremental or self._snapshots.needs_everything()
        if everything and (kind.is_savepoint or not self._incremental):
            snapshot.held = (Held(0, BASE, self._pickle_all(cleanups, now)),)
            return snapshot
        if everything:
            self._snapshots.hold(BASE, self._pickle_all(cleanups, now))
        else:
            self._snapshots.hold(DELTA, [f for table in self._tables.values() for f in table.encode_changes()])
        # not before everything is pickled: if a value cannot be, the next snapshot needs the changes of all tables
        for table in self._tables.values():
            table.start_over(known=everything)
        return self._snapshots.prepare(checkpoint_id, snapshot)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The snapshot's files may be used again."""
        self._snapshots.complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The snapshot's files are deleted."""
        self._snapshots.abort(checkpoint_id)

    def restore(self, handles: Sequence[KeyedStateHandle], files: StateFileReader, *, reusable: bool) -> None:
        """Takes the state of this backend's key groups out of handles."""
        if self._states or self._queues:
            raise AssertionError("a backend must be restored before states are declared")
        for name, meta in ((meta.name, meta) for handle in handles for meta in handle.states):
            self._restored.setdefault(name, meta)
        for table in read_tables(handles, files, self.name, self.key_groups, self.max_parallelism, self._incremental):
            self._tables[table.name] = table
        if reusable and [(handle.format, handle.key_groups) for handle in handles] == [(self.name, self.key_groups)]:
            self._snapshots.start_from(handles[0].parts)

    def _pickle_all(self, cleanups: Mapping[str, Cleanup], now: int) -> tuple[bytes, ...]:
        return tuple(
            frame for table in self._tables.values() for frame in table.encode_all(cleanups.get(table.name), now)
        )

    def _metas(self) -> tuple[StateMeta, ...]:
        metas: dict[str, StateMeta] = {}
        for name, table in self._tables.items():
            if name in self._descriptors:
                metas[name] = meta_of(self._descriptors[name], table.count())
            elif is_timer_table(name):
                metas[name] = StateMeta(name, "timers", entries=table.count())
            elif name in self._restored:
                old = self._restored[name]
                metas[name] = StateMeta(name, old.kind, old.type, old.ttl, table.count())
        return tuple(metas.values())


class _CleaningBackend(HashMapKeyedStateBackend):
    """A backend some of whose states are cleaned up with every record, that is whenever a key is set."""

    __slots__ = ()

    @property
    def key(self) -> Any:
        return _KEY.__get__(self)

    @key.setter
    def key(self, key: Any) -> None:
        _KEY.__set__(self, key)
        now = self._clock()
        for clean_up in self._cleanups:
            clean_up(now)


_KEY: Any = KeyedStateBackend.__dict__["key"]


def _open_storage() -> StateFileReader:
    from firesteel.runtime.checkpoint.files import StateFileReader

    return StateFileReader()
