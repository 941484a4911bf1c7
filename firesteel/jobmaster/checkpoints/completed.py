"""Completed checkpoint store: the checkpoints that a job can be restored from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.model.checkpoint_options import SnapshotKind

__all__ = ["CompletedCheckpoint", "CompletedCheckpointStore"]


@dataclass(frozen=True, slots=True)
class CompletedCheckpoint:
    """A checkpoint that exists."""

    metadata: CheckpointMetadata
    path: str
    """Its directory."""
    is_owned: bool = True
    """Whether the job deletes it when it is not needed any more: not so with savepoints, and after NO_CLAIM."""
    is_claimed: bool = False
    """Taken over from another job: later checkpoints may share any of its files, those in its own directory too."""

    @property
    def checkpoint_id(self) -> int:
        return self.metadata.checkpoint_id

    @property
    def kind(self) -> SnapshotKind:
        """What it was taken as."""
        return self.metadata.kind


class CompletedCheckpointStore:
    """The last ``num_retained`` checkpoints, oldest first."""

    def __init__(self, num_retained: int):
        self._num_retained = num_retained
        self._checkpoints: dict[int, CompletedCheckpoint] = {}
        self._unusable: set[int] = set()
        self.paths: tuple[str, ...] = ()
        """Their directories."""

    def insert(self, checkpoint: CompletedCheckpoint) -> None:
        """Adds a checkpoint that was found, without subsuming any."""
        self._checkpoints[checkpoint.checkpoint_id] = checkpoint
        self._checkpoints = dict(sorted(self._checkpoints.items()))
        self._update_paths()

    def add(self, checkpoint: CompletedCheckpoint) -> list[CompletedCheckpoint]:
        """Adds a checkpoint that has just completed; returns those it subsumes, which are no longer in the store."""
        self.insert(checkpoint)
        usable = [each for each in self._checkpoints if each not in self._unusable]
        kept = set(usable[-self._num_retained :])
        subsumed = [each for key, each in self._checkpoints.items() if key not in kept]
        for each in subsumed:
            self._forget(each.checkpoint_id)
        self._update_paths()
        return subsumed

    def latest(self) -> CompletedCheckpoint | None:
        """The newest one that is not known to be unusable."""
        for checkpoint_id in reversed(self._checkpoints):
            if checkpoint_id not in self._unusable:
                return self._checkpoints[checkpoint_id]
        return None

    def mark_unusable(self, checkpoint_id: int) -> bool:
        """A checkpoint cannot be restored from; it goes when the next one completes. False if there is no such one."""
        if checkpoint_id not in self._checkpoints:
            return False
        self._unusable.add(checkpoint_id)
        return True

    def clear(self) -> list[CompletedCheckpoint]:
        """Takes all checkpoints out."""
        checkpoints = list(self._checkpoints.values())
        self._checkpoints.clear()
        self._unusable.clear()
        self._update_paths()
        return checkpoints

    def _forget(self, checkpoint_id: int) -> None:
        del self._checkpoints[checkpoint_id]
        self._unusable.discard(checkpoint_id)

    def _update_paths(self) -> None:
        self.paths = tuple(checkpoint.path for checkpoint in self._checkpoints.values())

    def __contains__(self, checkpoint_id: int) -> bool:
        return checkpoint_id in self._checkpoints

    def __iter__(self) -> Iterator[CompletedCheckpoint]:
        return iter(self._checkpoints.values())

    def __len__(self) -> int:
        return len(self._checkpoints)
