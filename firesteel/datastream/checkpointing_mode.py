"""What checkpoints guarantee about state."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """How often a record may have acted on the state after a recovery."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
