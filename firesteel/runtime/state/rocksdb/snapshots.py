"""Snapshots of a RocksDB database: its own files, hard-linked and uploaded, or its contents in the canonical format."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import CANONICAL, KeyedPart, KeyedStateHandle, StateMeta
from firesteel.runtime.state.api.chunks import CanonicalWriter, is_timer_table
from firesteel.runtime.state.rocksdb.database import SST, View, files_of
from firesteel.runtime.state.rocksdb.directories import OwnedDirectory
from firesteel.runtime.state.rocksdb.keys import group_start
from firesteel.runtime.state.rocksdb.row_encoding import stored_values, timers_of

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import SnapshotFiles

__all__ = ["FORMAT", "CanonicalSnapshot", "EmptySnapshot", "NativeSnapshot", "SharedFiles"]

FORMAT = "rocksdb"
"""Of handles whose parts are the files of a database, by name."""


class SharedFiles:
    """Which files of the database are in checkpoints, so that later ones need not write them again.

    A database never uses the name of a file twice. A file of the last completed checkpoint may be used again, unless
    a later checkpoint that may be complete meanwhile has a copy of its own: then that checkpoint's completion deletes
    the older copy.
    """

    def __init__(self) -> None:
        self._confirmed: dict[str, KeyedPart] = {}
        self._pending: dict[int, tuple[frozenset[str], dict[str, KeyedPart]]] = {}

    def restored(self, parts: Sequence[KeyedPart]) -> None:
        """The database was restored from files that may be used again."""
        self._confirmed = {part.name: part for part in parts if part.name.endswith(SST)}

    def usable(self, names: Sequence[str]) -> dict[str, KeyedPart]:
        """Those of the files that a new checkpoint need not write."""
        copied: set[str] = set().union(*(own for own, _parts in self._pending.values()))
        return {name: self._confirmed[name] for name in names if name in self._confirmed and name not in copied}

    def begin(self, checkpoint_id: int, own: frozenset[str]) -> Callable[[Sequence[KeyedPart]], None]:
        """A checkpoint will write files of its own; the result is called with all its parts when it has."""
        pending: dict[str, KeyedPart] = {}
        self._pending[checkpoint_id] = (own, pending)

        def written(parts: Sequence[KeyedPart]) -> None:
            pending.update((part.name, part) for part in parts if part.name.endswith(SST))

        return written

    def complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete."""
        if checkpoint_id in self._pending:
            self._confirmed = self._pending[checkpoint_id][1]
            self._pending = {number: kept for number, kept in self._pending.items() if number > checkpoint_id}

    def abort(self, checkpoint_id: int) -> None:
        """The checkpoint will never be complete: its files are gone."""
        self._pending.pop(checkpoint_id, None)


class NativeSnapshot:
    """Links to the files of the database as they were at the barrier."""

    def __init__(
        self,
        links: Path,
        owner: OwnedDirectory,
        key_groups: KeyGroupRange,
        states: tuple[StateMeta, ...],
        usable: Mapping[str, KeyedPart],
        shared: bool,
        written: Callable[[Sequence[KeyedPart]], None],
    ):
        self._links = links
        self._owner = owner
        self._key_groups = key_groups
        self._states = states
        self._usable = usable
        self._shared = shared
        self._written = written
        owner.hold()

    def write(self, files: SnapshotFiles) -> KeyedStateHandle:
        """Uploads the files that no earlier checkpoint has."""
        try:
            names = list(files_of(self._links))
            if not any(name.endswith(SST) for name in names):
                names = []  # an empty database
            parts = tuple(self._part(name, files) for name in names)
        finally:
            self.discard()
        self._written(parts)
        return KeyedStateHandle(FORMAT, self._key_groups, parts, self._states)

    def _part(self, name: str, files: SnapshotFiles) -> KeyedPart:
        part = self._usable.get(name)
        if part is not None:
            return part
        path = self._links / name
        if name.endswith(SST):
            return KeyedPart(name, files.upload(path, shared=self._shared))
        # the manifest is the checkpoint's own: no other has the same
        return KeyedPart(name, files.write(path.read_bytes(), shared=False))

    def discard(self) -> None:
        """Deletes the links."""
        if self._links.exists():
            shutil.rmtree(self._links, ignore_errors=True)
            self._owner.release()


class EmptySnapshot:
    """The snapshot of a backend that no state or timer was ever put into."""

    def __init__(self, handle: KeyedStateHandle):
        self._handle = handle

    def write(self, files: SnapshotFiles) -> KeyedStateHandle:
        """There is nothing to write."""
        return self._handle

    def discard(self) -> None:
        """There is nothing to release."""


class CanonicalSnapshot:
    """A view of the database as it was at the barrier, to be written in the canonical format."""

    def __init__(
        self,
        views: Mapping[str, View],
        owner: OwnedDirectory,
        key_groups: KeyGroupRange,
        states: tuple[StateMeta, ...],
        alive_after: Mapping[str, int],
    ):
        """``alive_after``: for states whose expired values are left out, the last time of access that has expired."""
        self._views = dict(views)
        self._owner = owner
        self._key_groups = key_groups
        self._states = states
        self._alive_after = alive_after
        self._held = ExitStack()
        owner.hold()
        self._held.callback(owner.release)

    def write(self, files: SnapshotFiles) -> KeyedStateHandle:
        """Writes everything, in order of key groups."""
        counts = dict.fromkeys((meta.name for meta in self._states), 0)
        try:
            writer = CanonicalWriter(files)
            for group in self._key_groups:
                for meta in self._states:
                    counts[meta.name] += self._write_group(writer, group, meta)
            part = writer.finish()
        finally:
            self.discard()
        states = tuple(replace(meta, entries=counts[meta.name]) for meta in self._states)
        return KeyedStateHandle(CANONICAL, self._key_groups, () if part is None else (part,), states)

    def _write_group(self, writer: CanonicalWriter, group: int, meta: StateMeta) -> int:
        count = 0
        rows = self._views[meta.name].rows_until(group_start(group + 1))
        if is_timer_table(meta.name):
            for _group, timer, number in timers_of(rows):
                writer.add(group, meta.name, None, timer, number)
                count += 1
        else:
            for _group, namespace, key, stored in stored_values(rows, meta, self._alive_after.get(meta.name)):
                writer.add(group, meta.name, namespace, key, stored)
                count += 1
        return count

    def discard(self) -> None:
        """Releases the view."""
        self._views.clear()
        self._held.close()
