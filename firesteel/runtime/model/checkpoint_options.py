"""Checkpoint options of a barrier: the kind of snapshot and its location."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["CheckpointLocation", "CheckpointOptions", "SnapshotKind", "StopMode"]


class SnapshotKind(str, Enum):
    """What a snapshot is for, and so what it looks like."""

    CHECKPOINT = "checkpoint"
    """The backend's own format; may share files with earlier checkpoints."""
    FULL_CHECKPOINT = "full-checkpoint"
    """The backend's own format, sharing nothing with what was before; later ones may share with it.

    The first one after a NO_CLAIM restore is of this kind, and any that a user requests so.
    """
    SAVEPOINT = "savepoint"
    """A savepoint in the canonical format."""
    NATIVE_SAVEPOINT = "native-savepoint"
    """A savepoint in the backend's own format, sharing nothing."""

    @property
    def is_savepoint(self) -> bool:
        """Whether the user owns it."""
        return self in (SnapshotKind.SAVEPOINT, SnapshotKind.NATIVE_SAVEPOINT)

    @property
    def may_share(self) -> bool:
        """Whether files of completed checkpoints may be used again."""
        return self is SnapshotKind.CHECKPOINT


class StopMode(str, Enum):
    """What the job does after a savepoint."""

    SUSPEND = "suspend"
    """Sources stop at the barrier; nothing is finished."""
    DRAIN = "drain"
    """Sources end before the barrier: event time ends, windows fire, operators finish."""


@dataclass(frozen=True, slots=True)
class CheckpointLocation:
    """The directories of one checkpoint; a savepoint's two are the same."""

    exclusive: str
    shared: str


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """Travels with every barrier of a checkpoint."""

    kind: SnapshotKind
    location: CheckpointLocation
    exactly_once: bool = True
    unaligned: bool = False
    alignment_timeout: int | None = None
    """With ``unaligned`` not set yet: milliseconds after which an aligned barrier becomes an unaligned one."""
    stop: StopMode | None = None
