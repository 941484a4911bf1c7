"""State backends of a program, as values that are written to a configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.runtime.state.registry import HASHMAP, ROCKSDB

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
    "StateBackend",
]


class StateBackend(ABC):
    """Where keyed state is held; ``env.configure(backend.to_configuration())`` selects it."""

    @abstractmethod
    def to_configuration(self) -> Configuration:
        """The configuration that selects this backend."""

    def __str__(self) -> str:
        return type(self).__name__


class HashMapStateBackend(StateBackend):
    """State as Python objects in the memory of the slot."""

    def to_configuration(self) -> Configuration:
        """The configuration that selects this backend."""
        return Configuration().set(checkpointing_options.STATE_BACKEND, HASHMAP.name)


class PredefinedOptions(Enum):
    """Settings of RocksDB for common kinds of disks."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """State in RocksDB on the slot's local disk, which may be larger than memory."""

    def __init__(self, enable_incremental_checkpointing: bool | None = None):
        if enable_incremental_checkpointing not in (None, True, False):
            raise TypeError(
                "enable_incremental_checkpointing must be None, True or False, "
                f"got {enable_incremental_checkpointing!r}."
            )
        self._incremental = enable_incremental_checkpointing
        self._paths: list[str] = []
        self._predefined_options: PredefinedOptions | None = None
        self._transfer_threads: int | None = None

    def set_db_storage_paths(self, *paths: str) -> None:
        """The local directories RocksDB may use; none for the slot's own."""
        self._paths = list(paths)

    def get_db_storage_paths(self) -> list[str]:
        """The local directories RocksDB may use."""
        return list(self._paths)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether checkpoints write only what changed."""
        return bool(self._incremental)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Settings for a kind of disk."""
        self._predefined_options = options

    def get_predefined_options(self) -> PredefinedOptions:
        """Settings for a kind of disk."""
        return self._predefined_options or PredefinedOptions.DEFAULT

    def set_options(self, options_factory_class_name: str) -> None:
        """Not supported: an options factory is a class in Java."""
        raise InvalidProgramError(
            f"{options_factory_class_name} is a class in Java, which Firesteel does not run.",
            hint="Set the options of RocksDB with the keys state.backend.rocksdb.*, see docs/configuration.md.",
        )

    def get_options(self) -> str | None:
        """None: there is no options factory."""
        return None

    def get_number_of_transfer_threads(self) -> int:
        """The number of threads that transfer files to and from checkpoints."""
        return 4 if self._transfer_threads is None else self._transfer_threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """The number of threads that transfer files to and from checkpoints."""
        self._transfer_threads = number_of_transfering_threads

    def to_configuration(self) -> Configuration:
        """The configuration that selects this backend; contains only options that were set."""
        configuration = Configuration().set(checkpointing_options.STATE_BACKEND, ROCKSDB.name)
        if self._incremental is not None:
            configuration.set(checkpointing_options.INCREMENTAL_CHECKPOINTS, self._incremental)
        if self._paths:
            configuration.set("state.backend.rocksdb.localdir", ",".join(self._paths))
        if self._predefined_options is not None:
            configuration.set("state.backend.rocksdb.predefined-options", self._predefined_options.name)
        if self._transfer_threads is not None:
            configuration.set("state.backend.rocksdb.checkpoint.transfer.thread.num", self._transfer_threads)
        return configuration


class CustomStateBackend(StateBackend):
    """A state backend in Java. Its name can be imported; it cannot be created."""

    def __init__(self, j_custom_state_backend: Any):
        raise InvalidProgramError(
            f"{j_custom_state_backend!r} is a state backend in Java, which Firesteel does not run.",
            hint="Use HashMapStateBackend or EmbeddedRocksDBStateBackend; CONTRIBUTING.md shows how to write another.",
        )

    def to_configuration(self) -> Configuration:
        """Not supported."""
        raise NotImplementedError
