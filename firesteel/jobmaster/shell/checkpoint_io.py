"""Checkpoint I/O of one job: a thread that writes metadata and deletes files."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from firesteel.common.errors import CheckpointError, FiresteelError
from firesteel.jobmaster.model import events
from firesteel.jobmaster.model.host import Post
from firesteel.jobmaster.model.instructions import DeleteCheckpoint, DeleteFiles, RemoveLeftovers, StoreMetadata
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.shell.job_preparation import PreparedJob
from firesteel.jobmaster.shell.serial_worker import SerialWorker
from firesteel.process import fault_points
from firesteel.process.concurrency import Concurrency
from firesteel.runtime.checkpoint import storage as checkpoint_storage

__all__ = ["CheckpointIO"]

_log = logging.getLogger(__name__)
_CLOSE_TIMEOUT_S = 30.0
"""How long the end of a job waits for what is still to be written and deleted."""


class CheckpointIO:
    """Executes the JobMaster's storage instructions in order, and posts their results.

    No method waits for the storage, except `close`, which has a deadline.
    """

    def __init__(self, job: PreparedJob, services: JobServices, post: Post, concurrency: Concurrency):
        self._job = job
        self._services = services
        self._post = post
        self._worker = SerialWorker(concurrency, "firesteel-checkpoint-io", job.stores)
        self._registered: tuple[int, str] | None = None
        """The checkpoint that was registered last, and its path. Only for the worker."""
        self._alone = threading.Lock()
        self._no_slot_runs = True

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being written or deleted."""
        return self._worker.is_idle

    # -- called by the runner -----------------------------------------------------------------------

    def execute(self, instruction: StoreMetadata | DeleteCheckpoint | DeleteFiles | RemoveLeftovers) -> None:
        if isinstance(instruction, StoreMetadata):
            self._worker.submit(self._store, instruction)
        elif isinstance(instruction, DeleteCheckpoint):
            self._worker.submit(self._delete, instruction.path, instruction.files, instruction.whole)
        elif isinstance(instruction, DeleteFiles):
            self._worker.submit(self._delete, None, instruction.paths, False)
        else:
            with self._alone:
                self._no_slot_runs = True
            self._worker.submit(self._remove_leftovers, instruction)

    def attempt_starts(self) -> None:
        """Slots are about to write: leftovers that have not been found by now are left for another time."""
        with self._alone:
            self._no_slot_runs = False

    def check_target(self, trigger: events.TriggerSavepoint, refuse: Callable[[str, CheckpointError], None]) -> None:
        """Checks that a savepoint can be written before it is triggered, so that no job stops for a failing one."""
        self._worker.submit(self._check_target, trigger, refuse)

    def close(self, leftovers: RemoveLeftovers | None = None) -> None:
        """The job is over, or was not started. Without ``leftovers`` nothing of its checkpoints is deleted."""
        if leftovers is not None:
            with self._alone:
                self._no_slot_runs = True
            self._worker.submit(self._remove_leftovers, leftovers)
        self._worker.submit(self._discard)
        if not self._worker.close(_CLOSE_TIMEOUT_S):
            _log.warning(
                "The checkpoint storage of job '%s' did not respond within %g s after the job ended. Files may be "
                "left in %s.",
                self._job.job_graph.job_name,
                _CLOSE_TIMEOUT_S,
                self._job.settings.directory,
            )

    # -- in the worker ------------------------------------------------------------------------------

    def _store(self, instruction: StoreMetadata) -> None:
        checkpoint_id = instruction.checkpoint_id
        try:
            fault_points.reach("checkpoint.metadata")
            path = checkpoint_storage.store(instruction.location, instruction.metadata)
            if instruction.is_committed:
                self._services.register_checkpoint(checkpoint_id, path)
                self._registered = checkpoint_id, path
            fault_points.reach("checkpoint.stored")
        except BaseException as error:  # noqa: BLE001 - storage may raise anything; the checkpoint fails, not the job
            self._post(events.MetadataFailed(checkpoint_id, f"{type(error).__name__}: {error}"))
        else:
            self._post(events.MetadataStored(checkpoint_id, path))

    def _check_target(self, trigger: events.TriggerSavepoint, refuse: Callable[[str, CheckpointError], None]) -> None:
        try:
            checkpoint_storage.check_target(trigger.target_directory or "")
        except BaseException as error:  # noqa: BLE001 - storage may raise anything; the request fails, not the job
            text = error.message if isinstance(error, FiresteelError) else f"{type(error).__name__}: {error}"
            refusal = CheckpointError(
                f"Job '{self._job.job_graph.job_name}': No savepoint can be written to "
                f"{trigger.target_directory}: {text}",
                hint=getattr(error, "hint", None),
            )
            refuse(str(trigger.request_id), refusal)
        else:
            self._post(trigger)

    def _delete(self, directory: str | None, files: Sequence[str], whole: bool) -> None:
        """Deletes unreferenced files; failures are logged and the files left."""
        if not self._services.may_delete():
            return
        try:
            fault_points.reach("checkpoint.delete")
            if directory is not None:
                self._unregister(lambda path: path != directory)
                checkpoint_storage.delete_checkpoint(directory, whole=whole)
            checkpoint_storage.delete_files(files)
        except Exception as error:  # noqa: BLE001 - storage and store may raise anything
            _log.warning("State that is no longer needed could not be deleted: %s", error)

    def _unregister(self, is_kept: Callable[[str], bool]) -> None:
        """Before the newest registered checkpoint is deleted, because it was given up after all, it must be unknown."""
        if self._registered is not None and not is_kept(self._registered[1]):
            self._services.unregister_checkpoint(self._registered[0])
            self._registered = None

    def _remove_leftovers(self, instruction: RemoveLeftovers) -> None:
        """Deletes unused files of killed slots, and files that could not be deleted before."""
        storage = self._job.storage
        try:
            if storage is not None and self._may_delete():
                self._unregister(lambda path: path in instruction.retained)
                storage.remove_unreferenced(instruction.needed, instruction.retained, self._may_delete)
        except Exception as error:  # noqa: BLE001 - storage and store may raise anything
            _log.warning("Files of an earlier attempt could not be deleted: %s", error)
        finally:
            self._post(events.LeftoversRemoved(instruction.attempt))

    def _may_delete(self) -> bool:
        """Whether unknown files may be deleted: no slot writes, and no other JobManager leads."""
        with self._alone:
            return self._no_slot_runs and self._services.may_delete()

    def _discard(self) -> None:
        try:
            self._job.discard()
            if self._job.storage is not None:
                self._job.storage.remove_if_empty()
        except Exception as error:  # noqa: BLE001 - storage may raise anything
            _log.warning("The checkpoint directory could not be cleaned up: %s", error)
