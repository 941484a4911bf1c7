"""Checkpoint storages of a program, as values that are written to a configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration

__all__ = [
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]


class CheckpointStorage(ABC):
    """Where checkpoints are; ``env.configure(storage.to_configuration())`` selects it."""

    @abstractmethod
    def to_configuration(self) -> Configuration:
        """The configuration that selects this storage."""

    def get_savepoint_path(self) -> str | None:
        """Returns None: the directory of savepoints is ``execution.checkpointing.savepoint-dir``."""
        return None

    def __str__(self) -> str:
        return type(self).__name__


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints in a directory."""

    MAX_FILE_STATE_THRESHOLD: ClassVar[int] = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
        j_filesystem_checkpoint_storage: Any = None,
    ) -> None:
        if checkpoint_path is None:
            raise InvalidProgramError("FileSystemCheckpointStorage needs a checkpoint_path.")
        if (
            not -1
            <= (-1 if file_state_size_threshold is None else file_state_size_threshold)
            <= (self.MAX_FILE_STATE_THRESHOLD)
        ):
            raise InvalidProgramError(
                f"file_state_size_threshold must be between -1 and {self.MAX_FILE_STATE_THRESHOLD}, got "
                f"{file_state_size_threshold}."
            )
        self._path = checkpoint_path
        self._threshold = -1 if file_state_size_threshold is None else file_state_size_threshold
        self._buffer_size = write_buffer_size

    def to_configuration(self) -> Configuration:
        """The configuration that selects this storage."""
        configuration = Configuration().set(checkpointing_options.CHECKPOINTS_DIRECTORY, self._path)
        if self._threshold >= 0:
            configuration.set_string("execution.checkpointing.data-inline-threshold", f"{self._threshold} b")
        if self._buffer_size >= 0:
            configuration.set_integer("execution.checkpointing.write-buffer-size", self._buffer_size)
        return configuration

    def get_checkpoint_path(self) -> str:
        """Returns the directory of checkpoints."""
        return self._path

    def get_min_file_size_threshold(self) -> int:
        """Returns the size up to which state is stored with the metadata; -1 if it is that of the configuration."""
        return self._threshold

    def get_write_buffer_size(self) -> int:
        """Returns the size of the write buffer; -1 if it is that of the configuration."""
        return self._buffer_size


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints in the temporary directory that jobs have if none is configured.

    Flink keeps them in the memory of the JobManager.
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        max_state_size: int | None = None,
        j_jobmanager_checkpoint_storage: Any = None,
    ) -> None:
        self._path = checkpoint_path
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size

    def to_configuration(self) -> Configuration:
        """The configuration that selects this storage."""
        configuration = Configuration()
        return (
            configuration
            if self._path is None
            else configuration.set(checkpointing_options.CHECKPOINTS_DIRECTORY, self._path)
        )

    def get_checkpoint_path(self) -> str | None:
        """Returns the directory of checkpoints, if one was given."""
        return self._path

    def get_max_state_size(self) -> int:
        """Returns the largest size of a state. It is no limit here."""
        return self._max_state_size


class CustomCheckpointStorage(CheckpointStorage):
    """A storage that is implemented in Java. Cannot be created."""

    def __init__(self, j_custom_checkpoint_storage: Any) -> None:
        raise InvalidProgramError(
            "CustomCheckpointStorage is implemented in Java, which Firesteel does not run.",
            hint="Use FileSystemCheckpointStorage.",
        )

    def to_configuration(self) -> Configuration:
        """Never called."""
        raise NotImplementedError
