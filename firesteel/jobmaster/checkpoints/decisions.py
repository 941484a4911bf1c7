"""What the CheckpointCoordinator wants done, to be carried out in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from firesteel.jobmaster.checkpoints.plan import TaskKey
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions

__all__ = [
    "CheckpointDecision",
    "DeleteCheckpoint",
    "DeleteFiles",
    "FailJob",
    "NotifyAborted",
    "NotifyComplete",
    "RequestDone",
    "RequestFailed",
    "Say",
    "StoreMetadata",
    "TriggerTasks",
]


@dataclass(frozen=True, slots=True)
class TriggerTasks:
    """Begin a checkpoint: snapshot the enumerators, report `coordinator_states`, then tell these tasks."""

    checkpoint_id: int
    timestamp: int
    options: CheckpointOptions
    tasks: tuple[TaskKey, ...]
    coordinators: tuple[str, ...] = ()
    """The operators whose enumerators take part."""


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """Write ``_metadata``, then report `stored` or `store_failed`."""

    checkpoint_id: int
    metadata: CheckpointMetadata
    location: CheckpointLocation
    is_committed: bool = True
    """Whether sinks commit with it, so that from then on the job can start from nothing older."""


@dataclass(frozen=True, slots=True)
class NotifyComplete:
    """Tell all tasks, and the enumerators, that the checkpoint exists."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class NotifyAborted:
    """Tell all tasks that the checkpoint will never exist."""

    checkpoint_id: int
    reason: str
    is_expired: bool = False
    """Whether it took too long."""


@dataclass(frozen=True, slots=True)
class DeleteCheckpoint:
    """Delete ``_metadata`` in the directory first, so that nobody takes it for complete, then the files.

    With ``whole`` delete the directory with all that is in it; without, other checkpoints still need some of that.
    """

    path: str
    files: tuple[str, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """Delete these files."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailJob:
    """The job cannot go on like this: fail it, and let the restart strategy decide."""

    reason: str


@dataclass(frozen=True, slots=True)
class RequestDone:
    """A requested checkpoint or savepoint is at that path."""

    request_id: str
    path: str
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A requested checkpoint or savepoint will not be."""

    request_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Say:
    """Warn whoever watches the job."""

    text: str


CheckpointDecision: TypeAlias = (
    TriggerTasks
    | StoreMetadata
    | NotifyComplete
    | NotifyAborted
    | DeleteCheckpoint
    | DeleteFiles
    | FailJob
    | RequestDone
    | RequestFailed
    | Say
)
"""Any of the above."""
