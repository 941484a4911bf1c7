"""Keyed state backends over a store in memory, for tests that every backend must pass."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import KeyedStateHandle
from firesteel.runtime.state import registry
from firesteel.runtime.state.api.backend import Clock, KeyedStateBackend, KeyedStateBackendParameters
from firesteel.runtime.state.rocksdb import RocksDBKeyedStateBackend, RocksDBOptions
from tests.support.state.memory_files import MemorySnapshotFiles, MemoryStateFileReader, MemoryStore

BACKENDS = (*registry.BACKENDS, "hashmap-full")
SMALL = RocksDBOptions(total_memory=16 << 20)


class Workbench:
    """Makes backends whose snapshots go to one store, and closes them."""

    def __init__(self, kind: str, max_parallelism: int, clock: Clock):
        self.kind = kind
        self.max_parallelism = max_parallelism
        self.clock = clock
        self.store = MemoryStore()
        self.number = 0
        self.bytes_written = 0
        self._open: list[KeyedStateBackend] = []
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    @property
    def all_groups(self) -> KeyGroupRange:
        return KeyGroupRange(0, self.max_parallelism - 1)

    @property
    def directory(self) -> Path:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="tests-rocksdb-")
        return Path(self._directory.name)

    def backend(self, groups: KeyGroupRange | None = None, *, kind: str | None = None) -> KeyedStateBackend:
        groups, kind = groups or self.all_groups, kind or self.kind
        made: KeyedStateBackend
        if kind == "rocksdb":
            made = RocksDBKeyedStateBackend(
                groups, self.max_parallelism, self.clock, directory=self.directory, options=SMALL
            )
        else:
            parameters = KeyedStateBackendParameters(
                groups,
                self.max_parallelism,
                self.clock,
                working_directory=Path(tempfile.gettempdir()),
                open_files=lambda: MemoryStateFileReader(self.store),  # type: ignore[arg-type, return-value]
                incremental=kind != "hashmap-full",
            )
            made = registry.BACKENDS[kind.removesuffix("-full")].create(Configuration(), parameters)
        self._open.append(made)
        return made

    def write(self, pending: Any) -> KeyedStateHandle:
        files = MemorySnapshotFiles(self.store)
        handle: KeyedStateHandle = pending.write(files)
        self.bytes_written = files.bytes_written
        return handle

    def snapshot(self, backend: KeyedStateBackend, kind: SnapshotKind = SnapshotKind.CHECKPOINT) -> KeyedStateHandle:
        self.number += 1
        return self.write(backend.snapshot(self.number, kind))

    def restore(
        self,
        handles: Sequence[KeyedStateHandle],
        groups: KeyGroupRange | None = None,
        *,
        kind: str | None = None,
        reusable: bool = False,
    ) -> KeyedStateBackend:
        backend = self.backend(groups, kind=kind)
        reader: Any = MemoryStateFileReader(self.store)
        backend.restore(handles, reader, reusable=reusable)
        return backend

    def close_backends(self) -> None:
        for backend in self._open:
            backend.close()
        self._open.clear()

    def close(self) -> None:
        self.close_backends()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None
