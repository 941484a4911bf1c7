"""Job preparation before the first attempt: the checkpoint storage and the restore point."""

from __future__ import annotations

import logging
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from firesteel.common.errors import (
    CheckpointError,
    CheckpointStorageError,
    CorruptStateError,
    InvalidProgramError,
    StateIncompatibleError,
)
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.filesystem.filesystem import join, parent
from firesteel.filesystem.stores import Stores, configure_filesystems, current_stores, get_filesystem
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.epoch_settings import as_epochs, epoch_checkpoint_settings
from firesteel.jobmaster.checkpoints.guarantees import check_guarantees, commits
from firesteel.jobmaster.checkpoints.settings import CheckpointSettings
from firesteel.jobmaster.checkpoints.state_assignment import (
    adopt_max_parallelism,
    check_compatibility,
    separate_finished,
)
from firesteel.jobmaster.model.restored_job import RestoredJob
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.runtime.checkpoint import storage as checkpoint_storage
from firesteel.runtime.checkpoint.layout import METADATA_FILE
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.checkpoint.storage import CheckpointStorage
from firesteel.runtime.dependencies.prepared import PreparedDependencies
from firesteel.runtime.model.checkpoint_options import CheckpointLocation
from firesteel.runtime.model.state_handles import CANONICAL
from firesteel.runtime.state.registry import configured_backend

__all__ = ["PreparedJob", "prepare_job"]

_log = logging.getLogger(__name__)
_CHECKPOINT_ID_GAP = 10
"""How far checkpoint ids jump when a job is taken over: the previous owner may still use the next ones."""


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
    own_checkpoints: Sequence[tuple[CheckpointMetadata, str]] = ()
    """Those of the job itself that an earlier JobMaster has completed, oldest first, with their paths."""
    is_recovered: bool = False
    """Whether an earlier JobMaster has run the job."""
    next_checkpoint_id: int = 1
    artifacts: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Python files and archives that the job's functions import, by file name."""
    dependencies: PreparedDependencies | None = field(default=None, repr=False)
    """What of the artifacts is on this machine."""
    stores: Stores = field(default_factory=current_stores, repr=False)
    """What all threads that work for the job reach their files with."""

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
        if self.dependencies is not None:
            self.dependencies.close()
        if self.storage is not None and self.storage_token is not None:
            self.storage.remove_token(self.storage_token)
        if self.temporary_directory is not None:
            shutil.rmtree(self.temporary_directory, ignore_errors=True)


def prepare_job(
    job_graph: JobGraph,
    *,
    single_host: bool,
    default_directory: str | None = None,
    taken_over: Sequence[tuple[int, str]] | None = None,
    artifacts: Mapping[str, bytes] | None = None,
    dependencies: PreparedDependencies | None = None,
) -> PreparedJob:
    """Checks what can be checked without slots; raises errors that name what the user has to fix.

    With ``single_host`` all slots run on this machine: a default checkpoint directory may then be used, unless there
    is a ``default_directory`` for jobs that name none. A job that an earlier JobMaster has run is ``taken_over``: these
    are the numbers and paths of the checkpoints it has registered, oldest first, perhaps none. The ``dependencies``
    made from its ``artifacts`` belong to the PreparedJob from then on.
    """
    execution = job_graph.execution.kind
    if execution is JobExecution.BATCH:
        job_graph = _without_checkpoints(job_graph)
    elif execution is JobExecution.EPOCHS:
        job_graph = as_epochs(job_graph)
    configuration = job_graph.configuration
    settings = CheckpointSettings.from_configuration(configuration)
    if execution is JobExecution.EPOCHS:
        settings = epoch_checkpoint_settings(configuration)
    check_guarantees(job_graph, checkpoints=settings.interval is not None)
    configured_backend(configuration)  # refuses a name that no backend has
    stores = configure_filesystems(configuration)
    own = _own_checkpoints(job_graph, taken_over or (), settings.num_retained)
    restored = None if own else _resume(job_graph, settings, _load(configuration))
    for metadata in [own[-1][0]] if own else [restored.metadata] if restored is not None else []:
        job_graph = separate_finished(adopt_max_parallelism(job_graph, metadata), metadata)
        check_compatibility(metadata, job_graph, configuration.get(checkpointing_options.IGNORE_UNCLAIMED_STATE))
        _check_formats(metadata, job_graph)
        checkpoint_storage.check_files(metadata)
    temporary = None
    if settings.interval is not None and settings.directory is None:
        if default_directory is None and not single_host:
            raise InvalidProgramError(
                "Checkpointing is enabled, but there is no checkpoint directory that all hosts share.",
                hint="Set execution.checkpointing.dir to a mounted network directory or to s3://bucket/path.",
            )
        if default_directory is None:
            default_directory = temporary = tempfile.mkdtemp(prefix="firesteel-checkpoints-")
        settings = replace(settings, directory=default_directory)
        configuration = Configuration(configuration).set(checkpointing_options.CHECKPOINTS_DIRECTORY, default_directory)
        job_graph = replace(job_graph, configuration=configuration)
    job_graph = replace(job_graph, run_id=uuid.uuid4().hex)
    try:
        job = PreparedJob(
            job_graph,
            serialize_job(job_graph),
            settings,
            restored=restored,
            own_checkpoints=own,
            artifacts=artifacts or {},
            dependencies=dependencies,
            stores=stores,
        )
        storage = None
        if settings.interval is not None and settings.directory is not None:
            storage = CheckpointStorage(settings.directory, job_graph.job_id)
            storage.check_writable()
        if taken_over is not None:
            number = _next_checkpoint_id(taken_over, storage)
            job = replace(job, is_recovered=True, next_checkpoint_id=number)
        if storage is None:
            return job
        token = storage.probe_token()
        if taken_over is not None:
            storage.remove_other_tokens(token)
        return replace(job, storage=storage, storage_token=token, temporary_directory=temporary)
    except BaseException:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise


def _own_checkpoints(
    job_graph: JobGraph, registered: Sequence[tuple[int, str]], retained: int
) -> tuple[tuple[CheckpointMetadata, str], ...]:
    """The last ``retained`` of the registered checkpoints that can still be read, oldest first.

    That older ones are gone is as it should be. If the newest is, the job goes back to an older one, unless it has
    sinks that commit: what they have committed with the newest would be written again.
    """
    own: list[tuple[CheckpointMetadata, str]] = []
    problem: Exception | None = None
    for number, path in reversed(registered):
        if len(own) == retained:
            break
        try:
            metadata = _load_own(path)
            if not own:
                checkpoint_storage.check_files(metadata)
        except (CheckpointStorageError, OSError) as error:
            if own:
                continue
            problem = problem or error
            if commits(job_graph):
                break
            _log.warning("Checkpoint %d of job '%s' cannot be restored: %s", number, job_graph.job_name, error)
        else:
            own.append((metadata, path))
    if registered and not own:
        assert problem is not None
        number, path = registered[-1]
        kind = CorruptStateError if isinstance(problem, CorruptStateError) else CheckpointStorageError
        raise kind(
            f"Checkpoint {number} of job '{job_graph.job_name}' cannot be restored: {problem}",
            path=path,
            hint="Older checkpoints have been deleted, or restoring them would make sinks commit output twice. "
            "Submit the job again, from a savepoint or a complete checkpoint.",
        )
    if problem is not None:
        _log.warning("Job '%s' falls back to checkpoint %d.", job_graph.job_name, own[0][0].checkpoint_id)
    return tuple(reversed(own))


def _load_own(path: str) -> CheckpointMetadata:
    """The metadata of a checkpoint that was registered, so that it must be there.

    It counts as lost only if the directory that it should be in can be seen. Else the storage may just not be mounted.
    """
    file = join(path, METADATA_FILE)
    if get_filesystem(file).exists(file):
        return checkpoint_storage.load(path)
    directory = parent(path)
    if not checkpoint_storage.is_visible(directory):
        raise CheckpointStorageError(
            f"Neither the checkpoint metadata {file} nor the directory {directory} exists on this host.",
            path=file,
            hint="Check that the file system is mounted on this host.",
        )
    raise CorruptStateError(f"The checkpoint metadata {file} is missing.", path=file)


def _next_checkpoint_id(registered: Sequence[tuple[int, str]], storage: CheckpointStorage | None) -> int:
    highest = max((number for number, _ in registered), default=0)
    return max(highest, storage.highest_checkpoint_id() if storage is not None else 0) + _CHECKPOINT_ID_GAP


def _without_checkpoints(job_graph: JobGraph) -> JobGraph:
    """A batch has none: it begins with nothing, and what had finished before a failure is kept by its stages."""
    path = job_graph.configuration.get(checkpointing_options.SAVEPOINT_PATH)
    if path is not None:
        raise InvalidProgramError(
            f"Job '{job_graph.job_name}' runs as a batch, which cannot start from a checkpoint or savepoint, but "
            f"execution.state-recovery.path is {path}.",
            hint="Leave it out, or set execution.runtime-mode to STREAMING.",
        )
    configuration = Configuration(job_graph.configuration)
    configuration.remove_config(checkpointing_options.CHECKPOINTING_INTERVAL)
    return replace(job_graph, configuration=configuration)


def _check_formats(metadata: CheckpointMetadata, job_graph: JobGraph) -> None:
    """StateIncompatibleError if keyed state is in a format of its own that the configured backend does not read."""
    backend = job_graph.configuration.get(checkpointing_options.STATE_BACKEND)
    wanted = {node.operator_id for node in job_graph.nodes()}
    for state in metadata.operators:
        handles = (subtask.keyed for subtask in state.subtasks.values() if subtask.keyed is not None)
        for handle in handles:
            if state.operator_id in wanted and handle.parts and handle.format not in (CANONICAL, backend):
                uid = f" (uid '{state.uid}')" if state.uid else ""
                raise StateIncompatibleError(
                    f"The state of operator '{state.name}'{uid} was written by the {handle.format} backend in its "
                    f"native format, which the {backend} backend cannot read.",
                    operator=state.name,
                    hint=f"Set state.backend.type to {handle.format}, or take a canonical savepoint first.",
                )


def _load(configuration: Configuration) -> RestoredJob | None:
    path = configuration.get(checkpointing_options.SAVEPOINT_PATH)
    if path is None:
        return None
    directory = checkpoint_storage.resolve(path)
    metadata = checkpoint_storage.load(directory)
    return RestoredJob(metadata, directory, configuration.get(checkpointing_options.RESTORE_MODE) == "CLAIM")


def _resume(job_graph: JobGraph, settings: CheckpointSettings, given: RestoredJob | None) -> RestoredJob | None:
    """The restore point of the job: the given one, else the last checkpoint of the previous run, if runs continue it.

    The previous run's checkpoints are in the same directory, so the ids of new ones must be greater than those in
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
