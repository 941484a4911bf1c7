"""Executor for jobs whose runs resume from each other: finds the checkpoint, and allows one run at a time."""

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
    """Executes jobs; a job with ``execution.epoch.resume`` resumes from its previous run.

    ``say`` is called with the location from which a run starts.
    """

    def __init__(self, executor: PipelineExecutor | None, say: Callable[[str], None]):
        self._executor = executor
        self._say = say
        self.is_embedded = executor is None
        """Whether jobs run on the Spark of this process."""

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        executor = self._executor or spark_executor()
        if job_graph.execution.kind is not JobExecution.EPOCHS:
            return executor.execute(job_graph, configuration)
        if not EpochSettings.from_configuration(configuration).resumes:
            if configuration.get(exchange_options.EPOCH_TRIGGER) == "available-now":
                self._say(
                    f"execution.checkpointing.dir is not set: the next run of job '{job_graph.job_name}' "
                    "cannot resume from this one"
                )
            return executor.execute(job_graph, configuration)
        if job_graph.job_name == DEFAULT_JOB_NAME:
            raise UsageError(
                "The checkpoints of the previous run are found by the job's name, but this job has no name.",
                hint="Name the job with env.execute('my job'), or set pipeline.name.",
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
    """A description of the location from which a run starts."""
    configure_filesystems(job_graph.configuration)
    given = job_graph.configuration.get(checkpointing_options.SAVEPOINT_PATH)
    completed = storage.completed()
    where = (
        f"starts from {given} as configured"
        if given is not None
        else f"resumes from {completed[-1]}"
        if completed
        else f"starts from the beginning: there is no checkpoint in {storage.job_directory}"
    )
    return f"job '{job_graph.job_name}' {where}"


class _Lock:
    """Prevents two concurrent runs of a job, which would read the same input; the system releases it on exit.

    The lock is local to this machine: concurrent runs on different machines are not prevented.
    """

    def __init__(self, directory: str, job_name: str):
        place = hashlib.blake2b(directory.encode(), digest_size=16).hexdigest()
        self._path = Path(tempfile.gettempdir()) / f"firesteel-{os.getuid()}-{place}.lock"
        self._file: TextIO | None = None
        while not self._acquire():
            pass
        if self._file is None:
            raise RunUnderWayError(
                f"Another run of job '{job_name}' with checkpoints in {directory} is still in progress.",
                hint="Wait until it ends, or start runs less often.",
            )

    def _acquire(self) -> bool:
        """Tries to lock the file; False if the previous owner has just removed it, so that it must be created again."""
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
            self._path.unlink(missing_ok=True)  # before it is unlocked: another process may have it afterwards
            self._file.close()
