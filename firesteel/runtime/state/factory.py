"""Makes the keyed state backend that the configuration asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from firesteel.common.errors import InvalidProgramError
from firesteel.config import options
from firesteel.config.configuration import Configuration
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.api.backend import Clock, KeyedStateBackend
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.runtime.state.single_key.backend import SingleKeyStateBackend
from firesteel.spi.execution_traits import PIPELINED, ExecutionTraits

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import StateFileReader

__all__ = ["BACKENDS", "create_keyed_backend", "keeps_objects"]

BACKENDS = ("hashmap", "rocksdb")
"""What ``state.backend.type`` may be."""


def create_keyed_backend(
    configuration: Configuration,
    key_groups: KeyGroupRange,
    max_parallelism: int,
    clock: Clock,
    *,
    operator_id: str,
    subtask: int,
    working_directory: Path | None = None,
    open_files: Callable[[], StateFileReader] | None = None,
    execution: ExecutionTraits = PIPELINED,
) -> KeyedStateBackend:
    """The keyed state of one operator in one subtask; where records come so, that of one key at a time.

    ``open_files`` gives a reader of state files for snapshots that rewrite what earlier ones wrote; without it they
    are read from the checkpoint storage. ``working_directory`` is for a backend that keeps state on local disk.
    """
    reuses_objects = configuration.get(options.OBJECT_REUSE)
    if execution.one_key_at_a_time:
        return SingleKeyStateBackend(key_groups, max_parallelism, reuses_objects=reuses_objects)
    incremental = (
        configuration.get(options.CHECKPOINTING_INTERVAL) is not None
        and configuration.get(options.INCREMENTAL_CHECKPOINTS) is True
    )
    if _backend_name(configuration) == "hashmap":
        return HashMapKeyedStateBackend(
            key_groups,
            max_parallelism,
            clock,
            incremental=incremental,
            open_files=open_files,
            reuses_objects=reuses_objects,
        )
    from firesteel.runtime.state.rocksdb import create_rocksdb_backend

    backend: KeyedStateBackend = create_rocksdb_backend(
        configuration,
        key_groups,
        max_parallelism,
        clock,
        operator_id=operator_id,
        subtask=subtask,
        working_directory=working_directory,
        incremental=incremental,
    )
    return backend


def keeps_objects(configuration: Configuration) -> bool:
    """Whether the configured backend keeps Python objects; see ``KeyedStateBackend``."""
    return _backend_name(configuration) == "hashmap"


def _backend_name(configuration: Configuration) -> str:
    name = configuration.get(options.STATE_BACKEND)
    if name not in BACKENDS:
        raise InvalidProgramError(
            f"There is no state backend '{name}'.",
            hint=f"Set state.backend.type to one of {', '.join(BACKENDS)}.",
        )
    return str(name)
