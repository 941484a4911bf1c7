"""Stream elements of a channel: batches of records, and control events between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.runtime.model.checkpoint_options import CheckpointOptions

__all__ = [
    "MAX_WATERMARK",
    "MIN_TIMESTAMP",
    "Batch",
    "CheckpointBarrier",
    "ControlEvent",
    "EndOfData",
    "EndOfPartition",
    "Watermark",
    "WatermarkStatus",
]

MIN_TIMESTAMP = -(1 << 63)
"""Flink's Long.MIN_VALUE: no watermark has been seen."""

MAX_WATERMARK = (1 << 63) - 1
"""Flink's Long.MAX_VALUE: the end of event time."""


class Batch:
    """Records in order, with one event timestamp each or (``timestamps is None``) none at all."""

    __slots__ = ("timestamps", "values")

    def __init__(self, values: Sequence[Any], timestamps: Sequence[int] | None = None):
        self.values = values
        self.timestamps = timestamps

    def __len__(self) -> int:
        return len(self.values)

    def split(self, count: int) -> tuple[Batch, Batch]:
        """The first so many records, and the others."""
        values, timestamps = self.values, self.timestamps
        if timestamps is None:
            return Batch(values[:count]), Batch(values[count:])
        return Batch(values[:count], timestamps[:count]), Batch(values[count:], timestamps[count:])

    def __repr__(self) -> str:
        return f"Batch({list(self.values)!r}, {self.timestamps!r})"


class ControlEvent:
    """Travels in line with records and never overtakes them, except an unaligned barrier."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Watermark(ControlEvent):
    """No record with a timestamp at or before this one is expected any more."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class WatermarkStatus(ControlEvent):
    """Whether a channel takes part in its receiver's watermark."""

    idle: bool


@dataclass(frozen=True, slots=True)
class CheckpointBarrier(ControlEvent):
    """Separates the records of one checkpoint from those of the next."""

    checkpoint_id: int
    timestamp: int
    """When the coordinator triggered the checkpoint, in milliseconds."""
    options: CheckpointOptions


@dataclass(frozen=True, slots=True)
class EndOfData(ControlEvent):
    """The last record has gone by; barriers may still follow, until the producer's final checkpoint."""


@dataclass(frozen=True, slots=True)
class EndOfPartition(ControlEvent):
    """The last thing a channel carries: its producer is gone and no barrier will come."""
