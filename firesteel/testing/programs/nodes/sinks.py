"""Sinks: what they hold is compared with the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.testing.programs.oracle.flow import Flow, Mode
from firesteel.testing.programs.program import Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.store_sink import StoreSink

__all__ = ["Sink"]


@dataclass(frozen=True, kw_only=True)
class Sink(Node):
    """Keeps the records of a stream: in files that are committed with checkpoints, or sent to the client."""

    is_sink: ClassVar[bool] = True
    weight: ClassVar[float] = 0.5

    how: str = "store"

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a sink for a stream."""
        ref = sketch.pick()
        return None if ref is None else cls.of(sketch, ref)

    @classmethod
    def of(cls, sketch: Sketch, ref: Any) -> Node:
        """Draws a sink for this stream."""
        how = sketch.rng.choices(("store", "collect"), (4, 1))[0]
        parallelism = sketch.types[ref].width if sketch.chance(0.8) else sketch.draw_width()
        return cls(
            id=sketch.next_id, inputs=(ref,), how=how, parallelism=parallelism, chain=sketch.choice("", "", "off")
        )

    @property
    def kind(self) -> str:
        """Counted by where records go."""
        return f"Sink[{self.how}]"

    @property
    def channel(self) -> str:
        """The channel on which records are sent to the client."""
        return f"collect-{self.id}"

    @property
    def functions(self) -> tuple[str, ...]:
        """The writer."""
        return ("",) if self.how == "store" else ()

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Takes any stream."""
        if len(inputs) != 1:
            raise Misfit("a sink has one input")
        return {}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls sink_to."""
        if self.how == "collect":
            sink: Any = CollectSink(self.channel)
        else:
            sink = site.arm(self, StoreSink(str(site.sink_directory(self))))
        return site.finish(inputs[0].sink_to(sink), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Has no output."""
        return {}
