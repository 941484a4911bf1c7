"""Disposal of subsumed and aborted checkpoints: when their files may be deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from firesteel.jobmaster.checkpoints.completed import CompletedCheckpoint
from firesteel.jobmaster.checkpoints.shared_state_registry import SharedStateRegistry
from firesteel.jobmaster.model.instructions import DeleteCheckpoint, DeleteFiles, PartInstruction
from firesteel.runtime.model.checkpoint_options import CheckpointLocation

__all__ = ["CheckpointDisposal"]

_MAX_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class _Condemned:
    """Files and directories of subsumed checkpoints that snapshots under way may still build upon."""

    before: int
    """Checkpoints of lower numbers were triggered before the tasks could know of the subsumption."""
    files: frozenset[str]
    directories: tuple[str, ...]


class CheckpointDisposal:
    """Deletes files once no checkpoint references them and no task can reference them again.

    A task may share files of the last checkpoint it was notified of. When a newer one completes and subsumes it, some
    tasks have not been notified yet: their snapshots for checkpoints under way, and, since a barrier may overtake the
    notification, even for the next one, may name files that only the subsumed checkpoint had. So those wait until every
    checkpoint triggered before has ended and one triggered afterwards has completed.
    """

    def __init__(self, registry: SharedStateRegistry):
        self._registry = registry
        self._condemned: list[_Condemned] = []
        self._directories: list[str] = []
        """Directories of checkpoints that are gone, but for files that others need."""
        self._deleted: dict[str, None] = {}

    def retire(self, checkpoint: CompletedCheckpoint, next_id: int) -> list[PartInstruction]:
        """A completed checkpoint is subsumed."""
        if not checkpoint.is_owned:
            return []
        freed = self._registry.unregister(checkpoint.checkpoint_id)
        if checkpoint.is_claimed:
            self._condemned.append(_Condemned(next_id, freed, (checkpoint.path,)))
            return []
        inside = frozenset(path for path in freed if _is_beneath(path, checkpoint.path))
        self._condemned.append(_Condemned(next_id, freed - inside, ()))
        return [self._delete_directory(checkpoint.path, inside)]

    def release(self, completed_id: int, pending: Collection[int]) -> list[PartInstruction]:
        """A checkpoint has completed, these are under way: deletes what waited for that."""
        oldest = min(pending, default=completed_id + 1)
        ready = [each for each in self._condemned if each.before <= completed_id and each.before <= oldest]
        self._condemned = [each for each in self._condemned if each not in ready]
        return self._delete(ready)

    def release_all(self) -> list[PartInstruction]:
        """No checkpoint under way will ever complete: deletes all that waits."""
        ready, self._condemned = self._condemned, []
        return self._delete(ready)

    def discard(self, checkpoint_id: int, location: CheckpointLocation) -> list[PartInstruction]:
        """A checkpoint was given up: deletes what it had written."""
        return [self._delete_directory(location.exclusive, self._registry.unregister(checkpoint_id) - self._waiting())]

    def discard_files(self, paths: Iterable[str]) -> list[PartInstruction]:
        """Deletes files that came too late to be of use, but for those that others need."""
        freed = self._registry.unneeded(paths) - self._waiting()
        self._remember(freed)
        return [DeleteFiles(tuple(sorted(freed)))] if freed else []

    def was_deleted(self, paths: Iterable[str]) -> str | None:
        """A file among these that has been deleted already."""
        return next((path for path in paths if path in self._deleted), None)

    def _waiting(self) -> frozenset[str]:
        return frozenset().union(*(each.files for each in self._condemned)) if self._condemned else frozenset()

    def _delete(self, ready: Iterable[_Condemned]) -> list[PartInstruction]:
        decisions: list[PartInstruction] = []
        for each in ready:
            self._directories += each.directories
            decisions += (DeleteCheckpoint(directory, (), whole=False) for directory in each.directories)
        freed = self._registry.unneeded(path for each in ready for path in each.files)
        self._remember(freed)
        if freed:
            decisions.append(DeleteFiles(tuple(sorted(freed))))
        for directory in list(self._directories):
            if not self._registry.needs_beneath(directory) and not self._waits_beneath(directory):
                self._directories.remove(directory)
                decisions.append(DeleteCheckpoint(directory))
        return decisions

    def _delete_directory(self, path: str, files: frozenset[str]) -> DeleteCheckpoint:
        self._remember(files)
        if self._registry.needs_beneath(path):
            self._directories.append(path)
            return DeleteCheckpoint(path, tuple(sorted(files)), whole=False)
        return DeleteCheckpoint(path, tuple(sorted(file for file in files if not _is_beneath(file, path))))

    def _waits_beneath(self, directory: str) -> bool:
        return any(_is_beneath(path, directory) for path in self._waiting())

    def _remember(self, paths: Iterable[str]) -> None:
        self._deleted.update(dict.fromkeys(paths))
        while len(self._deleted) > _MAX_REMEMBERED:
            del self._deleted[next(iter(self._deleted))]


def _is_beneath(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")
