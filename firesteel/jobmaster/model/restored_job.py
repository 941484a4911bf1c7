"""The checkpoint or savepoint that a job starts from."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.runtime.checkpoint.metadata import CheckpointMetadata

__all__ = ["RestoredJob"]


@dataclass(frozen=True)
class RestoredJob:
    """The checkpoint or savepoint a job starts from."""

    metadata: CheckpointMetadata
    path: str
    claim: bool
