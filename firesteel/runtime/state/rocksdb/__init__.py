"""Keyed state in RocksDB, on the slot's local disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

from firesteel.config.configuration import Configuration
from firesteel.config.rocksdb_options import ROCKSDB_LOCAL_DIRECTORY
from firesteel.runtime.state.api.backend import KeyedStateBackendParameters
from firesteel.runtime.state.rocksdb.backend import RocksDBKeyedStateBackend
from firesteel.runtime.state.rocksdb.options import RocksDBOptions

__all__ = ["RocksDBKeyedStateBackend", "RocksDBOptions", "create_backend"]


def create_backend(configuration: Configuration, parameters: KeyedStateBackendParameters) -> RocksDBKeyedStateBackend:
    """The backend of one operator in one subtask, as configured."""
    configured = configuration.get(ROCKSDB_LOCAL_DIRECTORY)
    directory = Path(configured) if configured else parameters.working_directory or Path(tempfile.gettempdir())
    return RocksDBKeyedStateBackend(
        parameters.key_groups,
        parameters.max_parallelism,
        parameters.clock,
        directory=directory,
        options=RocksDBOptions.from_configuration(configuration),
        label=parameters.label,
        incremental=parameters.incremental,
    )
