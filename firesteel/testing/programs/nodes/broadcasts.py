"""Broadcast state: records that wait for their rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.api.state import ListStateDescriptor, MapStateDescriptor
from firesteel.datastream.broadcast_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf
from firesteel.testing.programs.oracle.flow import Flow, Mode, by_time
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import SHAPES, fields, make
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["Broadcast", "Passing", "Waiting"]

RULES = MapStateDescriptor("rules")
WAITING = ListStateDescriptor("waiting")


def _ruled(shape: str, record: Any, rule: int) -> Any:
    k, v, t, trail = fields(record)
    return make(shape, k, v * 10 + rule, t, trail)


@dataclass
class Waiting(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    """Joins records with the rule of their remainder: those that come before their rule wait in keyed state."""

    shape: str
    modulus: int
    trip: Trip | None = None

    def open(self, runtime_context: Any) -> None:
        """Gets the state of the keys."""
        self._waiting = runtime_context.get_list_state(WAITING)

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        """Yields the record if its rule is there."""
        step(self.trip)
        rule = fields(value)[0] % self.modulus
        if ctx.get_broadcast_state(RULES).contains(rule):
            yield _ruled(self.shape, value, rule)
        else:
            self._waiting.add(value)

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Iterator[Any]:
        """Keeps the rule, and yields all records that waited for it."""
        rule = fields(value)[0] % self.modulus
        state = ctx.get_broadcast_state(RULES)
        if state.contains(rule):
            state.put(rule, state.get(rule) + 1)
            return
        state.put(rule, 1)
        ready: list[Any] = []

        def take(_key: Any, waiting: Any) -> None:
            records = list(waiting.get())
            mine = [record for record in records if fields(record)[0] % self.modulus == rule]
            if mine:
                ready.extend(mine)
                waiting.clear()  # all records of a key wait for the same rule

        ctx.apply_to_keyed_state(WAITING, take)
        for record in ready:
            yield _ruled(self.shape, record, rule)


@dataclass
class Passing(BroadcastProcessFunction[Any, Any, Any]):
    """Passes records on, independent of the broadcast."""

    shape: str
    modulus: int
    trip: Trip | None = None

    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        """Yields the record."""
        step(self.trip)
        yield make(self.shape, *fields(value))

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Iterator[Any]:
        """Counts the rule."""
        state = ctx.get_broadcast_state(RULES)
        rule = fields(value)[0] % self.modulus
        state.put(rule, (state.get(rule) or 0) + 1)
        return iter(())


@dataclass(frozen=True, kw_only=True)
class Broadcast(Node):
    """Connects a stream with a broadcast stream."""

    key: KeyOf | None
    function: Waiting | Passing

    weight: ClassVar[float] = 1.5

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a stream and one with rules."""
        first = sketch.pick(lambda kind: kind.settled)
        second = sketch.pick(lambda kind: kind.settled)
        if first is None or second is None:
            return None
        rng = sketch.rng
        keyed = rng.random() < 0.7
        function_class: Any = Waiting if keyed else Passing
        return cls(
            id=sketch.next_id,
            inputs=(first, second),
            parallelism=sketch.draw_width() if keyed else sketch.types[first].width,
            chain=sketch.draw_chain(),
            key=KeyOf(rng.choice(KEY_KINDS)) if keyed else None,
            function=function_class(rng.choice(SHAPES), rng.choice((1, 2, 5))),
        )

    @property
    def kind(self) -> str:
        """Counted by the function."""
        return f"Broadcast[{type(self.function).__name__}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """The function, and the key selector."""
        return ("", "key") if self.key is not None else ("",)

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Keeps the order of each key; timestamps are those of a record or of a rule."""
        kind, rules = inputs
        if not kind.settled or not rules.settled:
            raise Misfit("records that are not certain")
        moved = kind.shuffled(self.parallelism, ordered=True) if self.key else kind.at(self.parallelism)
        return {
            "": replace(
                moved,
                shape=self.function.shape,
                time=EventTime.NONE,
                ascending=False,
                lane=False,
                disorder=None,
                idle=False,
                batchable=kind.batchable and rules.batchable,
            )
        }

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls broadcast, connect and process."""
        stream = inputs[0] if self.key is None else inputs[0].key_by(site.arm(self, self.key, "key"))
        connected = stream.connect(inputs[1].broadcast(RULES))
        return site.finish(connected.process(site.arm(self, self.function)), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Each record with its rule, if that ever comes."""
        modulus = self.function.modulus
        rules = {fields(record.value)[0] % modulus for record in inputs[1].records()}
        flow = Flow()
        records = list(inputs[0].records())
        if mode is Mode.BATCH and self.key is not None:
            records = by_time(records)
        for record in records:
            rule = fields(record.value)[0] % modulus
            if isinstance(self.function, Passing):
                flow.emit(make(self.function.shape, *fields(record.value)), record.time)
            elif rule in rules:
                flow.emit(_ruled(self.function.shape, record.value, rule), record.time)
        flow.mark(min(source.watermark for source in inputs))
        return {"": flow}
