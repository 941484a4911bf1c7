"""Process functions: keyed ones made of steps, and plain ones with side outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.datastream.functions import KeyedProcessFunction, ProcessFunction
from firesteel.datastream.output_tag import OutputTag
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf, k_of
from firesteel.testing.programs.nodes import steps
from firesteel.testing.programs.oracle.flow import Flow, Mark, Mode, copied
from firesteel.testing.programs.oracle.keyed import run_keyed
from firesteel.testing.programs.oracle.processes import ProcessOracle, outputs_of
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import MUTABLE_SHAPES, SHAPES, change, fields
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["KeyedProcess", "Process", "Route", "Steps"]

SIDE = "side"


@dataclass
class Steps(KeyedProcessFunction):
    """Does its steps one after the other; may send some results to a side output."""

    shape: str
    key: str
    steps: tuple[steps.Step, ...]
    side_every: int = 0
    """Results whose v is divisible by this number go to the side output, if it is not 0."""
    trip: Trip | None = None

    def open(self, runtime_context: Any) -> None:
        """Opens the steps."""
        for number, one in enumerate(self.steps):
            one.open(runtime_context, number)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        """Yields what comes of each step."""
        step(self.trip)
        for one in self.steps:
            yield from self._routed(one.element(value, self.shape, ctx))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        """Yields what comes of the step whose timer it is."""
        step(self.trip)
        one = self.steps[timestamp % steps.GRID // 4]
        yield from self._routed(one.timer(timestamp, k_of(self.key, ctx.get_current_key()), self.shape, ctx))

    def _routed(self, results: Iterator[Any]) -> Iterator[Any]:
        for result in results:
            if self.side_every and fields(result)[1] % self.side_every == 0:
                yield OutputTag(SIDE), result
            else:
                yield result


@dataclass(frozen=True, kw_only=True)
class KeyedProcess(Node):
    """A keyed process function."""

    weight: ClassVar[float] = 4.0

    key: KeyOf
    function: Steps

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws one to three steps that fit the stream."""
        ref = sketch.pick()
        if ref is None:
            return None
        rng, kind = sketch.rng, sketch.types[ref]
        fitting = [step_class for step_class in _STEPS if _fits(step_class, kind)]
        key = rng.choice(KEY_KINDS)
        chosen = tuple(_draw_step(sketch, rng.choice(fitting)) for _ in range(rng.choices((1, 2, 3), (5, 2, 1))[0]))
        side = rng.choice((0, 0, 2, 3)) if all(one.settles or not one.unsettles for one in chosen) else 0
        return cls(
            id=sketch.next_id,
            inputs=(ref,),
            parallelism=sketch.draw_width(),
            chain=sketch.draw_chain(),
            key=KeyOf(key),
            function=Steps(rng.choice(SHAPES), key, chosen, side),
        )

    @property
    def kind(self) -> str:
        """Counted by the first step."""
        return f"KeyedProcess[{type(self.function.steps[0]).__name__}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """The function and the key selector."""
        return ("", "key")

    @property
    def mutates(self) -> bool:
        """Whether a step changes what it has emitted."""
        return any(one.mutates for one in self.function.steps)

    @property
    def waits_for_time(self) -> bool:
        """Whether it has event-time timers."""
        return any(one.needs_time for one in self.function.steps)

    @property
    def takes_time(self) -> bool:
        """Whether a step waits in real time."""
        return any(one.max_volume is not None for one in self.function.steps)

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Keeps order, time and certainty as far as all steps do."""
        kind, done = inputs[0], self.function.steps
        for one in done:
            if not _fits(type(one), kind):
                raise Misfit(f"{type(one).__name__} depends on timing here")
        if any(one.unsettles for one in done) and (len(done) > 1 or self.function.side_every):
            raise Misfit("sums of different steps cannot be told apart")
        if any(one.needs_time for one in done):
            kind = kind.in_event_time()
        keeps = all(one.keeps_time for one in done)
        moved = kind.shuffled(self.parallelism, ordered=True)
        ordered = all(one.needs_order for one in done) or len(done) == 1
        result = replace(
            moved,
            shape=self.function.shape,
            settled=not any(one.unsettles for one in done),
            # results of timers come among those of records wherever watermarks happen to be
            ordered=ordered and (moved.ordered or not done[0].needs_order) and not done[0].unsettles
            if len(done) == 1
            else False,
            ascending=False,
            time=moved.time if keeps and kind.has_event_time else EventTime.NONE,
        )
        if kind.time is EventTime.EXACT and result.time is not EventTime.NONE:
            result = replace(result, time=EventTime.TAINTED)
        return {"": result, SIDE: result} if self.function.side_every else {"": result}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls key_by and process."""
        keyed = inputs[0].key_by(site.arm(self, self.key, "key"))
        return site.finish(keyed.process(site.arm(self, self.function)), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Runs the function with the oracle's states and timers."""
        tags = (SIDE,) if self.function.side_every else ()
        in_batch = mode is Mode.BATCH
        return run_keyed(
            lambda: ProcessOracle(self.function, tags, in_batch=in_batch), inputs, [self.key.get_key], mode
        )


_STEPS: tuple[type[steps.Step], ...] = (
    steps.Summed,
    steps.Kept,
    steps.Collected,
    steps.Counted,
    steps.Reduced,
    steps.Aggregated,
    steps.Expired,
    steps.TimedBuckets,
    steps.Inactivity,
    steps.EndTotal,
    steps.Chunks,
)


def _fits(step_class: type[steps.Step], kind: StreamType) -> bool:
    if not kind.settled:
        return step_class.settles or step_class.unsettles
    return (
        (step_class.max_volume is None or kind.volume <= step_class.max_volume)
        and (kind.ordered or not step_class.needs_order)
        and (kind.has_event_time or not step_class.needs_time)
        and (kind.ascending or not step_class.needs_ascending)
    )


def _draw_step(sketch: Sketch, step_class: type[steps.Step]) -> steps.Step:
    rng = sketch.rng
    ttl = rng.choice(("", "", "", "write", "read"))
    if step_class is steps.Summed:
        return steps.Summed(ttl, rng.choice((0, 0, 4)))
    if step_class is steps.Collected:
        return steps.Collected(ttl, rng.choice((2, 5)))
    if step_class is steps.Counted:
        return steps.Counted(ttl, rng.choice(KEY_KINDS))
    if step_class is steps.Expired:
        return steps.Expired(ttl, rng.choice(("", "incremental", "snapshot")))
    if step_class is steps.TimedBuckets:
        return steps.TimedBuckets(ttl, rng.choice((32, 96, 320)))
    if step_class is steps.Inactivity:
        return steps.Inactivity(ttl, rng.choice((32, 128)))
    return step_class(ttl)


@dataclass
class Route(ProcessFunction):
    """Sends some records to a side output, and changes what it has emitted."""

    modulus: int
    changes: bool = False
    trip: Trip | None = None

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        """Yields the record once."""
        step(self.trip)
        v = fields(value)[1]
        yield (OutputTag(SIDE), value) if v % self.modulus == 0 else value
        if self.changes:
            change(value, -3)


@dataclass(frozen=True, kw_only=True)
class Process(Node):
    """A process function with a side output."""

    function: Route

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws what goes to the side."""
        ref = sketch.pick(lambda kind: kind.settled)
        if ref is None:
            return None
        kind = sketch.types[ref]
        changes = kind.shape in MUTABLE_SHAPES and sketch.chance(0.5)
        return cls(
            id=sketch.next_id,
            inputs=(ref,),
            parallelism=kind.width,
            chain=sketch.draw_chain(),
            function=Route(sketch.choice(2, 3), changes),
        )

    @property
    def functions(self) -> tuple[str, ...]:
        """The function."""
        return ("",)

    @property
    def mutates(self) -> bool:
        """Whether it changes what it has emitted."""
        return self.function.changes

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Both outputs keep everything."""
        kind = inputs[0].at(self.parallelism)
        if not kind.settled or (self.function.changes and kind.shape not in MUTABLE_SHAPES):
            raise Misfit("the function does not fit")
        return {"": kind, SIDE: kind}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls process."""
        return site.finish(inputs[0].process(site.arm(self, self.function)), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Each record to one of the outputs."""
        outputs = {"": Flow(), SIDE: Flow()}
        for item in inputs[0].items:
            if isinstance(item, Mark):
                for flow in outputs.values():
                    flow.mark(item.time)
            else:
                outputs_of(self.function.process_element(copied(item.value), None), item.time, outputs)  # type: ignore[arg-type]
        return outputs
