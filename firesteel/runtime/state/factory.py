"""Creates the keyed state backend that is configured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from firesteel.config import checkpointing_options, pipeline_options
from firesteel.config.configuration import Configuration
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.api.backend import Clock, KeyedStateBackend, KeyedStateBackendParameters
from firesteel.runtime.state.registry import configured_backend
from firesteel.runtime.state.single_key.backend import SingleKeyStateBackend
from firesteel.spi.execution_traits import PIPELINED, ExecutionTraits

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import StateFileReader

__all__ = ["create_keyed_backend"]


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
    reuses_objects = configuration.get(pipeline_options.OBJECT_REUSE)
    if execution.one_key_at_a_time:
        return SingleKeyStateBackend(key_groups, max_parallelism, reuses_objects=reuses_objects)
    incremental = (
        configuration.get(checkpointing_options.CHECKPOINTING_INTERVAL) is not None
        and configuration.get(checkpointing_options.INCREMENTAL_CHECKPOINTS) is True
    )
    parameters = KeyedStateBackendParameters(
        key_groups,
        max_parallelism,
        clock,
        label=f"{operator_id[:16]}-{subtask}",
        working_directory=working_directory,
        open_files=open_files,
        incremental=incremental,
        reuses_objects=reuses_objects,
    )
    return configured_backend(configuration).create(configuration, parameters)
