"""Operator state: a function that holds records back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.api.state import ListStateDescriptor
from firesteel.datastream.function_base import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from firesteel.datastream.functions import ProcessFunction
from firesteel.testing.programs.oracle.flow import Flow, Mark, Mode, copied
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["Held", "HoldBack"]


@dataclass
class Held(ProcessFunction, CheckpointedFunction):
    """Holds records back until there are so many, then emits them in the opposite order."""

    size: int
    union: bool = False
    """Whether they are kept in union list state; the function must have one subtask then."""
    trip: Trip | None = None

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Restores what was held back."""
        store = context.get_operator_state_store()
        descriptor = ListStateDescriptor("held")
        self._state = store.get_union_list_state(descriptor) if self.union else store.get_list_state(descriptor)
        self._held = list(self._state.get())

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Keeps what is held back."""
        self._state.update(self._held)

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        """Yields records when there are enough."""
        step(self.trip)
        self._held.append(value)
        if len(self._held) >= self.size:
            yield from reversed(self._held)
            self._held = []


@dataclass(frozen=True, kw_only=True)
class HoldBack(Node):
    """A process function with operator state. What it holds at the end is lost."""

    weight: ClassVar[float] = 2.0

    function: Held

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a stream of one subtask and one order."""
        ref = sketch.pick(lambda kind: kind.lane and kind.width == 1 and kind.settled)
        if ref is None:
            return None
        return cls(
            id=sketch.next_id,
            inputs=(ref,),
            parallelism=1,
            chain=sketch.draw_chain(),
            function=Held(sketch.choice(2, 7), sketch.chance(0.3)),
        )

    @property
    def functions(self) -> tuple[str, ...]:
        """The function."""
        return ("",)

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Timestamps are those of the last record of each batch."""
        kind = inputs[0]
        if not (kind.lane and kind.width == self.parallelism == 1 and kind.settled):
            raise Misfit("which records are left depends on the order")
        return {"": replace(kind, time=EventTime.NONE, ascending=False, disorder=None, idle=False)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls process."""
        return site.finish(inputs[0].process(site.arm(self, self.function)), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Batches of records, each in the opposite order."""
        flow = Flow()
        held: list[Any] = []
        for item in inputs[0].items:
            if isinstance(item, Mark):
                flow.mark(item.time)
                continue
            held.append(copied(item.value))
            if len(held) >= self.function.size:
                for value in reversed(held):
                    flow.emit(value, item.time)
                held = []
        return {"": flow}
