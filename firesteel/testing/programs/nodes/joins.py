"""Joins of two streams: interval joins, and windows of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.datastream.functions import CoGroupFunction, ProcessJoinFunction
from firesteel.datastream.window import CountEvictor, TumblingEventTimeWindows
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf
from firesteel.testing.programs.nodes.connects import joined
from firesteel.testing.programs.nodes.steps import GRID
from firesteel.testing.programs.oracle.flow import Flow, Mode, Record, copied
from firesteel.testing.programs.program import EventTime, Misfit, Node, Ref, Sketch, StreamType
from firesteel.testing.programs.records import MUTABLE_SHAPES, SHAPES, change, fields, make
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["IntervalJoin", "WindowCoGroup"]

_MAX_PAIRS = 20_000
"""Pairs grow with the product of both streams, and so would the programs behind them."""


@dataclass
class Combine(ProcessJoinFunction):
    """One result per pair; may change both records."""

    shape: str
    changes: bool = False
    trip: Trip | None = None

    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        """Makes a record of both."""
        step(self.trip)
        yield self.combined(left, right, ctx.get_timestamp())
        if self.changes:
            change(left, -1)
            change(right, -2)

    def combined(self, left: Any, right: Any, time: int) -> Any:
        """The result for a pair."""
        k, v, _, _ = fields(left)
        return make(self.shape, k, 3 * v + fields(right)[1], time, (v % 11,))


class _Join(Node):
    """What both kinds of joins share."""

    keys: tuple[KeyOf, KeyOf]
    function: Any

    @property
    def mutates(self) -> bool:
        """Whether it changes the records of a pair or a window."""
        changes: bool = self.function.changes
        return changes

    @property
    def functions(self) -> tuple[str, ...]:
        """The function and the key selectors."""
        return ("", "key", "key2")

    @staticmethod
    def draw_inputs(sketch: Sketch) -> Any:
        """Two streams of which no record is late."""
        refs = sketch.pick(_is_safe), sketch.pick(_is_safe)
        return None if None in refs else refs

    @staticmethod
    def draw_place(sketch: Sketch, refs: tuple[Ref, Ref], key: str) -> dict[str, Any]:
        """Draws what a join of two streams by a kind of key has, whatever it does."""
        return {
            "id": sketch.next_id,
            "inputs": refs,
            "parallelism": sketch.draw_width(),
            "chain": sketch.draw_chain(),
            "keys": (KeyOf(key), KeyOf(key)),
        }

    @staticmethod
    def draw_function(sketch: Sketch, refs: tuple[Ref, Ref]) -> tuple[str, bool]:
        """Draws the shape of results, and whether the function changes what it gets."""
        shapes = [sketch.types[ref].shape for ref in refs]
        return sketch.rng.choice(SHAPES), MUTABLE_SHAPES.issuperset(shapes) and sketch.rng.random() < 0.6

    def groups(self, inputs: Sequence[Flow]) -> Iterator[tuple[list[Record], list[Record]]]:
        """The records of both inputs for each key."""
        groups: dict[Any, tuple[list[Record], list[Record]]] = {}
        for side, (flow, key) in enumerate(zip(inputs, self.keys, strict=True)):
            for record in flow.records():
                groups.setdefault(key.get_key(record.value), ([], []))[side].append(record)
        return iter(groups.values())


def _is_safe(kind: StreamType) -> bool:
    return kind.settled and kind.time is EventTime.SAFE and not kind.idle


def _timed(inputs: Sequence[StreamType], shape: str, width: int | None) -> StreamType:
    kind = joined(inputs, shape, width)
    if kind.time is not EventTime.SAFE:
        raise Misfit("what is late depends on timing")
    return kind.in_event_time()


@dataclass(frozen=True, kw_only=True)
class IntervalJoin(_Join):
    """An interval join."""

    weight: ClassVar[float] = 3.0

    keys: tuple[KeyOf, KeyOf]
    lower: int
    upper: int
    function: Combine

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws two streams and bounds."""
        refs = cls.draw_inputs(sketch)
        if refs is None:
            return None
        rng = sketch.rng
        key = rng.choice(KEY_KINDS)
        lower = rng.randrange(-3, 3) * GRID // 2
        return cls(
            **cls.draw_place(sketch, refs, key),
            lower=lower,
            upper=lower + rng.choice((0, 1, GRID, 4 * GRID)),
            function=Combine(*cls.draw_function(sketch, refs)),
        )

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Pairs come in any order."""
        kind = _timed(inputs, self.function.shape, self.parallelism)
        pairs = inputs[0].volume * inputs[1].volume
        if pairs > _MAX_PAIRS:
            raise Misfit("too many pairs")
        return {"": replace(kind, volume=pairs)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls key_by and interval_join."""
        one = inputs[0].key_by(site.arm(self, self.keys[0], "key"))
        two = inputs[1].key_by(site.arm(self, self.keys[1], "key2"))
        joined_streams = one.interval_join(two).between(self.lower, self.upper)
        return site.finish(joined_streams.process(site.arm(self, self.function)), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """All pairs, which need no watermark."""
        flow = Flow()
        for first, second in self.groups(inputs):
            for left in first:
                for right in second:
                    assert left.time is not None
                    assert right.time is not None
                    if self.lower <= right.time - left.time <= self.upper:
                        time = max(left.time, right.time)
                        flow.emit(self.function.combined(left.value, right.value, time), time)
        flow.mark(min(source.watermark for source in inputs))
        return {"": flow}


@dataclass
class SumBoth(CoGroupFunction):
    """One result per key and window, of the sums of both sides; may change all records."""

    shape: str
    changes: bool = False
    trip: Trip | None = None

    def co_group(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        """Makes a record of both sides."""
        step(self.trip)
        yield self.summed(first, second)
        if self.changes:
            for record in (*first, *second):
                change(record, -1)

    def summed(self, first: list[Any], second: list[Any]) -> Any:
        """The result for both sides."""
        k, _, t, _ = fields((first or second)[0])
        sums = [sum(fields(record)[1] for record in side) for side in (first, second)]
        return make(self.shape, k, 3 * sums[0] + sums[1], t // GRID, (len(first), len(second)))


@dataclass(frozen=True, kw_only=True)
class WindowCoGroup(_Join):
    """A co-group of two streams in tumbling windows, with or without an evictor that keeps everything."""

    weight: ClassVar[float] = 3.0

    keys: tuple[KeyOf, KeyOf]
    size: int
    lateness: int
    evicts: bool
    function: SumBoth

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws two streams and windows."""
        refs = cls.draw_inputs(sketch)
        if refs is None:
            return None
        rng = sketch.rng
        key = rng.choice(KEY_KINDS)
        return cls(
            **cls.draw_place(sketch, refs, key),
            size=GRID,
            lateness=rng.choice((0, 0, GRID)),
            evicts=rng.random() < 0.5,
            function=SumBoth(*cls.draw_function(sketch, refs)),
        )

    @property
    def waits_for_time(self) -> bool:
        """Results come with watermarks."""
        return True

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Windows of a key come in the order of time."""
        kind = _timed(inputs, self.function.shape, self.parallelism)
        if not all(each.batch_times for each in inputs):
            raise Misfit("the windows of a batch would be others")
        return {"": kind}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls co_group."""
        windows = (
            inputs[0]
            .co_group(inputs[1])
            .where(site.arm(self, self.keys[0], "key"))
            .equal_to(site.arm(self, self.keys[1], "key2"))
            .window(TumblingEventTimeWindows.of(self.size))
            .allowed_lateness(self.lateness)
        )
        if self.evicts:
            windows = windows.evictor(CountEvictor.of(1_000_000))
        return site.finish(windows.apply(site.arm(self, self.function)), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """The windows that the watermark has passed, or all of a batch."""
        flow = Flow()
        reached = min(source.watermark for source in inputs)
        for sides in self.groups(inputs):
            windows: dict[int, tuple[list[Any], list[Any]]] = {}
            for side, records in enumerate(sides):
                for record in records:
                    assert record.time is not None
                    windows.setdefault(record.time // self.size, ([], []))[side].append(copied(record.value))
            for number, (first, second) in sorted(windows.items()):
                last = (number + 1) * self.size - 1
                if mode is Mode.BATCH or last <= reached:
                    flow.emit(self.function.summed(first, second), last)
        flow.mark(reached)
        return {"": flow}
