"""Keyed state as Python objects in the slot's heap."""

from firesteel.config.configuration import Configuration
from firesteel.runtime.state.api.backend import KeyedStateBackendParameters
from firesteel.runtime.state.hashmap.backend import HashMapKeyedStateBackend

__all__ = ["HashMapKeyedStateBackend", "create_backend"]


def create_backend(_: Configuration, parameters: KeyedStateBackendParameters) -> HashMapKeyedStateBackend:
    """The backend of one operator in one subtask."""
    return HashMapKeyedStateBackend(
        parameters.key_groups,
        parameters.max_parallelism,
        parameters.clock,
        incremental=parameters.incremental,
        open_files=parameters.open_files,
        reuses_objects=parameters.reuses_objects,
    )
