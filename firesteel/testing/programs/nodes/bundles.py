"""Aggregations in bundles: before the exchange, salted, and in mini-batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.api.state import ValueStateDescriptor
from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.testing.programs.keys import KEY_KINDS, KEYS, KeyOf
from firesteel.testing.programs.nodes.reductions import Add
from firesteel.testing.programs.nodes.steps import END
from firesteel.testing.programs.nodes.window_functions import Gather
from firesteel.testing.programs.oracle.flow import Flow, Mode, by_time
from firesteel.testing.programs.oracle.keyed import run_keyed
from firesteel.testing.programs.oracle.processes import ProcessOracle
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import SHAPES, fields, make
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["Bundle", "LastResult"]

_MARK = -(10**9)
"""v of what is emitted if a result is older than the one before it."""


@dataclass
class LastResult(KeyedProcessFunction):
    """Emits the last result of each key when event time ends. Intermediate results depend on the bundles."""

    shape: str
    dated: bool = False
    """The result has the largest timestamp of all results."""
    trip: Trip | None = None

    def open(self, runtime_context: Any) -> None:
        """Gets the state."""
        self._last = runtime_context.get_state(ValueStateDescriptor("last"))
        self._time = runtime_context.get_state(ValueStateDescriptor("time"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        """Keeps the result; yields it, marked, if it does not follow the one before."""
        step(self.trip)
        k, v, t, trail = fields(value)
        last = self._last.value()
        if last is not None and t < last[2]:
            yield make(self.shape, k, _MARK, t)
        self._last.update((k, v, t, tuple(trail)))
        if self.dated:
            self._time.update(max(self._time.value() or 0, ctx.timestamp()))
        ctx.timer_service().register_event_time_timer(END)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        """Yields the last result."""
        k, v, t, trail = self._last.value()
        yield make(self.shape, k, v, self._time.value() if self.dated else t, trail)


@dataclass(frozen=True, kw_only=True)
class Bundle(Node):
    """Calls pre_aggregate, salted_aggregate or mini_batch_aggregate."""

    weight: ClassVar[float] = 2.0

    key: KeyOf
    how: str
    function: Add | Gather
    last: LastResult
    max_records: int | None = None
    max_keys: int = 100_000
    max_delay: int = 200
    salts: int = 32

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a function that is associative, and commutative where the order of records is not kept."""
        ref = sketch.pick(lambda kind: kind.settled)
        if ref is None:
            return None
        rng, kind = sketch.rng, sketch.types[ref]
        how = rng.choice(("pre_aggregate", "salted_aggregate", "mini_batch_aggregate"))
        ordered = kind.ordered and how != "salted_aggregate" and rng.random() < 0.5
        function: Add | Gather = Add(kind.shape, ordered, in_place=rng.random() < 0.3)
        if rng.random() < 0.5:
            shape = rng.choice(SHAPES)
            function = Gather(shape, ordered, shares=shape == "list")
        dated = kind.time is not EventTime.NONE and rng.random() < 0.3
        return cls(
            id=sketch.next_id,
            inputs=(ref,),
            parallelism=sketch.draw_width(),
            chain=sketch.draw_chain(),
            key=KeyOf(rng.choice(KEY_KINDS)),
            how=how,
            function=function,
            last=LastResult(rng.choice(SHAPES), dated),
            max_records=rng.choice((1, 3, 20, 5_000) if how == "mini_batch_aggregate" else (None, 1, 3, 20)),
            max_keys=rng.choice((1, 2, 100_000)),
            max_delay=rng.choice((1, 5, 200)),
            salts=rng.choice((1, 2, 5, 32)),
        )

    @property
    def kind(self) -> str:
        """Counted by the method."""
        return f"Bundle[{self.how}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """The function, the one behind it, and the key selector."""
        return ("", "last", "key")

    @property
    def mutates(self) -> bool:
        """Whether the function changes what it has returned before."""
        return isinstance(self.function, Gather) or self.function.in_place

    @property
    def pinned(self) -> tuple[str, ...]:
        """The aggregation, and the operator behind it."""
        return () if self.parallelism is None else (f"node-{self.id}", f"node-{self.id}-last")

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """One result per key, at the end of event time."""
        kind = inputs[0]
        if not kind.settled:
            raise Misfit("records that are not certain")
        if self.function.ordered and (not kind.ordered or self.how == "salted_aggregate"):
            raise Misfit("the result depends on the order")
        if isinstance(self.function, Add) and self.function.shape != kind.shape:
            raise Misfit("the function is made for another shape")
        if self.last.dated and kind.time is EventTime.NONE:
            raise Misfit("no timestamps")
        return {
            "": replace(
                kind.shuffled(self.parallelism),
                shape=self.last.shape,
                time=EventTime.NONE,
                ordered=True,
                idle=False,
                volume=KEYS,
                # partial results of a batch are in no order, and are at the end of time
                batchable=kind.batchable and not self.function.ordered and not self.last.dated,
                batch_times=True,
            )
        }

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls key_by and the aggregation, then gets the last result of each key."""
        keyed = inputs[0].key_by(site.arm(self, self.key, "key"))
        limits: dict[str, Any] = {"max_records": self.max_records, "max_delay": self.max_delay}
        if self.how != "mini_batch_aggregate":
            limits["max_keys"] = self.max_keys
        if self.how == "salted_aggregate":
            limits["salts"] = self.salts
        results = site.finish(getattr(keyed, self.how)(site.arm(self, self.function), **limits), self)
        last = results.key_by(self.key).process(site.arm(self, self.last, "last"))
        last = last.name(f"last {self.id}").uid(f"node-{self.id}-last")
        return last if self.parallelism is None else last.set_parallelism(self.parallelism)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Reduces each key's records one by one."""
        by_key: dict[Any, list[Any]] = {}
        records = by_time(inputs[0].records()) if mode is Mode.BATCH else list(inputs[0].records())
        for record in records:
            by_key.setdefault(self.key.get_key(record.value), []).append(record)
        reduced = Flow()
        for of_key in by_key.values():
            values = [record.value for record in of_key]
            reduced.emit(self._reduced(values), max((record.time or 0 for record in of_key), default=None))
        reduced.mark(inputs[0].watermark)
        return run_keyed(lambda: ProcessOracle(self.last), [reduced], [self.key.get_key], mode)

    def _reduced(self, values: list[Any]) -> Any:
        function = self.function
        if isinstance(function, Add):
            result = values[0]
            for value in values[1:]:
                result = function.reduce(result, value)
            return result
        accumulator = function.create_accumulator()
        for value in values:
            accumulator = function.add(value, accumulator)
        return function.get_result(accumulator)
