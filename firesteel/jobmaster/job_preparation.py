"""What is found out about a job before anything is started: where its checkpoints go and what it starts from."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from dataclasses import dataclass, replace

from firesteel.common import options
from firesteel.common.configuration import Configuration
from firesteel.common.errors import CheckpointError, InvalidProgramError, StateIncompatibleError
from firesteel.filesystem.filesystem import configure_filesystems
from firesteel.graph.exchange import JobExecution, execution_of
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoint_settings import CheckpointSettings
from firesteel.jobmaster.epoch_settings import as_epochs, epoch_checkpoint_settings
from firesteel.jobmaster.guarantees import check_guarantees
from firesteel.jobmaster.job_serialization import serialize_job
from firesteel.jobmaster.state_assignment import adopt_max_parallelism, check_compatibility
from firesteel.runtime.checkpoint import storage as checkpoint_storage
from firesteel.runtime.checkpoint.handles import CANONICAL
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.checkpoint.options import CheckpointLocation
from firesteel.runtime.checkpoint.storage import CheckpointStorage
from firesteel.runtime.state.factory import keeps_objects

__all__ = ["PreparedJob", "RestoredJob", "prepare_job"]


@dataclass(frozen=True)
class RestoredJob:
    """The checkpoint or savepoint a job starts from."""

    metadata: CheckpointMetadata
    path: str
    claim: bool


@dataclass(frozen=True)
class PreparedJob:
    """A job that can be started."""

    job_graph: JobGraph
    serialized: bytes
    settings: CheckpointSettings
    storage: CheckpointStorage | None = None
    """None where there are no checkpoints; savepoints can be taken all the same."""
    storage_token: str | None = None
    temporary_directory: str | None = None
    """A checkpoint directory that exists for this job only."""
    restored: RestoredJob | None = None

    def location_of(self, checkpoint_id: int) -> CheckpointLocation:
        """Where the files of a checkpoint go."""
        if self.storage is None:
            raise CheckpointError(
                "The job takes no checkpoints.", hint="Set execution.checkpointing.interval, or take a savepoint."
            )
        return self.storage.location(checkpoint_id)

    def savepoint_location_of(self, target_directory: str) -> CheckpointLocation:
        """Where the files of a new savepoint go."""
        return CheckpointStorage(target_directory, self.job_graph.job_id).savepoint_location(target_directory)

    def discard(self) -> None:
        """Leaves nothing behind: the job is over, or was not started."""
        if self.storage is not None and self.storage_token is not None:
            self.storage.remove_token(self.storage_token)
        if self.temporary_directory is not None:
            shutil.rmtree(self.temporary_directory, ignore_errors=True)


def prepare_job(job_graph: JobGraph, *, single_host: bool) -> PreparedJob:
    """Checks what can be checked without slots; raises what the user has to mend, with names.

    ``single_host`` tells that all slots run on this machine: a checkpoint directory may then be made up.
    """
    execution = execution_of(job_graph).kind
    if execution is JobExecution.BATCH:
        job_graph = _without_checkpoints(job_graph)
    elif execution is JobExecution.EPOCHS:
        job_graph = as_epochs(job_graph)
    configuration = job_graph.configuration
    settings = CheckpointSettings.from_configuration(configuration)
    if execution is JobExecution.EPOCHS:
        settings = epoch_checkpoint_settings(configuration)
    check_guarantees(job_graph, checkpoints=settings.interval is not None)
    keeps_objects(configuration)  # knows the backend, or says which there are
    configure_filesystems(configuration)
    restored = _resume(job_graph, settings, _load(configuration))
    if restored is not None:
        job_graph = adopt_max_parallelism(job_graph, restored.metadata)
        allow = configuration.get(options.IGNORE_UNCLAIMED_STATE)
        check_compatibility(restored.metadata, job_graph, allow)
        _check_formats(restored.metadata, job_graph)
        checkpoint_storage.check_files(restored.metadata)
    temporary = None
    if settings.interval is not None and settings.directory is None:
        if not single_host:
            raise InvalidProgramError(
                "Checkpoints are on, but there is no directory that all hosts share.",
                hint="Set execution.checkpointing.dir to a mounted network directory or to s3://bucket/path.",
            )
        temporary = tempfile.mkdtemp(prefix="firesteel-checkpoints-")
        settings = replace(settings, directory=temporary)
        configuration = Configuration(configuration).set(options.CHECKPOINTS_DIRECTORY, temporary)
        job_graph = replace(job_graph, configuration=configuration)
    job_graph = replace(job_graph, run_id=uuid.uuid4().hex)
    try:
        serialized = serialize_job(job_graph)
        if settings.interval is None or settings.directory is None:
            return PreparedJob(job_graph, serialized, settings, restored=restored)
        storage = CheckpointStorage(settings.directory, job_graph.job_id)
        storage.check_writable()
        token = storage.probe_token()
    except BaseException:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    return PreparedJob(job_graph, serialized, settings, storage, token, temporary, restored)


def _without_checkpoints(job_graph: JobGraph) -> JobGraph:
    """A batch has none: it begins with nothing, and what had finished before a failure is kept by its stages."""
    path = job_graph.configuration.get(options.SAVEPOINT_PATH)
    if path is not None:
        raise InvalidProgramError(
            f"Job '{job_graph.job_name}' runs as a batch, which cannot start from a checkpoint or savepoint, but "
            f"execution.state-recovery.path is {path}.",
            hint="Leave it out, or set execution.runtime-mode to STREAMING.",
        )
    configuration = Configuration(job_graph.configuration)
    configuration.remove_config(options.CHECKPOINTING_INTERVAL)
    return replace(job_graph, configuration=configuration)


def _check_formats(metadata: CheckpointMetadata, job_graph: JobGraph) -> None:
    """StateIncompatibleError if keyed state is in a format of its own that the configured backend does not read."""
    backend = job_graph.configuration.get(options.STATE_BACKEND)
    wanted = {node.operator_id for node in job_graph.nodes()}
    for state in metadata.operators:
        handles = (subtask.keyed for subtask in state.subtasks.values() if subtask.keyed is not None)
        for handle in handles:
            if state.operator_id in wanted and handle.parts and handle.format not in (CANONICAL, backend):
                uid = f" (uid '{state.uid}')" if state.uid else ""
                raise StateIncompatibleError(
                    f"The state of operator '{state.name}'{uid} was written by the {handle.format} backend in a "
                    f"format of its own, which the {backend} backend does not read.",
                    operator=state.name,
                    hint=f"Set state.backend.type to {handle.format}, or take a canonical savepoint first.",
                )


def _load(configuration: Configuration) -> RestoredJob | None:
    path = configuration.get(options.SAVEPOINT_PATH)
    if path is None:
        return None
    directory = checkpoint_storage.resolve(path)
    metadata = checkpoint_storage.load(directory)
    return RestoredJob(metadata, directory, configuration.get(options.RESTORE_MODE) == "CLAIM")


def _resume(job_graph: JobGraph, settings: CheckpointSettings, given: RestoredJob | None) -> RestoredJob | None:
    """What the job starts from: what it was given, else what its last run has left, if it is one that goes on.

    That one's checkpoints are in the directory of this one, which is why nothing may come to have a number that is in
    use there.
    """
    if not settings.keeps_finished or settings.directory is None:
        return given
    storage = CheckpointStorage(settings.directory, job_graph.job_id)
    if given is not None:
        number = max(given.metadata.checkpoint_id, storage.highest_checkpoint_id())
        return replace(given, metadata=replace(given.metadata, checkpoint_id=number))
    completed = storage.completed()
    return RestoredJob(checkpoint_storage.load(completed[-1]), completed[-1], claim=True) if completed else None
