"""Interval joins: of two streams without late records, and of a stream with itself, late records included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.api.state import ValueStateDescriptor
from firesteel.datastream.functions import KeyedProcessFunction, KeySelector, ProcessJoinFunction
from firesteel.datastream.output_tag import OutputTag
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf
from firesteel.testing.programs.nodes.connects import joined
from firesteel.testing.programs.oracle.flow import Flow, Mode
from firesteel.testing.programs.oracle.meetings import by_key
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import MUTABLE_SHAPES, SHAPES, change, fields, make
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["MAX_PAIRS", "Combine", "IntervalJoin", "LateIntervalJoin"]

MAX_PAIRS = 15_000
"""Pairs grow with the product of both streams, and so would the programs behind them."""
_SIDE = "side"
_SIDE_TAG = OutputTag(_SIDE)


@dataclass
class Combine(ProcessJoinFunction):
    """One result per pair; may change both records."""

    shape: str
    changes: bool = False
    side_every: int = 0
    """Results whose v is a multiple of it go to a side output."""
    trip: Trip | None = None

    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        """Makes a record of both."""
        step(self.trip)
        apart = ctx.get_right_timestamp() - ctx.get_left_timestamp()
        tag, result = self.combined(left, right, ctx.get_timestamp(), apart)
        yield (_SIDE_TAG, result) if tag else result
        if self.changes:
            change(left, -1)
            change(right, -2)

    def combined(self, left: Any, right: Any, time: int, apart: int) -> tuple[str, Any]:
        """The output and the result for a pair."""
        k, v, _, _ = fields(left)
        total = 3 * v + fields(right)[1]
        tag = _SIDE if self.side_every and total % self.side_every == 0 else ""
        return tag, make(self.shape, k, total, time, (v % 11, apart))


@dataclass(frozen=True, kw_only=True)
class IntervalJoin(Node):
    """An interval join of streams of which no record is late."""

    weight: ClassVar[float] = 2.0

    keys: tuple[KeyOf, KeyOf]
    lower: int
    upper: int
    lower_exclusive: bool = False
    upper_exclusive: bool = False
    function: Combine

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws two streams and bounds."""
        refs = [sketch.pick(_is_safe), sketch.pick(_is_safe)]
        if refs[0] is None or refs[1] is None:
            return None
        rng = sketch.rng
        key = rng.choice(KEY_KINDS)
        lower = 4 * rng.randrange(-12, 12)
        shapes = [sketch.types[ref].shape for ref in refs if ref is not None]
        return cls(
            id=sketch.next_id,
            inputs=(refs[0], refs[1]),
            parallelism=sketch.draw_width(),
            chain=sketch.draw_chain(),
            keys=(KeyOf(key), KeyOf(key)),
            lower=lower,
            upper=lower + rng.choice((0, 1, 8, 24, 32, 100)),
            lower_exclusive=rng.random() < 0.3,
            upper_exclusive=rng.random() < 0.3,
            function=Combine(
                rng.choice(SHAPES),
                MUTABLE_SHAPES.issuperset(shapes) and rng.random() < 0.6,
                rng.choice((0, 0, 3)),
            ),
        )

    @property
    def mutates(self) -> bool:
        """Whether it changes the records of a pair."""
        return self.function.changes

    @property
    def functions(self) -> tuple[str, ...]:
        """The function and the key selectors."""
        return ("", "key", "key2")

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Pairs come in any order."""
        kind = joined(inputs, self.function.shape, self.parallelism)
        if kind.time is not EventTime.SAFE:
            raise Misfit("what is late depends on timing")
        pairs = inputs[0].volume * inputs[1].volume
        if pairs > MAX_PAIRS:
            raise Misfit("too many pairs")
        result = replace(kind.in_event_time(), volume=pairs)
        return {"": result, _SIDE: result} if self.function.side_every else {"": result}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls key_by and interval_join."""
        one = inputs[0].key_by(site.arm(self, self.keys[0], "key"))
        two = inputs[1].key_by(site.arm(self, self.keys[1], "key2"))
        streams = one.interval_join(two).between(self.lower, self.upper)
        if self.lower_exclusive:
            streams = streams.lower_bound_exclusive()
        if self.upper_exclusive:
            streams = streams.upper_bound_exclusive()
        return site.finish(streams.process(site.arm(self, self.function)), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """All pairs, which need no watermark."""
        flows = {tag: Flow() for tag in (("", _SIDE) if self.function.side_every else ("",))}
        for first, second in by_key(inputs, [key.get_key for key in self.keys]):
            for left in first:
                for right in second:
                    assert left.time is not None
                    assert right.time is not None
                    apart = right.time - left.time
                    if self._is_within(apart):
                        time = max(left.time, right.time)
                        tag, result = self.function.combined(left.value, right.value, time, apart)
                        flows[tag].emit(result, time)
        for flow in flows.values():
            flow.mark(min(source.watermark for source in inputs))
        return flows

    def _is_within(self, apart: int) -> bool:
        above = apart > self.lower if self.lower_exclusive else apart >= self.lower
        below = apart < self.upper if self.upper_exclusive else apart <= self.upper
        return above and below


def _is_safe(kind: StreamType) -> bool:
    return kind.settled and kind.time is EventTime.SAFE and not kind.idle


@dataclass
class Itself(KeySelector):
    """A key that only equal records have in common."""

    trip: Trip | None = None

    def get_key(self, value: Any) -> Any:
        """Returns k and v."""
        step(self.trip)
        return fields(value)[:2]


@dataclass
class First(ProcessJoinFunction):
    """Emits the left record of a pair."""

    trip: Trip | None = None

    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        """Yields it."""
        step(self.trip)
        yield left


@dataclass
class Once(KeyedProcessFunction):
    """Emits one record for each key, when the first comes."""

    shape: str
    trip: Trip | None = None

    def open(self, runtime_context: Any) -> None:
        """Whether there was one."""
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        """Yields k and v."""
        step(self.trip)
        if self._seen.value() is None:
            self._seen.update(True)
            k, v, _, _ = fields(value)
            yield make(self.shape, k, v, 0)


@dataclass(frozen=True, kw_only=True)
class LateIntervalJoin(Node):
    """An interval join of a stream with itself: each record is joined with itself, or late on one side or on both.

    Which of these depends on timing. So pairs and late records are put together, and each record is counted once. A
    record that was neither joined nor late is missing. The bounds are apart by some milliseconds: a record that has the
    watermark's timestamp is not late, and must still find its pair.
    """

    weight: ClassVar[float] = 1.0

    bound: int
    exclusive: bool = False
    function: First
    once: Once

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a stream with timestamps, preferably with late records."""
        ref = sketch.pick(lambda kind: kind.settled and kind.time is EventTime.EXACT)
        ref = ref or sketch.pick(lambda kind: kind.settled and kind.time is not EventTime.NONE)
        if ref is None:
            return None
        exclusive = sketch.chance(0.3)
        return cls(
            id=sketch.next_id,
            inputs=(ref,),
            parallelism=sketch.draw_width(),
            chain=sketch.draw_chain(),
            bound=sketch.choice(1, 1, 3) + exclusive,
            exclusive=exclusive,
            function=First(),
            once=Once(sketch.choice(*SHAPES)),
        )

    @property
    def functions(self) -> tuple[str, ...]:
        """The join function and what counts records once, with a key selector."""
        return ("", "once", "key")

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Which timestamp a record has depends on timing if there are several with its key."""
        kind = inputs[0]
        if not kind.settled or kind.time is EventTime.NONE:
            raise Misfit("records without timestamps, or uncertain ones")
        if self.bound - self.exclusive < 1:
            raise Misfit("a record with the watermark's timestamp would be neither joined nor late")
        kind = kind.in_event_time()
        moved = replace(kind.shuffled(self.parallelism), shape=self.once.shape, time=EventTime.NONE, idle=False)
        return {"": replace(moved, batch_times=True)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls interval_join, unites its results with its late records and calls process."""
        left, right = OutputTag("left"), OutputTag("right")
        one, two = (inputs[0].key_by(site.arm(self, Itself(), place)) for place in ("key", "key2"))
        streams = one.interval_join(two).between(-self.bound, self.bound)
        if self.exclusive:
            streams = streams.lower_bound_exclusive().upper_bound_exclusive()
        streams = streams.side_output_left_late_data(left).side_output_right_late_data(right)
        pairs = streams.process(site.arm(self, self.function)).uid(f"node-{self.id}-pairs")
        pairs = site.hold(pairs)
        all_records = pairs.union(pairs.get_side_output(left), pairs.get_side_output(right))
        counted = all_records.key_by(Itself()).process(site.arm(self, self.once, "once"))
        return site.finish(counted, self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Each k and v once."""
        flow = Flow()
        for k, v in dict.fromkeys(fields(record.value)[:2] for record in inputs[0].records()):
            flow.emit(make(self.once.shape, k, v, 0), None)
        flow.mark(inputs[0].watermark)
        return {"": flow}
