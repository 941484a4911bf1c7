"""Whether a program runs as a stream, as a batch, or as its sources allow."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """How a program is executed."""

    STREAMING = 0
    """All tasks at once, records pass from one to the next as they come."""
    BATCH = 1
    """Stage by stage; needs bounded sources."""
    AUTOMATIC = 2
    """BATCH if all sources are bounded, else STREAMING."""
