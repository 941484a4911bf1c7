"""How watermarks and idleness of many inputs become those of one operator (Flink's StatusWatermarkValve)."""

from __future__ import annotations

from firesteel.runtime.elements import MIN_TIMESTAMP

__all__ = ["WatermarkValve"]


class WatermarkValve:
    """The minimum watermark over the active inputs, never going back.

    An input that was idle rejoins only once its watermark has caught up with the output, as in Flink: until then
    it would hold back the others for nothing.
    """

    __slots__ = ("_active", "_aligned", "_watermarks", "idle", "watermark")

    def __init__(self, inputs: int):
        self._watermarks = [MIN_TIMESTAMP] * inputs
        self._active = [True] * inputs
        self._aligned = [True] * inputs
        self.watermark = MIN_TIMESTAMP
        self.idle = False

    def advance(self, index: int, timestamp: int) -> int | None:
        """An input's watermark; returns the new combined watermark if it advanced."""
        if not self._active[index] or timestamp <= self._watermarks[index]:
            return None
        self._watermarks[index] = timestamp
        if not self._aligned[index] and timestamp >= self.watermark:
            self._aligned[index] = True
        return self._combine()

    def set_idle(self, index: int, idle: bool) -> tuple[bool, int | None]:
        """An input went idle or active; returns whether the combined idleness changed, and the new watermark."""
        if self._active[index] != idle:
            return False, None
        self._active[index] = not idle
        if not idle:
            self._aligned[index] = self._watermarks[index] >= self.watermark
            changed = self.idle
            self.idle = False
            return changed, None
        self._aligned[index] = False
        if not any(self._active):
            # the last active input had held the others back: event time moves to the furthest of them first
            self.idle = True
            furthest = max(self._watermarks)
            if self._watermarks[index] == self.watermark and furthest > self.watermark:
                self.watermark = furthest
                return True, furthest
            return True, None
        # an input that was ahead had not held anybody back
        return False, self._combine() if self._watermarks[index] == self.watermark else None

    def _combine(self) -> int | None:
        lowest: int | None = None
        for watermark, aligned in zip(self._watermarks, self._aligned, strict=True):
            if aligned and (lowest is None or watermark < lowest):
                lowest = watermark
        if lowest is None or lowest <= self.watermark:
            return None
        self.watermark = lowest
        return lowest
