"""Timestamps and watermarks in the middle of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.testing.programs.nodes.watermarks import TimestampOf, Watermarks
from firesteel.testing.programs.oracle.flow import MAX_TIME, MIN_TIME, Flow, Mode
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import fields
from firesteel.testing.programs.running.building import Site

__all__ = ["AssignTimestamps"]


@dataclass(frozen=True, kw_only=True)
class AssignTimestamps(Node):
    """Calls assign_timestamps_and_watermarks: the timestamps are the records' t."""

    weight: ClassVar[float] = 3.0

    watermarks: Watermarks

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a strategy that makes no record late, or one whose watermarks have a fixed place."""
        ref = None
        if sketch.chance(0.7):
            ref = sketch.pick(lambda kind: kind.settled and kind.disorder is not None and kind.time is EventTime.NONE)
        if ref is None:
            ref = sketch.pick(lambda kind: kind.settled and (kind.disorder is not None or not kind.has_event_time))
        if ref is None:
            return None
        rng, kind = sketch.rng, sketch.types[ref]
        if kind.disorder is None:
            if sketch.chance(0.7):
                return None
            watermarks = Watermarks("none")
        else:
            name = rng.choice(("bounded", "bounded", "bounded", "punctuated", "punctuated", "none", "monotonous"))
            bound = 0 if name == "monotonous" else kind.disorder + rng.choice((0, 0, 16))
            if name == "punctuated" and kind.lane and kind.width == 1 and rng.random() < 0.5:
                bound = 0
            idle = rng.choice((4, 10)) if kind.lane and rng.random() < 0.15 else None
            watermarks = Watermarks(name, bound, idle)
        return cls(
            id=sketch.next_id,
            inputs=(ref,),
            parallelism=kind.width,
            chain=sketch.draw_chain(),
            watermarks=replace(watermarks, assigner=True),
        )

    @property
    def kind(self) -> str:
        """Counted by the watermarks."""
        idle = "+idle" if self.watermarks.idle_ms is not None else ""
        return f"AssignTimestamps[{self.watermarks.kind}{idle}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """The timestamp assigner."""
        return ("",)

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Event time restarts: earlier watermarks do not count."""
        kind, marks = inputs[0].at(self.parallelism), self.watermarks
        if not kind.settled:
            raise Misfit("records of no certain time")
        if marks.idle_ms is not None and not kind.lane:
            raise Misfit("while one subtask is idle the others may go ahead of it")
        time = EventTime.SAFE
        if marks.kind == "punctuated" and kind.lane and kind.width == 1:
            time = EventTime.EXACT
        elif marks.kind != "none" and (kind.disorder is None or kind.disorder > marks.bound):
            raise Misfit("records may be late or not")
        ascending = kind.ascending if kind.time is EventTime.NONE or kind.disorder is not None else False
        return {"": replace(kind, time=time, idle=marks.idle_ms is not None, ascending=ascending, batch_times=True)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls assign_timestamps_and_watermarks."""
        strategy = self.watermarks.strategy(site.arm(self, TimestampOf()))
        return site.finish(inputs[0].assign_timestamps_and_watermarks(strategy), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """New timestamps, new watermarks; only the end of time passes through."""
        flow, latest = Flow(), MIN_TIME
        # of several subtasks, others are behind, or have no records and hold event time back unless they become idle
        advances = self.parallelism == 1 or self.watermarks.idle_ms is not None
        for record in inputs[0].records():
            t = fields(record.value)[2]
            flow.emit(record.value, t)
            if self.watermarks.kind == "punctuated" and mode is not Mode.BATCH and advances and t > latest:
                latest = t
                flow.mark(t - self.watermarks.bound - 1)
        if inputs[0].watermark == MAX_TIME:
            flow.mark(MAX_TIME)
        return {"": flow}
