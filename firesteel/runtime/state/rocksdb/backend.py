"""The RocksDB backend: state on local disk, larger than memory.

A database per operator and subtask, a column family per state. Nothing of it is kept for its own sake: what survives
is in checkpoints, so nothing is written to a log, and the files are deleted when the backend is closed.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.api.state import StateDescriptor
from firesteel.common.errors import FiresteelError
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import CANONICAL, KeyedPart, KeyedStateHandle, StateMeta
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, Clock, KeyedSnapshot, KeyedStateBackend
from firesteel.runtime.state.api.chunks import is_timer_table, timer_table
from firesteel.runtime.state.api.compatibility import check_compatible, check_kind, meta_of
from firesteel.runtime.state.api.ttl import alive_after, create_ttl_state
from firesteel.runtime.state.rocksdb import states
from firesteel.runtime.state.rocksdb.database import SST, ColumnFamilyTable, Database, files_of
from firesteel.runtime.state.rocksdb.directories import OwnedDirectory, remove_leftovers
from firesteel.runtime.state.rocksdb.keys import KeyEncoder
from firesteel.runtime.state.rocksdb.options import RocksDBOptions
from firesteel.runtime.state.rocksdb.restore import Restore
from firesteel.runtime.state.rocksdb.row_encoding import bounds_of, keys_of, stored_values
from firesteel.runtime.state.rocksdb.snapshots import (
    FORMAT,
    CanonicalSnapshot,
    EmptySnapshot,
    NativeSnapshot,
    SharedFiles,
)
from firesteel.runtime.state.rocksdb.stamped import RAW_STATES, RowSweep
from firesteel.runtime.state.rocksdb.timers import StoredTimerQueue
from firesteel.runtime.time.timers import TimerQueue

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import StateFileReader

__all__ = ["RocksDBKeyedStateBackend"]

_RESERVED_ELEMENT_NUMBERS = 1 << 20
"""List elements are numbered beyond the number stored in the database; it is updated after that many."""


class RocksDBKeyedStateBackend(KeyedStateBackend):
    """Keyed state in a RocksDB database of this process."""

    __slots__ = (
        "_clock",
        "_descriptors",
        "_directory",
        "_incremental",
        "_merged",
        "_opened",
        "_options",
        "_promised",
        "_queues",
        "_restored",
        "_shared",
        "_states",
        "_sweeps",
        "encoder",
        "next_number",
    )

    name = FORMAT

    def __init__(
        self,
        key_groups: KeyGroupRange,
        max_parallelism: int,
        clock: Clock,
        *,
        directory: Path,
        options: RocksDBOptions | None = None,
        label: str = "state",
        incremental: bool = True,
    ):
        """Keeps its files in a directory of its own beneath ``directory``, with ``label`` in its name."""
        super().__init__(key_groups, max_parallelism)
        self._clock = clock
        self._options = options or RocksDBOptions()
        self._incremental = incremental
        remove_leftovers(directory)
        self._directory: OwnedDirectory | None = OwnedDirectory(directory, label)
        self._opened: Database | None = None
        self.encoder = KeyEncoder(max_parallelism)
        self._states: dict[str, Any] = {}
        self._sweeps: list[RowSweep] = []
        self._descriptors: dict[str, StateDescriptor] = {}
        self._queues: dict[str, StoredTimerQueue] = {}
        self._restored: dict[str, StateMeta] = {}
        self._merged = False
        self._shared = SharedFiles()
        self._promised = 0
        self.next_number: Callable[[], int] = itertools.count(1).__next__
        """Numbers the elements of lists, in the order they are added."""

    # -- state and timers -------------------------------------------------------------------------------

    def get_state(self, descriptor: StateDescriptor, namespace_aware: bool = False, *, internal: bool = False) -> Any:
        """The state of a descriptor; every state supports namespaces."""
        name = descriptor.get_name()
        state = self._states.get(name)
        if state is None:
            restored = self._restored.get(name)
            if restored is not None:
                check_compatible(restored, descriptor)
            state = self._states[name] = self._create(descriptor)
            self._descriptors[name] = descriptor
        else:
            check_kind(self._descriptors[name], descriptor)
        return state

    def _create(self, descriptor: StateDescriptor) -> Any:
        table, config = self._database.table(descriptor.get_name()), descriptor.ttl_config
        if config is None:
            return states.STATES[descriptor.kind](self, table, descriptor)
        raw = RAW_STATES[descriptor.kind](self, table, descriptor)
        clean_up = None
        if config.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy() is not None:
            sweep = RowSweep(table, config)
            self._sweeps.append(sweep)
            clean_up = sweep.clean_up
        return create_ttl_state(descriptor, self._clock, raw, raw.cell_format(), clean_up)

    def timer_queue(self, name: str) -> TimerQueue:
        """The timers of that name, with those restored."""
        queue = self._queues.get(name)
        if queue is None:
            table, opened = timer_table(name), self._opened
            stored = opened.tables.get(table) if opened is not None else None
            queue = StoredTimerQueue(lambda: self._database.table(table), stored, self.encoder, merged=self._merged)
            self._queues[name] = queue
        return queue

    def descriptors(self) -> Mapping[str, StateDescriptor]:
        """The descriptor each state was first asked for with, by name."""
        return self._descriptors

    def keys(self, state_name: str, namespace: Any = VOID_NAMESPACE) -> Iterator[Any]:
        """The keys that have a value in a state."""
        meta, table = self._meta(state_name), self._table(state_name)
        if meta is None or table is None:
            return iter(())
        return keys_of(table.scan(*bounds_of(self.key_groups)), meta, namespace)

    def entries(self, state_name: str) -> Iterator[tuple[Any, Any, Any]]:
        """Everything a state holds as (namespace, key, stored value)."""
        meta, table = self._meta(state_name), self._table(state_name)
        if meta is None or table is None:
            return iter(())
        rows = table.scan(*bounds_of(self.key_groups))
        return ((namespace, key, stored) for _group, namespace, key, stored in stored_values(rows, meta))

    def stored(self, state_name: str, key: Any) -> dict[Any, Any]:
        """What a state holds of one key, by namespace."""
        meta, table = self._meta(state_name), self._table(state_name)
        if meta is None or table is None:
            return {}
        # not with the encoder of the states, which remembers the key it was last asked for
        prefix = KeyEncoder(self.max_parallelism).prefix_of(key)
        end = (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
        rows = stored_values(table.scan(prefix, end), meta)
        return {namespace: stored for _group, namespace, _key, stored in rows}

    # -- snapshots --------------------------------------------------------------------------------------

    def snapshot(self, checkpoint_id: int, kind: SnapshotKind) -> KeyedSnapshot:
        """Writes what is in memory to files and links them; a canonical savepoint only needs a view of the database."""
        self._settle()
        is_canonical = kind is SnapshotKind.SAVEPOINT
        if self._opened is None or self._directory is None:
            used = CANONICAL if is_canonical else FORMAT
            return EmptySnapshot(KeyedStateHandle(used, self.key_groups, (), tuple(self._metas())))
        if is_canonical:
            return self._canonical(self._opened, self._directory)
        shared = self._incremental and not kind.is_savepoint
        links = self._directory.path / f"chk-{checkpoint_id}-{uuid.uuid4().hex[:8]}"
        self._opened.checkpoint(links)
        names = [name for name in files_of(links) if name.endswith(SST)]
        # a full checkpoint uses nothing of earlier ones, but later ones may use what it writes
        usable = self._shared.usable(names) if shared and kind.may_share else {}
        own = frozenset(name for name in names if name not in usable)
        written = self._shared.begin(checkpoint_id, own) if shared else _ignore
        return NativeSnapshot(links, self._directory, self.key_groups, tuple(self._metas()), usable, shared, written)

    def _settle(self) -> None:
        """Brings the database up to date with what is kept beside it."""
        for queue in self._queues.values():
            queue.store()
        for sweep in self._sweeps:
            sweep.sweep(self._clock())
        if self._opened is not None:
            self._opened.store_classes()
        if any(descriptor.kind == "list" for descriptor in self._descriptors.values()):
            used = self.next_number()
            if used > self._promised:
                promised = used + _RESERVED_ELEMENT_NUMBERS
                self._database.sequence = promised
                self._promised = promised

    def _canonical(self, database: Database, directory: OwnedDirectory) -> CanonicalSnapshot:
        now, alive = self._clock(), {}
        for name, descriptor in self._descriptors.items():
            config = descriptor.ttl_config
            if config is not None and config.get_cleanup_strategies().in_full_snapshot():
                alive[name] = alive_after(config, now)
        metas = tuple(meta for meta in self._metas() if meta.name in database.tables)
        start, _end = bounds_of(self.key_groups)
        views = {meta.name: database.tables[meta.name].view(start) for meta in metas}
        return CanonicalSnapshot(views, directory, self.key_groups, metas, alive)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The files of that snapshot may be used again."""
        self._shared.complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The files of that snapshot are deleted."""
        self._shared.abort(checkpoint_id)

    # -- life -------------------------------------------------------------------------------------------

    def restore(self, handles: Sequence[KeyedStateHandle], files: StateFileReader, *, reusable: bool) -> None:
        """Takes the state of this backend's key groups out of handles."""
        if self._opened is not None or self._directory is None or self._queues:
            raise AssertionError("a backend must be restored before states are declared")
        restore = Restore(self._directory.path, self.key_groups, self.encoder, self._options, files)
        restored = restore.run(handles, self._shared, reusable=reusable)
        self._opened = restored.database
        self._restored = restored.states
        self._merged = restored.merged
        self._promised = restored.database.sequence
        self.next_number = itertools.count(self._promised + 1).__next__

    def close(self) -> None:
        """Closes the database and deletes its files, once no snapshot needs them."""
        directory, self._directory = self._directory, None
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        if directory is not None:
            directory.release()

    @property
    def _database(self) -> Database:
        if self._opened is None:
            if self._directory is None:
                raise FiresteelError("The state backend is closed.")
            self._opened = Database(self._directory.path / "db", self._options)
        return self._opened

    # -- metadata of states ------------------------------------------------------------------------

    def _table(self, state_name: str) -> ColumnFamilyTable | None:
        return None if self._opened is None else self._opened.tables.get(state_name)

    def _meta(self, state_name: str) -> StateMeta | None:
        descriptor = self._descriptors.get(state_name)
        return self._restored.get(state_name) if descriptor is None else meta_of(descriptor)

    def _metas(self) -> Iterator[StateMeta]:
        for name in {**self._restored, **self._descriptors}:
            meta, table = self._meta(name), self._table(name)
            if meta is not None and not is_timer_table(name):
                yield replace(meta, entries=0 if table is None else table.estimated_rows())
        restored = {name: meta.entries for name, meta in self._restored.items() if is_timer_table(name)}
        for name, entries in {**restored, **{timer_table(n): len(q) for n, q in self._queues.items()}}.items():
            yield StateMeta(name, "timers", entries=entries)


def _ignore(_parts: Sequence[KeyedPart]) -> None: ...
