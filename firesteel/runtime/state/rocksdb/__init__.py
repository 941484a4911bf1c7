"""Keyed state in RocksDB, on the slot's local disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

from firesteel.config.configuration import Configuration
from firesteel.config.rocksdb_options import ROCKSDB_LOCAL_DIRECTORY
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.api.backend import Clock
from firesteel.runtime.state.rocksdb.backend import RocksDBKeyedStateBackend
from firesteel.runtime.state.rocksdb.options import RocksDBOptions

__all__ = ["RocksDBKeyedStateBackend", "RocksDBOptions", "create_rocksdb_backend"]


def create_rocksdb_backend(
    configuration: Configuration,
    key_groups: KeyGroupRange,
    max_parallelism: int,
    clock: Clock,
    *,
    operator_id: str,
    subtask: int,
    working_directory: Path | None = None,
    incremental: bool = True,
) -> RocksDBKeyedStateBackend:
    """The backend of one operator in one subtask, as configured."""
    configured = configuration.get(ROCKSDB_LOCAL_DIRECTORY)
    directory = Path(configured) if configured else working_directory or Path(tempfile.gettempdir())
    return RocksDBKeyedStateBackend(
        key_groups,
        max_parallelism,
        clock,
        directory=directory,
        options=RocksDBOptions.from_configuration(configuration),
        label=f"{operator_id[:16]}-{subtask}",
        incremental=incremental,
    )
