"""In-flight records between tasks at an unaligned checkpoint."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

from firesteel.common.errors import CorruptStateError
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.checkpoint.state_file_reader import StateFileReader
from firesteel.runtime.model.elements import Watermark, WatermarkStatus
from firesteel.runtime.network.gate import InFlightItem

__all__ = ["IN_FLIGHT", "in_flight"]

IN_FLIGHT = ("records", "watermark", "idle")
"""What can be in flight; ``idle`` is the last status of a channel, if that is idle."""


def in_flight(checkpoint: Path) -> set[str]:
    """Returns what a checkpoint has in flight; nothing if it was deleted meanwhile, or cannot be read."""
    try:
        data = (checkpoint / "_metadata").read_bytes()
        handles = CheckpointMetadata.from_bytes(data, str(checkpoint)).channels
        with StateFileReader() as files:
            items = {handle: pickle.loads(files.read(handle.data)) for handle in handles}
    except (OSError, CorruptStateError):
        return set()
    channels: dict[tuple[str, int, int], list[InFlightItem]] = {}
    for handle in sorted(items, key=lambda handle: handle.at_producer):
        channels.setdefault((handle.edge, handle.producer, handle.consumer), []).extend(items[handle])
    return set().union(*map(_kinds, channels.values()))


def _kinds(items: Sequence[InFlightItem]) -> set[str]:
    kinds = {"records" for item in items if isinstance(item, bytes)}
    kinds |= {"watermark" for item in items if isinstance(item, Watermark)}
    kinds |= {"idle" for item in [each for each in items if isinstance(each, WatermarkStatus)][-1:] if item.idle}
    return kinds
