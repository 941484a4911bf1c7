"""Checkpoint metrics of one task."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CheckpointMetrics"]


@dataclass(frozen=True, slots=True)
class CheckpointMetrics:
    """Travels with an acknowledgement; all times in milliseconds."""

    start_delay_ms: int = 0
    """From the trigger until the first barrier arrived."""
    alignment_ms: int = 0
    """From the first barrier to the last."""
    sync_ms: int = 0
    """How long the task stood still for its snapshot."""
    async_ms: int = 0
    """How long the snapshot was written while the task continued."""
    bytes_persisted_in_flight: int = 0
    """Bytes of buffers that the barrier overtook."""
    bytes_written: int = 0
    """New bytes: without those of files shared with earlier checkpoints."""
    unaligned: bool = False
    """Whether the barrier overtook records."""
    bytes_processed_during_alignment: int = 0
    """Bytes that were processed between the first barrier and the last."""
