"""Invariant: the checkpoint that a new leader would restore a job from is never deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from firesteel.cluster.ha.job_store import PersistentJobStore
from firesteel.runtime.checkpoint.layout import METADATA_FILE
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.testing.simulation.machine.scheduler import ProcessKilled, Scheduler
from firesteel.testing.simulation.machine.standard_library import replaced
from firesteel.testing.simulation.machine.storage import Storage

__all__ = ["RegisteredCheckpoints"]


class RegisteredCheckpoints:
    """The newest checkpoint that is registered for each job which has not ended, with all files that it needs.

    What is not certain is not checked: a job whose end is just being recorded, and a checkpoint that is just being
    forgotten. If the write then fails, the job is still to be run, and is checked again.
    """

    def __init__(self, simulation: Scheduler, storage: Storage):
        self._simulation = simulation
        self._storage = storage
        self._needed: dict[str, tuple[int, frozenset[str]]] = {}
        """By job: the number of the checkpoint, and its files."""
        self.last_at: dict[str, int] = {}
        """When a checkpoint was last registered, by job."""
        self.problems: list[str] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While it lasts, looks at what is registered and what is deleted."""
        add, remove = PersistentJobStore.add_checkpoint, PersistentJobStore.remove_checkpoint
        end = PersistentJobStore.end

        def add_checkpoint(store: PersistentJobStore, job_id: str, checkpoint_id: int, path: str) -> None:
            add(store, job_id, checkpoint_id, path)
            self.last_at[job_id] = self._simulation.now
            known = self._needed.get(job_id)
            if known is None or known[0] <= checkpoint_id:
                self._needed[job_id] = checkpoint_id, self._files_of(path)

        def remove_checkpoint(store: PersistentJobStore, job_id: str, checkpoint_id: int) -> None:
            known = self._needed.get(job_id)
            if known is None or known[0] != checkpoint_id:
                remove(store, job_id, checkpoint_id)
            else:
                self._without(job_id, remove, store, job_id, checkpoint_id)

        def end_job(store: PersistentJobStore, result: Any) -> None:
            self._without(result.job_id, end, store, result)

        methods = {"add_checkpoint": add_checkpoint, "remove_checkpoint": remove_checkpoint, "end": end_job}
        with replaced(PersistentJobStore, **methods):
            self._storage.on_remove = self._removed
            try:
                yield
            finally:
                self._storage.on_remove = None

    def _without(self, job_id: str, write: Any, *arguments: Any) -> None:
        """Has something written after which a checkpoint is not needed any more."""
        known = self._needed.pop(job_id, None)
        try:
            write(*arguments)
        except ProcessKilled:
            raise
        except BaseException:
            if known is not None:
                self._needed.setdefault(job_id, known)
            raise

    def _files_of(self, directory: str) -> frozenset[str]:
        path = f"{directory}/{METADATA_FILE}"
        data = self._storage.files.get(path)
        if data is None:
            self._found(f"{path} is registered, but is not there")
            return frozenset()
        files = {segment.path for segment in CheckpointMetadata.from_bytes(data, directory).segments()}
        for file in sorted(files - self._storage.files.keys()):
            self._found(f"{file} is missing in the checkpoint {directory}, which was just registered")
        return frozenset({path, *files})

    def _removed(self, path: str) -> None:
        for job_id, (checkpoint_id, files) in self._needed.items():
            if path in files:
                self._found(f"{path} was deleted, but checkpoint {checkpoint_id} of job {job_id} needs it")

    def _found(self, problem: str) -> None:
        self.problems.append(problem)
        self._simulation.tell("CHECK", problem)
