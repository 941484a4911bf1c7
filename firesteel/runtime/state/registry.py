"""The keyed state backends that ``state.backend.type`` can name.

A backend is a package that exports ``create_backend(configuration, parameters)``, and a row of this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from firesteel.common.errors import InvalidProgramError
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.runtime.state.api.backend import KeyedStateBackend, KeyedStateBackendParameters

__all__ = ["BACKENDS", "HASHMAP", "ROCKSDB", "StateBackendType", "configured_backend"]


@dataclass(frozen=True)
class StateBackendType:
    """One kind of keyed state backend."""

    name: str
    """As in ``state.backend.type``; also the format of its own snapshots."""
    api_name: str
    """The class of the API that selects it."""
    package: str
    """Imported when a backend is created."""
    keeps_objects: bool
    """Whether it is an ``ObjectStateBackend``, which operators can work on directly."""

    def create(self, configuration: Configuration, parameters: KeyedStateBackendParameters) -> KeyedStateBackend:
        """Returns the backend of one operator in one subtask."""
        backend: KeyedStateBackend = import_module(self.package).create_backend(configuration, parameters)
        return backend


HASHMAP = StateBackendType("hashmap", "HashMapStateBackend", "firesteel.runtime.state.hashmap", keeps_objects=True)
ROCKSDB = StateBackendType(
    "rocksdb", "EmbeddedRocksDBStateBackend", "firesteel.runtime.state.rocksdb", keeps_objects=False
)

BACKENDS = {backend.name: backend for backend in (HASHMAP, ROCKSDB)}
"""By name."""


def configured_backend(configuration: Configuration) -> StateBackendType:
    """Returns the backend that a configuration selects; InvalidProgramError if there is none of that name."""
    name = configuration.get(checkpointing_options.STATE_BACKEND)
    if name not in BACKENDS:
        raise InvalidProgramError(
            f"There is no state backend '{name}'.",
            hint=f"Set state.backend.type to one of {', '.join(BACKENDS)}.",
        )
    return BACKENDS[name]
