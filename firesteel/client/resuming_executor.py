"""Jobs whose runs go on from each other: says where from, and sees that there is one run at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from firesteel.client.errors import UsageError
from firesteel.common.errors import FiresteelError
from firesteel.common.job_client import JobClient
from firesteel.config import checkpointing_options, exchange_options
from firesteel.config.configuration import Configuration
from firesteel.datastream.executor import PipelineExecutor, spark_executor
from firesteel.datastream.stream_execution_environment import DEFAULT_JOB_NAME
from firesteel.filesystem.stores import configure_filesystems
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.epoch_settings import EpochSettings, as_epochs
from firesteel.runtime.checkpoint.storage import CheckpointStorage

__all__ = ["ResumingExecutor", "RunUnderWayError"]


class RunUnderWayError(FiresteelError):
    """Another run of the same job has not ended yet."""


class ResumingExecutor:
    """Passes jobs on, and takes care of those whose runs go on from each other; see ``execution.epoch.resume``.

    ``say`` is called with the place that a run starts from.
    """

    def __init__(self, executor: PipelineExecutor | None, say: Callable[[str], None]):
        self._executor = executor
        self._say = say

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Starts the job."""
        executor = self._executor or spark_executor()
        if job_graph.execution.kind is not JobExecution.EPOCHS:
            return executor.execute(job_graph, configuration)
        if not EpochSettings.from_configuration(configuration).resumes:
            if configuration.get(exchange_options.EPOCH_TRIGGER) == "available-now":
                self._say(
                    f"the next run of job '{job_graph.job_name}' will not know of this one: "
                    "execution.checkpointing.dir is not set"
                )
            return executor.execute(job_graph, configuration)
        if job_graph.job_name == DEFAULT_JOB_NAME:
            raise UsageError(
                "A run finds where the last one stopped by the job's name, but this job has none.",
                hint="Name it, env.execute('my job'), or set pipeline.name.",
            )
        directory = configuration.get(checkpointing_options.CHECKPOINTS_DIRECTORY)
        assert directory is not None
        storage = CheckpointStorage(directory, as_epochs(job_graph).job_id)
        lock = _Lock(storage.job_directory, job_graph.job_name)
        try:
            self._say(_where(job_graph, storage))
            client = executor.execute(job_graph, configuration)
        except BaseException:
            lock.release()
            raise
        client.get_job_execution_result().add_done_callback(lambda _: lock.release())
        return client


def _where(job_graph: JobGraph, storage: CheckpointStorage) -> str:
    """Where a run starts from, as text."""
    configure_filesystems(job_graph.configuration)
    given = job_graph.configuration.get(checkpointing_options.SAVEPOINT_PATH)
    completed = storage.completed()
    where = (
        f"starts from {given}, as it was told to"
        if given is not None
        else f"goes on from {completed[-1]}"
        if completed
        else f"reads from the beginning: there is no checkpoint in {storage.job_directory}"
    )
    return f"job '{job_graph.job_name}' {where}"


class _Lock:
    """Two runs at once would both read what came since the last one; the system releases the lock of a dead process.

    It is a lock of this machine: runs of the same job on several machines are not kept apart.
    """

    def __init__(self, directory: str, job_name: str):
        place = hashlib.blake2b(directory.encode(), digest_size=16).hexdigest()
        self._path = Path(tempfile.gettempdir()) / f"firesteel-{os.getuid()}-{place}.lock"
        self._file: TextIO | None = None
        while not self._acquire():
            pass
        if self._file is None:
            raise RunUnderWayError(
                f"Another run of job '{job_name}' with checkpoints in {directory} has not ended yet.",
                hint="Wait for it; or let runs start less often.",
            )

    def _acquire(self) -> bool:
        """Tries to lock the file; False if whoever had locked it has just removed it, so that it must be made anew."""
        file = self._path.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            self._file = None
            return True
        try:
            is_current = os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            is_current = False
        if not is_current:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Lets the next run begin."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)  # before it is unlocked: nobody else may have it by then
            self._file.close()
