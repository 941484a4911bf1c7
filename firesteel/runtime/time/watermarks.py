"""Watermark valve: combines the watermarks and idleness of several inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP

__all__ = ["ConnectedInputs", "WatermarkValve", "create_valve"]


class WatermarkValve:
    """The minimum watermark over the active inputs, never going back (Flink's StatusWatermarkValve).

    An input that was idle rejoins only once its watermark has caught up with the output, as in Flink: until then
    it would hold back the others for nothing. An input that has finished is left out. When all that have not finished
    are idle, the output moves to the furthest of them and becomes idle. It reaches MAX_WATERMARK, the end of event
    time, when all inputs have finished.
    """

    __slots__ = (
        "_active",
        "_aligned",
        "_emit_idle",
        "_emit_watermark",
        "_finished",
        "_watermarks",
        "idle",
        "watermark",
    )

    def __init__(self, inputs: int, emit_watermark: Callable[[int], None], emit_idle: Callable[[bool], None]):
        self._emit_watermark = emit_watermark
        self._emit_idle = emit_idle
        self._watermarks = [MIN_TIMESTAMP] * inputs
        self._active = [True] * inputs
        self._aligned = [True] * inputs
        self._finished = [False] * inputs
        self.watermark = MIN_TIMESTAMP
        self.idle = False

    def restore(self, watermark: int) -> None:
        """Continues from a watermark that was sent before a restart; the inputs start without one."""
        self.watermark = watermark

    def advance(self, index: int, timestamp: int) -> None:
        """Takes an input's watermark, which counts only while the input is active."""
        if timestamp == MAX_WATERMARK:
            self.finish(index)
        elif self._active[index] and timestamp > self._watermarks[index]:
            self._watermarks[index] = timestamp
            if timestamp >= self.watermark:
                self._aligned[index] = True
            self._combine()

    def set_idle(self, index: int, idle: bool) -> None:
        """Takes an input's status."""
        if self._finished[index] or self._active[index] != idle:
            return
        if idle:
            self._leave(index)
            return
        self._active[index] = True
        self._aligned[index] = self._watermarks[index] >= self.watermark
        self._set_idle(False)
        self._combine()

    def finish(self, index: int) -> None:
        """Takes the end of an input; also of one that is idle."""
        if self._finished[index]:
            return
        self._finished[index] = True
        if all(self._finished):
            self._active[index] = False
            self._set_idle(False)
            self._send(MAX_WATERMARK)
        elif self._active[index]:
            self._leave(index)

    def ends_with(self, index: int) -> bool:
        """Whether all other inputs have finished."""
        return all(finished or at == index for at, finished in enumerate(self._finished))

    def _leave(self, index: int) -> None:
        """An active input no longer counts."""
        self._active[index] = self._aligned[index] = False
        if any(self._active):
            self._combine()
        else:
            self._send(max(w for w, finished in zip(self._watermarks, self._finished, strict=True) if not finished))
            self._set_idle(True)

    def _combine(self) -> None:
        aligned = [w for w, counts in zip(self._watermarks, self._aligned, strict=True) if counts]
        if aligned:
            self._send(min(aligned))

    def _send(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.watermark = watermark
            self._emit_watermark(watermark)

    def _set_idle(self, idle: bool) -> None:
        if idle != self.idle:
            self.idle = idle
            self._emit_idle(idle)


class ConnectedInputs:
    """The minimum watermark over the active ones of several connected inputs, each of which has channels of its own.

    Within an input a valve combines them. The inputs are different streams: one that was idle holds back the others as
    soon as it is active again, however far behind it is, and when all are idle event time stays where it was. An input
    that has finished is left out. (In Flink an IndexedCombinedWatermarkStatus behind a valve per input.)
    """

    __slots__ = ("_channels", "_emit_idle", "_emit_watermark", "_unfinished", "idle", "watermark")

    def __init__(
        self, input_of: Sequence[int], emit_watermark: Callable[[int], None], emit_idle: Callable[[bool], None]
    ):
        """``input_of`` maps each channel to its input."""
        self._emit_watermark = emit_watermark
        self._emit_idle = emit_idle
        self.watermark = MIN_TIMESTAMP
        self.idle = False
        valves = {
            index: WatermarkValve(channels, self._combine, self._combine)
            for index, channels in Counter(input_of).items()
        }
        self._unfinished = set(valves.values())
        self._channels = [(valves[index], input_of[:at].count(index)) for at, index in enumerate(input_of)]

    def restore(self, watermark: int) -> None:
        """Continues from a watermark that was sent before a restart; the inputs start without one."""
        self.watermark = watermark

    def advance(self, index: int, timestamp: int) -> None:
        valve, channel = self._channels[index]
        if timestamp == MAX_WATERMARK:
            self.finish(index)
        else:
            valve.advance(channel, timestamp)

    def set_idle(self, index: int, idle: bool) -> None:
        """Takes a channel's status."""
        valve, channel = self._channels[index]
        valve.set_idle(channel, idle)

    def finish(self, index: int) -> None:
        """Takes the end of a channel."""
        valve, channel = self._channels[index]
        if valve.ends_with(channel):
            self._unfinished.discard(valve)
        valve.finish(channel)

    def _combine(self, _changed: int | bool) -> None:
        unfinished = self._unfinished
        active = [valve.watermark for valve in unfinished if not valve.idle]
        is_idle = bool(unfinished) and not active
        # all idle: the last one has become so, or another one has finished that held them back
        watermark = min(active or [valve.watermark for valve in unfinished], default=MAX_WATERMARK)
        has_advanced = watermark > self.watermark
        if has_advanced or not is_idle:
            # consumers ignore the watermarks of an idle input
            self._set_idle(False)
        if has_advanced:
            self.watermark = watermark
            self._emit_watermark(watermark)
        if is_idle:
            self._set_idle(True)

    def _set_idle(self, idle: bool) -> None:
        if idle != self.idle:
            self.idle = idle
            self._emit_idle(idle)


def create_valve(
    input_of: Sequence[int], emit_watermark: Callable[[int], None], emit_idle: Callable[[bool], None]
) -> WatermarkValve | ConnectedInputs:
    """What combines channels of which each belongs to one of the operator's inputs."""
    if len(set(input_of)) > 1:
        return ConnectedInputs(input_of, emit_watermark, emit_idle)
    return WatermarkValve(len(input_of), emit_watermark, emit_idle)
