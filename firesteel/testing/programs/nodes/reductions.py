"""Running reductions of a keyed stream: reduce, sum, min, max, min_by, max_by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.datastream.functions import ReduceFunction
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf
from firesteel.testing.programs.nodes.stateless import Expression
from firesteel.testing.programs.oracle.flow import MAX_TIME, Flow, Mark, Mode, by_time, copied
from firesteel.testing.programs.program import Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import fields, make, merge_trails
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["Add", "Reduce"]


@dataclass
class Add(ReduceFunction):
    """Adds v, keeps the later t and joins the trails; may change its first argument in place."""

    shape: str
    ordered: bool = False
    in_place: bool = False
    trip: Trip | None = None

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Returns the sum of two records."""
        step(self.trip)
        k, v, t, trail = fields(value1)
        k2, v2, t2, trail2 = fields(value2)
        joined = merge_trails(trail, trail2, ordered=self.ordered)
        if self.in_place and self.shape == "list":
            value1[:] = [max(k, k2), v + v2, max(t, t2), joined]
            return value1
        return make(self.shape, max(k, k2), v + v2, max(t, t2), joined)


_FIELDS: dict[str, int | str] = {"numbers": 1, "tuple": 1, "row": "v", "list": 1}
"""How v is named in aggregations of a field."""


@dataclass(frozen=True, kw_only=True)
class Reduce(Node):
    """A running reduction. In a stream it gives a result for every record, in a batch one for every key."""

    weight: ClassVar[float] = 2.0

    key: KeyOf
    how: str = "reduce"
    function: Any = None
    position: int | str = 1
    """The field that is aggregated, if there is no function."""

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a reduction of a stream whose keys have an order."""
        ref = sketch.pick(lambda kind: kind.ordered and kind.settled)
        if ref is None:
            return None
        rng, kind = sketch.rng, sketch.types[ref]
        how = "reduce"
        function: Any = None
        if kind.shape in _FIELDS and rng.random() < 0.5:
            how = rng.choice(("sum", "min", "max", "min_by", "max_by"))
        elif kind.shape == "numbers" and rng.random() < 0.6:
            function = Expression("lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2]))")
        else:
            function = Add(kind.shape, ordered=rng.random() < 0.5, in_place=rng.random() < 0.3)
        return cls(
            id=sketch.next_id,
            inputs=(ref,),
            parallelism=sketch.draw_width(),
            chain=sketch.draw_chain(),
            key=KeyOf(rng.choice(KEY_KINDS)),
            how=how,
            function=function,
            position=_FIELDS.get(kind.shape, 1),
        )

    @property
    def kind(self) -> str:
        """Counted by the method."""
        return f"Reduce[{self.how}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """The function and the key selector."""
        return ("key", "") if isinstance(self.function, Add) else ("key",)

    @property
    def mutates(self) -> bool:
        """Whether the function changes what it has returned before."""
        return isinstance(self.function, Add) and self.function.in_place

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Keeps the order of each key."""
        kind = inputs[0]
        if not kind.ordered or not kind.settled:
            raise Misfit("running results depend on the order")
        if self.how != "reduce" and _FIELDS.get(kind.shape) != self.position:
            raise Misfit("no field to aggregate")
        if isinstance(self.function, Expression) and kind.shape != "numbers":
            raise Misfit("the expression is made for tuples of numbers")
        if isinstance(self.function, Add) and self.function.shape != kind.shape:
            raise Misfit("the function is made for another shape")
        # a batch gives the last result, at the end of time
        return {"": replace(kind.shuffled(self.parallelism, ordered=True), batch_times=False)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls key_by and the reduction."""
        keyed = inputs[0].key_by(site.arm(self, self.key, "key"))
        if self.how == "reduce":
            function = self.function() if isinstance(self.function, Expression) else site.arm(self, self.function)
            return site.finish(keyed.reduce(function), self)
        return site.finish(getattr(keyed, self.how)(self.position), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Reduces each key's records in their order."""
        flow = Flow()
        reduced: dict[Any, Any] = {}
        items = inputs[0].items
        if mode is Mode.BATCH:
            items = list(by_time(inputs[0].records()))
        for item in items:
            if isinstance(item, Mark):
                flow.mark(item.time)
                continue
            value = copied(item.value)
            key = self.key.get_key(value)
            if key in reduced:
                value = self._combine(copied(reduced[key]), value)
            reduced[key] = copied(value)
            if mode is not Mode.BATCH:
                flow.emit(value, item.time)
        if mode is Mode.BATCH:
            for value in reduced.values():
                flow.emit(value, MAX_TIME)
            flow.mark(MAX_TIME)
        return {"": flow}

    def _combine(self, first: Any, second: Any) -> Any:
        if self.how == "reduce":
            function = self.function() if isinstance(self.function, Expression) else self.function.reduce
            return function(first, second)
        v1, v2 = fields(first)[1], fields(second)[1]
        if self.how == "min_by":
            return second if v2 < v1 else first
        if self.how == "max_by":
            return second if v2 > v1 else first
        combined = {"sum": v1 + v2, "min": min(v1, v2), "max": max(v1, v2)}[self.how]
        if isinstance(first, tuple):
            return (first[0], combined, *first[2:])
        if isinstance(first, list):
            first[1] = combined
        else:
            first["v"] = combined
        return first
