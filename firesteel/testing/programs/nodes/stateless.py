"""Nodes without state: map, filter, flat_map, union, and ways to partition a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.datastream.functions import FilterFunction, FlatMapFunction, MapFunction, Partitioner
from firesteel.testing.programs.oracle.flow import Flow, Mark, Mode, Record, copied
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import MUTABLE_SHAPES, SHAPES, change, fields, make
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = [
    "Affine",
    "ByRemainder",
    "Copies",
    "Expression",
    "Filter",
    "FlatMap",
    "Map",
    "Modulo",
    "Repartition",
    "Union",
]

_MAX_VOLUME = 10_000


@dataclass
class Affine(MapFunction):
    """Computes v * factor + offset; may change the shape, or k, or change its input in place."""

    shape: str
    factor: int = 1
    offset: int = 0
    in_place: bool = False
    keys: int | None = None
    """Makes k smaller than this number."""
    trip: Trip | None = None

    def map(self, value: Any) -> Any:
        """Returns the changed record."""
        step(self.trip)
        k, v, t, trail = fields(value)
        v = v * self.factor + self.offset
        if self.in_place:
            change(value, v)
            return value
        return make(self.shape, k if self.keys is None else k % self.keys, v, t, trail)


@dataclass(frozen=True)
class Expression:
    """A lambda, given by its text: the runtime may inline it."""

    text: str

    def __call__(self) -> Any:
        """Returns the function."""
        function = eval(self.text, {})  # noqa: S307 - the text is the program's own
        function.program_text = self.text
        return function


@dataclass
class Modulo(FilterFunction):
    """Passes records whose v, or k, leaves one of some remainders."""

    modulus: int
    remainders: tuple[int, ...]
    by_key: bool = False
    trip: Trip | None = None

    def filter(self, value: Any) -> bool:
        """Whether the record passes."""
        step(self.trip)
        k, v, _, _ = fields(value)
        return (k if self.by_key else v) % self.modulus in self.remainders


@dataclass
class Copies(FlatMapFunction):
    """Emits v % modulus copies of a record, then changes what it has emitted."""

    modulus: int
    scale: int = 1
    changes: bool = False
    trip: Trip | None = None

    def flat_map(self, value: Any) -> Iterator[Any]:
        """Yields the copies, with numbers appended to their trails."""
        step(self.trip)
        _, v, _, _ = fields(value)
        if self.changes:
            for number in range(v % self.modulus * self.scale):
                change(value, number)
                yield value
            change(value, -1)
        else:
            for _ in range(v % self.modulus * self.scale):
                yield value


@dataclass(frozen=True, kw_only=True)
class _Simple(Node):
    """A node with one input, one output and no state: watermarks pass through."""

    function: Any

    @property
    def functions(self) -> tuple[str, ...]:
        return () if isinstance(self.function, Expression) else ("",)

    @property
    def kind(self) -> str:
        name = "lambda" if isinstance(self.function, Expression) else type(self.function).__name__
        return f"{type(self).__name__}[{name}]"

    def apply(self, value: Any) -> Iterator[Any]:
        """Yields what comes of one record, as the oracle sees it."""
        raise NotImplementedError

    def _armed(self, site: Site) -> Any:
        return self.function() if isinstance(self.function, Expression) else site.arm(self, self.function)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        flow = Flow()
        for item in inputs[0].items:
            if isinstance(item, Mark):
                flow.mark(item.time)
            else:
                for value in self.apply(copied(item.value)):
                    flow.emit(value, item.time)
        return {"": flow}


@dataclass(frozen=True, kw_only=True)
class Map(_Simple):
    """Calls map."""

    weight: ClassVar[float] = 3.0

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a change of v, of the shape, or of k."""
        ref = sketch.pick(lambda kind: kind.settled)
        if ref is None:
            return None
        rng, kind = sketch.rng, sketch.types[ref]
        factor, offset = rng.choice(((1, 3), (-1, 0), (2, 1), (1, 2**62), (7, -5)))
        function: Any
        if kind.shape == "numbers" and rng.random() < 0.6:
            function = Expression(f"lambda r: (r[0], r[1] * {factor} + {offset}, r[2])")
        elif kind.shape in MUTABLE_SHAPES and rng.random() < 0.3:
            function = Affine(kind.shape, factor, offset, in_place=True)
        else:
            shape = kind.shape if rng.random() < 0.5 else rng.choice(SHAPES)
            keys = rng.choice((1, 4)) if rng.random() < 0.15 else None
            function = Affine(shape, factor, offset, keys=keys)
        return cls(
            id=sketch.next_id, inputs=(ref,), parallelism=kind.width, chain=sketch.draw_chain(), function=function
        )

    @property
    def mutates(self) -> bool:
        """Whether it changes its input."""
        return isinstance(self.function, Affine) and self.function.in_place

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Keeps everything but the shape; order per key where k stays."""
        kind = inputs[0].at(self.parallelism)
        if not kind.settled:
            raise Misfit("sums do not stay sums")
        function = self.function
        if isinstance(function, Expression):
            if kind.shape != "numbers":
                raise Misfit("the expression is made for tuples of numbers")
            return {"": kind}
        if function.in_place and function.shape != kind.shape:
            raise Misfit("a shape cannot be changed in place")
        rekeyed = function.keys is not None and not kind.lane
        return {
            "": replace(
                kind,
                shape=function.shape,
                ordered=kind.ordered and not rekeyed,
                ascending=kind.ascending and function.keys is None,
            )
        }

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls map."""
        return site.finish(inputs[0].map(self._armed(site)), self)

    def apply(self, value: Any) -> Iterator[Any]:
        """One record for one."""
        function = self.function
        yield function()(value) if isinstance(function, Expression) else function.map(value)


@dataclass(frozen=True, kw_only=True)
class Filter(_Simple):
    """Calls filter."""

    weight: ClassVar[float] = 1.5

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws remainders of v or k."""
        ref = sketch.pick(lambda kind: kind.settled)
        if ref is None:
            return None
        rng, kind = sketch.rng, sketch.types[ref]
        modulus = rng.choice((2, 3, 5))
        kept = tuple(sorted(rng.sample(range(modulus), rng.randint(1, modulus - 1))))
        function: Any = Modulo(modulus, kept, by_key=rng.random() < 0.3)
        if kind.shape == "numbers" and rng.random() < 0.5:
            function = Expression(f"lambda r: r[1] % {modulus} in {kept}")
        return cls(
            id=sketch.next_id, inputs=(ref,), parallelism=kind.width, chain=sketch.draw_chain(), function=function
        )

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Keeps everything."""
        kind = inputs[0].at(self.parallelism)
        if not kind.settled or (isinstance(self.function, Expression) and kind.shape != "numbers"):
            raise Misfit("the filter does not fit")
        return {"": kind}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls filter."""
        return site.finish(inputs[0].filter(self._armed(site)), self)

    def apply(self, value: Any) -> Iterator[Any]:
        """The record, or nothing."""
        function = self.function
        if function()(value) if isinstance(function, Expression) else function.filter(value):
            yield value


@dataclass(frozen=True, kw_only=True)
class FlatMap(_Simple):
    """Calls flat_map."""

    weight: ClassVar[float] = 1.5

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws how many copies are made, and whether they are changed after they are emitted."""
        ref = sketch.pick(lambda kind: kind.settled)
        if ref is None:
            return None
        rng, kind = sketch.rng, sketch.types[ref]
        changes = kind.shape in MUTABLE_SHAPES and rng.random() < 0.6
        modulus, scale = rng.choice(((2, 1), (3, 1), (4, 1), (2, 60)))
        return cls(
            id=sketch.next_id,
            inputs=(ref,),
            parallelism=kind.width,
            chain=sketch.draw_chain(),
            function=Copies(modulus, scale, changes),
        )

    @property
    def mutates(self) -> bool:
        """Whether it changes what it has emitted."""
        return bool(self.function.changes)

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Keeps everything."""
        kind = inputs[0].at(self.parallelism)
        if not kind.settled or (self.function.changes and kind.shape not in MUTABLE_SHAPES):
            raise Misfit("the function does not fit")
        volume = kind.volume * (self.function.modulus - 1) * self.function.scale
        if volume > _MAX_VOLUME:
            raise Misfit("too many records")
        return {"": replace(kind, volume=volume)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls flat_map."""
        return site.finish(inputs[0].flat_map(self._armed(site)), self)

    def apply(self, value: Any) -> Iterator[Any]:
        """Each copy as it is when it is emitted."""
        for emitted in self.function.flat_map(value):
            yield copied(emitted)


@dataclass
class ByRemainder(Partitioner):
    """Partitions by remainder."""

    trip: Trip | None = None

    def partition(self, key: Any, num_partitions: int) -> int:
        """Returns the partition of a k."""
        step(self.trip)
        return int(key) % num_partitions


def number_of(record: Any) -> int:
    return fields(record)[0]


@dataclass(frozen=True, kw_only=True)
class Repartition(Node):
    """Sends records to other subtasks."""

    how: str

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws one of the partitionings."""
        ref = sketch.pick(lambda kind: kind.width != 1)
        if ref is None:
            return None
        how = sketch.choice("rebalance", "shuffle", "rescale", "custom")
        return cls(id=sketch.next_id, inputs=(ref,), how=how, parallelism=sketch.types[ref].width)

    @property
    def kind(self) -> str:
        """Counted by how records are sent."""
        return f"Repartition[{self.how}]"

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Keeps the order of a key only where the key decides."""
        kind = inputs[0]
        if kind.width != self.parallelism or kind.width == 1:
            raise Misfit("nothing to repartition")
        moved = kind.shuffled(kind.width, ordered=self.how == "custom")
        return {"": replace(moved, disorder=kind.disorder if kind.lane else None)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls the partitioning; the next operator applies it."""
        stream = inputs[0]
        if self.how == "custom":
            return stream.partition_custom(site.arm(self, ByRemainder()), number_of)
        return getattr(stream, self.how)()

    @property
    def functions(self) -> tuple[str, ...]:
        """The partitioner."""
        return ("",) if self.how == "custom" else ()

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """The same records."""
        return {"": inputs[0]}


@dataclass(frozen=True, kw_only=True)
class Union(Node):
    """Calls union, also with the stream itself."""

    weight: ClassVar[float] = 1.5

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws two or three streams of one shape."""
        first = sketch.pick(lambda kind: kind.settled)
        if first is None:
            return None
        shape = sketch.types[first].shape
        others = [sketch.pick(lambda kind: kind.settled and kind.shape == shape) for _ in range(sketch.choice(1, 1, 2))]
        return cls(id=sketch.next_id, inputs=(first, *filter(None, others)))

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Keeps no order; no record is late where none is in any input."""
        if len({kind.shape for kind in inputs}) > 1 or not all(kind.settled for kind in inputs):
            raise Misfit("streams of different types")
        if len({kind.width for kind in inputs}) > 1:
            raise Misfit("streams of different parallelism")
        safe = all(kind.time is EventTime.SAFE and not kind.idle for kind in inputs)
        timed = all(kind.time is not EventTime.NONE for kind in inputs)
        return {
            "": StreamType(
                inputs[0].shape,
                time=EventTime.SAFE if safe else EventTime.TAINTED if timed else EventTime.NONE,
                width=inputs[0].width,
                idle=any(kind.idle for kind in inputs),
                volume=sum(kind.volume for kind in inputs),
                batchable=all(kind.batchable for kind in inputs),
            )
        }

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls union."""
        return inputs[0].union(*inputs[1:])

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """All records."""
        records = [item for flow in inputs for item in flow.items if isinstance(item, Record)]
        joined = Flow(list(records))
        joined.mark(min(flow.watermark for flow in inputs))
        return {"": joined}
