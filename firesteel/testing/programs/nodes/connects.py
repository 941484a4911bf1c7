"""Two streams in one operator: co-map, co-flat-map and keyed co-process functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.api.state import MapStateDescriptor, ValueStateDescriptor
from firesteel.datastream.functions import CoFlatMapFunction, CoMapFunction, KeyedCoProcessFunction
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf, k_of
from firesteel.testing.programs.nodes.steps import END, GRID
from firesteel.testing.programs.oracle.flow import Flow, Mode, Record, copied
from firesteel.testing.programs.oracle.keyed import run_keyed
from firesteel.testing.programs.oracle.processes import ProcessOracle
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import SHAPES, fields, make
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["CoMap", "CoProcess", "Either", "Pairs", "Spread"]


@dataclass
class Either(CoMapFunction):
    """Makes one shape of two."""

    shape: str
    trip: Trip | None = None

    def map1(self, value: Any) -> Any:
        """Keeps v."""
        step(self.trip)
        return make(self.shape, *fields(value))

    def map2(self, value: Any) -> Any:
        """Negates v."""
        step(self.trip)
        k, v, t, trail = fields(value)
        return make(self.shape, k, -v, t, trail)


@dataclass
class Spread(CoFlatMapFunction):
    """Makes one shape of two, with none or two results of each record of the second."""

    shape: str
    trip: Trip | None = None

    def flat_map1(self, value: Any) -> Iterator[Any]:
        """One result."""
        step(self.trip)
        yield make(self.shape, *fields(value))

    def flat_map2(self, value: Any) -> Iterator[Any]:
        """Two results if v is even, else none."""
        step(self.trip)
        k, v, t, trail = fields(value)
        for number in range(0 if v % 2 else 2):
            yield make(self.shape, k, v + number, t, trail)


def joined(inputs: Sequence[StreamType], shape: str, width: int | None) -> StreamType:
    """Returns the type of what comes of two streams record by record."""
    if len(inputs) != 2 or not all(kind.settled for kind in inputs):
        raise Misfit("two streams of certain records are needed")
    safe = all(kind.time is EventTime.SAFE and not kind.idle for kind in inputs)
    timed = all(kind.time is not EventTime.NONE for kind in inputs)
    return StreamType(
        shape,
        time=EventTime.SAFE if safe else EventTime.TAINTED if timed else EventTime.NONE,
        width=width,
        idle=any(kind.idle for kind in inputs),
        volume=2 * sum(kind.volume for kind in inputs),
        batchable=all(kind.batchable for kind in inputs),
        batch_times=all(kind.batch_times for kind in inputs),
    )


@dataclass(frozen=True, kw_only=True)
class CoMap(Node):
    """Calls connect, and map or flat_map."""

    function: Either | Spread

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws two streams of one parallelism, perhaps the same one twice."""
        first = sketch.pick(lambda kind: kind.settled)
        if first is None:
            return None
        width = sketch.types[first].width
        second = sketch.pick(lambda kind: kind.settled and kind.width == width)
        assert second is not None
        function_class: Any = sketch.choice(Either, Spread)
        return cls(
            id=sketch.next_id,
            inputs=(first, second),
            parallelism=width,
            chain=sketch.draw_chain(),
            function=function_class(sketch.choice(*SHAPES)),
        )

    @property
    def kind(self) -> str:
        """Counted by the function."""
        return f"CoMap[{type(self.function).__name__}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """The function."""
        return ("",)

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """As a union."""
        if any(kind.width != self.parallelism for kind in inputs):
            raise Misfit("streams of different parallelism")
        return {"": joined(inputs, self.function.shape, self.parallelism)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls connect and the function."""
        connected = inputs[0].connect(inputs[1])
        function = site.arm(self, self.function)
        mapped = connected.map(function) if isinstance(self.function, Either) else connected.flat_map(function)
        return site.finish(mapped, self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """The records of one input after the other."""
        flow = Flow()
        for side, source in enumerate(inputs):
            for item in source.items:
                if isinstance(item, Record):
                    for value in self._apply(side, copied(item.value)):
                        flow.emit(value, item.time)
        flow.mark(min(source.watermark for source in inputs))
        return {"": flow}

    def _apply(self, side: int, value: Any) -> Iterator[Any]:
        function = self.function
        if isinstance(function, Either):
            yield function.map2(value) if side else function.map1(value)
        else:
            yield from function.flat_map2(value) if side else function.flat_map1(value)


@dataclass
class Pairs(KeyedCoProcessFunction):
    """Adds up each side for intervals of event time, or until it ends; emits both sums together."""

    shape: str
    key: str
    size: int = 0
    """The interval; 0 for the end of event time."""
    trip: Trip | None = None

    def open(self, runtime_context: Any) -> None:
        """Sums for each side, and how many records there were."""
        self._first = runtime_context.get_map_state(MapStateDescriptor("first"))
        self._second = runtime_context.get_map_state(MapStateDescriptor("second"))
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        """Adds to the first side."""
        return self._add(self._first, value, ctx)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        """Adds to the second side."""
        return self._add(self._second, value, ctx)

    def _add(self, sums: Any, value: Any, ctx: Any) -> Iterator[Any]:
        step(self.trip)
        end = (ctx.timestamp() // self.size + 1) * self.size if self.size else END
        sums.put(end, (sums.get(end) or 0) + fields(value)[1])
        self._count.update((self._count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(end)
        return iter(())

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[Any]:
        """Yields the sums of an interval."""
        step(self.trip)
        first, second = self._first.get(timestamp) or 0, self._second.get(timestamp) or 0
        self._first.remove(timestamp)
        self._second.remove(timestamp)
        t = 0 if timestamp == END else timestamp
        yield make(self.shape, k_of(self.key, ctx.get_current_key()), 3 * first + second, t, (first % 11, second % 11))


@dataclass(frozen=True, kw_only=True)
class CoProcess(Node):
    """A keyed co-process function."""

    weight: ClassVar[float] = 1.5

    keys: tuple[KeyOf, KeyOf]
    function: Pairs

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws two streams and an interval, if their event time is known."""
        refs = sketch.pick(lambda kind: kind.settled), sketch.pick(lambda kind: kind.settled)
        if refs[0] is None or refs[1] is None:
            return None
        rng = sketch.rng
        kinds = [sketch.types[ref] for ref in refs if ref is not None]
        timed = all(kind.time is EventTime.SAFE and not kind.idle for kind in kinds)
        key = rng.choice(KEY_KINDS)
        return cls(
            id=sketch.next_id,
            inputs=(refs[0], refs[1]),
            parallelism=sketch.draw_width(),
            chain=sketch.draw_chain(),
            keys=(KeyOf(key), KeyOf(key)),
            function=Pairs(rng.choice(SHAPES), key, rng.choice((0, GRID, 10 * GRID)) if timed else 0),
        )

    @property
    def kind(self) -> str:
        """Counted by its timers."""
        return f"CoProcess[{'interval' if self.function.size else 'end'}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """The function and the key selectors."""
        return ("", "key", "key2")

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Sums come in the order of time."""
        kind = joined(inputs, self.function.shape, self.parallelism)
        if not self.function.size:
            return {"": replace(kind, time=EventTime.NONE, ordered=True, batch_times=True, idle=False)}
        if kind.time is not EventTime.SAFE:
            raise Misfit("what is late depends on timing")
        return {"": replace(kind.in_event_time(), ordered=True, ascending=True)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls connect, key_by and process."""
        selectors = site.arm(self, self.keys[0], "key"), site.arm(self, self.keys[1], "key2")
        connected = inputs[0].connect(inputs[1]).key_by(*selectors)
        return site.finish(connected.process(site.arm(self, self.function)), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Runs the function with the oracle's states and timers."""
        return run_keyed(lambda: ProcessOracle(self.function), inputs, [key.get_key for key in self.keys], mode)
