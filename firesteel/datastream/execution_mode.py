"""RuntimeExecutionMode: streaming, batch or automatic."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """How a program is executed."""

    STREAMING = 0
    """All tasks run concurrently; records are exchanged as they are produced."""
    BATCH = 1
    """Stage by stage; needs bounded sources."""
    AUTOMATIC = 2
    """BATCH if all sources are bounded, else STREAMING."""
