"""ExternalizedCheckpointRetention: whether checkpoints are retained when a job ends."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExternalizedCheckpointRetention"]


class ExternalizedCheckpointRetention(Enum):
    """Whether the checkpoints of a job are retained when it is cancelled."""

    DELETE_ON_CANCELLATION = 0
    """Kept after a failure, deleted when the job is cancelled."""
    RETAIN_ON_CANCELLATION = 1
    """Kept in both cases; the user deletes them."""
    NO_EXTERNALIZED_CHECKPOINTS = 2
    """Deleted in both cases."""
