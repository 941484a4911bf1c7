"""Restores the database of a RocksDB backend from the handles of a checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import StateIncompatibleError
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import CANONICAL, FileSegment, KeyedStateHandle, StateMeta
from firesteel.runtime.state.api.chunks import is_timer_table, read_canonical
from firesteel.runtime.state.api.moved_keys import has_moved_keys
from firesteel.runtime.state.rocksdb.bulk_load import BulkLoad
from firesteel.runtime.state.rocksdb.database import SST, Database
from firesteel.runtime.state.rocksdb.keys import KeyEncoder
from firesteel.runtime.state.rocksdb.moved_rows import MovedEntries, move_rows
from firesteel.runtime.state.rocksdb.options import RocksDBOptions
from firesteel.runtime.state.rocksdb.row_encoding import Rows, RowWriter, bounds_of, timer_row
from firesteel.runtime.state.rocksdb.snapshots import FORMAT, SharedFiles

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import StateFileReader

__all__ = ["Restore", "Restored"]


@dataclass
class Restored:
    """A database with the state of one backend's key groups."""

    database: Database
    states: dict[str, StateMeta] = field(default_factory=dict)
    """By name; timer queues by the name of their table."""
    merged: bool = False
    """Whether it comes of several handles, so that numbers of timers may occur twice."""


class Restore:
    """Restores one backend."""

    def __init__(
        self,
        directory: Path,
        key_groups: KeyGroupRange,
        encoder: KeyEncoder,
        options: RocksDBOptions,
        files: StateFileReader,
    ):
        self._path = directory / "db"
        self._scratch = directory / "restore"
        self._key_groups = key_groups
        self._encoder = encoder
        self._options = options
        self._files = files
        self._sequence = 0

    def run(self, handles: Sequence[KeyedStateHandle], shared: SharedFiles, *, reusable: bool) -> Restored:
        """The restored database; ``shared`` gets those of its files that later checkpoints may use again."""
        for handle in handles:
            self._check_format(handle)
        used = [handle for handle in handles if handle.parts and self._overlap(handle)]
        native = sorted((h for h in used if h.format == FORMAT), key=self._overlap, reverse=True)
        self._scratch.mkdir(parents=True, exist_ok=True)
        try:
            database = self._open_best(native)
            try:
                self._fill(database, [*native, *(h for h in used if h.format == CANONICAL)])
                if any(has_moved_keys(handle) for handle in used if handle.format == FORMAT):
                    states = {meta.name: meta for handle in used for meta in handle.states}
                    move_rows(database, states, self._encoder, self._key_groups)
            except BaseException:
                database.close()
                raise
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)
        if reusable and len(used) == 1 and used[0].format == FORMAT and used[0].key_groups == self._key_groups:
            shared.restored(used[0].parts)
        restored = Restored(database, merged=len(used) > 1)
        for handle in handles:
            for meta in handle.states:
                restored.states.setdefault(meta.name, meta)
        return restored

    def _fill(self, database: Database, handles: Sequence[KeyedStateHandle]) -> None:
        for handle in handles:
            if handle.format == CANONICAL:
                self._load(handle, database)
            else:
                self._copy(handle, database)
        if database.sequence < self._sequence:
            database.sequence = self._sequence

    def _check_format(self, handle: KeyedStateHandle) -> None:
        if handle.format not in (FORMAT, CANONICAL):
            raise StateIncompatibleError(
                f"Keyed state in the format of the {handle.format} backend cannot be restored by the {FORMAT} backend.",
                hint="Take a savepoint in the canonical format, which every backend can restore, with the backend the "
                "state was written with.",
            )

    def _overlap(self, handle: KeyedStateHandle) -> int:
        ours, theirs = self._key_groups, handle.key_groups
        return max(0, min(ours.end, theirs.end) - max(ours.start, theirs.start) + 1)

    # -- the files of databases -------------------------------------------------------------------------

    def _open_best(self, native: list[KeyedStateHandle]) -> Database:
        """Reuses the database that has most of the required rows, if it is worth it; removes it from the list."""
        threshold = self._options.restore_overlap_threshold
        if not native or self._overlap(native[0]) < threshold * len(native[0].key_groups):
            return Database(self._path, self._options)
        best = native.pop(0)
        self._download(best, self._path)
        database = Database(self._path, self._options)
        self._sequence = database.sequence
        database.learn_classes()
        if self._overlap(best) < len(best.key_groups):
            database.clip(*bounds_of(self._key_groups))
        return database

    def _copy(self, handle: KeyedStateHandle, target: Database) -> None:
        path = self._scratch / f"{handle.key_groups.start}-{handle.key_groups.end}"
        self._download(handle, path)
        source = Database(path, self._options, read_only=True)
        try:
            self._sequence = max(self._sequence, source.sequence)
            source.learn_classes()
            for name, table in source.tables.items():
                load = self._bulk_load(target, name)
                load.add(table.scan(*bounds_of(self._key_groups)))
                load.finish()
        finally:
            source.close()
            shutil.rmtree(path, ignore_errors=True)

    def _download(self, handle: KeyedStateHandle, directory: Path) -> None:
        directory.mkdir(parents=True)
        transfers = []
        for part in handle.parts:
            # a download may be a link to a copy that others use: only of files that are never written to
            if isinstance(part.data, FileSegment) and part.name.endswith(SST):
                transfers.append((part.data, directory / part.name))
            else:
                (directory / part.name).write_bytes(self._files.read(part.data))
        self._files.download_all(transfers)

    # -- the canonical format ---------------------------------------------------------------------------

    def _load(self, handle: KeyedStateHandle, target: Database) -> None:
        metas = {meta.name: meta for meta in handle.states}
        loads: dict[str, BulkLoad] = {}
        writer = RowWriter(self._encoder, self._next_number)
        moved = MovedEntries(self._encoder, self._key_groups)
        for part in handle.parts:
            chunks = read_canonical(part, self._files, self._key_groups)
            for group, tables in _by_group(chunks):
                for name, entries in tables.items():
                    if has_moved_keys(handle):
                        entries = moved.take(name, group, entries)
                    load = loads.get(name)
                    if load is None:
                        load = loads[name] = self._bulk_load(target, name)
                    load.add(self._sorted_rows(writer, metas, name, entries))
        for load in loads.values():
            load.finish()
        moved.write(target, metas, writer)

    def _sorted_rows(
        self, writer: RowWriter, metas: dict[str, StateMeta], name: str, entries: list[tuple[Any, Any, Any]]
    ) -> Rows:
        rows: dict[bytes, bytes] = {}
        if is_timer_table(name):
            for _namespace, timers, numbers in entries:
                rows.update(timer_row(self._encoder, t, n) for t, n in zip(timers, numbers, strict=True))
        else:
            for namespace, keys, values in entries:
                rows.update(writer.rows(metas[name], namespace, keys, values))
        return sorted(rows.items())

    def _next_number(self) -> int:
        self._sequence += 1
        return self._sequence

    def _bulk_load(self, target: Database, table: str) -> BulkLoad:
        return BulkLoad(target.table(table), self._scratch, self._options)


def _by_group(chunks: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, dict[str, list[tuple[Any, Any, Any]]]]]:
    """The chunks of each key group by table: the order of rows is the order of groups, and within them not."""
    for group, of_group in groupby(chunks, key=itemgetter(0)):
        tables: dict[str, list[tuple[Any, Any, Any]]] = {}
        for _, chunk in of_group:
            tables.setdefault(chunk.table, []).append((chunk.namespace, chunk.keys, chunk.values))
        yield group, tables
