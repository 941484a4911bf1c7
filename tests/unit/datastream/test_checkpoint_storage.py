"""Checkpoint storages as values."""

from __future__ import annotations

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.datastream import (
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
    StreamExecutionEnvironment,
)


def test_a_directory() -> None:
    storage = FileSystemCheckpointStorage("/checkpoints", 100, 4096)
    assert (storage.get_checkpoint_path(), storage.get_savepoint_path()) == ("/checkpoints", None)
    assert (storage.get_min_file_size_threshold(), storage.get_write_buffer_size()) == (100, 4096)
    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure(storage.to_configuration())
    assert env._configuration.to_dict()["execution.checkpointing.dir"] == "/checkpoints"
    assert env._configuration.to_dict()["execution.checkpointing.write-buffer-size"] == "4096"


def test_what_cannot_be() -> None:
    with pytest.raises(InvalidProgramError, match="needs a checkpoint_path"):
        FileSystemCheckpointStorage()
    with pytest.raises(InvalidProgramError, match="between -1 and 1048576"):
        FileSystemCheckpointStorage("/checkpoints", 2 * 1024 * 1024)
    with pytest.raises(InvalidProgramError, match="implemented in Java"):
        CustomCheckpointStorage(None)


def test_the_default() -> None:
    storage = JobManagerCheckpointStorage()
    assert storage.get_max_state_size() == JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE
    assert storage.to_configuration().to_dict() == {}
    assert JobManagerCheckpointStorage("/a").get_checkpoint_path() == "/a"
