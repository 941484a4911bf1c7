"""Watermark alignment: pauses the sources of a group that are too far ahead of the slowest."""

from __future__ import annotations

from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.messages import AlignWatermark, ReportWatermark

__all__ = ["WatermarkAlignment"]


class WatermarkAlignment:
    """The last watermark of every source subtask of one attempt, by group."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[tuple[str, int], int]] = {}

    def report(self, message: ReportWatermark) -> AlignWatermark:
        """Takes a subtask's watermark (MAX for one that is idle or has ended); answers how far it may go."""
        watermarks = self._groups.setdefault(message.group, {})
        watermarks[message.operator_id, message.subtask] = message.watermark
        slowest = min(watermarks.values())
        allowed = MAX_WATERMARK if slowest == MAX_WATERMARK else min(slowest + message.max_drift, MAX_WATERMARK)
        return AlignWatermark(message.operator_id, message.subtask, allowed)
