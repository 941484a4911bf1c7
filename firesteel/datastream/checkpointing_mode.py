"""CheckpointingMode: exactly-once or at-least-once."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """The guarantee of state consistency after a recovery."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
