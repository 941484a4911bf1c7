"""Windows over keyed streams and over all records."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.datastream.output_tag import OutputTag
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf
from firesteel.testing.programs.nodes.reductions import Add
from firesteel.testing.programs.nodes.window_functions import Apply, ApplyAll, Gather, Listing, ListingAll
from firesteel.testing.programs.nodes.window_kinds import PROCESSING, Evicting, Triggering, WindowKind
from firesteel.testing.programs.oracle.flow import Flow, Mode, copied
from firesteel.testing.programs.oracle.keyed import Timers, run_keyed
from firesteel.testing.programs.oracle.states import OracleContext
from firesteel.testing.programs.oracle.windows import Span, WindowOracle
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import MUTABLE_SHAPES, SHAPES
from firesteel.testing.programs.running.building import Site

__all__ = ["Window", "draw_windows"]

_DEFAULT = Triggering()
_NONE = Evicting()
_MAX_FIRINGS = 400


@dataclass(frozen=True, kw_only=True)
class Window(Node):
    """A window with an incremental function, a window function, or both."""

    weight: ClassVar[float] = 4.0

    key: KeyOf | None
    """None for windows over all records."""
    windows: WindowKind
    triggering: Triggering = _DEFAULT
    lateness: int = 0
    late_output: bool = False
    evicting: Evicting = _NONE
    incremental: Add | Gather | None = None
    function: Listing | Apply | ListingAll | ApplyAll | None = None

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a window that fits the stream's event time and order."""
        return _draw(cls, sketch)

    @property
    def kind(self) -> str:
        """Counted by assigner and trigger, or by the evictor."""
        if self.evicting.name:
            return f"EvictingWindow[{self.evicting.label}]"
        trigger = ("purging-" if self.triggering.purging else "") + (self.triggering.name or "default")
        late = "+lateness" if self.lateness else ""
        every = "" if self.key else "All"
        return f"Window{every}[{self.windows.name},{trigger}{late}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """The key selector, the two functions, and that of the evictor."""
        places = (("key", self.key), ("incremental", self.incremental), ("", self.function))
        evictor = ("evictor",) if self.evicting.has_function else ()
        return *(place for place, function in places if function is not None), *evictor

    @property
    def mutates(self) -> bool:
        """Whether a function changes elements or accumulators."""
        return (
            (isinstance(self.incremental, Add) and self.incremental.in_place)
            or isinstance(self.incremental, Gather)
            or (isinstance(self.function, Listing) and self.function.changes)
        )

    @property
    def waits_for_time(self) -> bool:
        """Whether it fires at the end of a window of event time."""
        return self.windows.in_event_time and not self.triggering.name

    @property
    def _shape(self) -> str:
        return (self.function or self.incremental).shape  # type: ignore[union-attr]

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Results come in the order of time; late records have no event time that could be known."""
        kind = inputs[0]
        self._check(kind)
        timed = self.windows.in_event_time
        if timed or self.evicting.name == "time":
            kind = kind.in_event_time()
        moved = kind.shuffled(self.parallelism, ordered=True)
        exact = kind.time is EventTime.EXACT
        early = self.triggering.name in ("count", "continuous")
        refires = exact and (self.lateness > 0 or early)
        result = replace(
            moved,
            shape=self._shape,
            time=(EventTime.TAINTED if kind.idle or refires else EventTime.SAFE) if timed else EventTime.NONE,
            ordered=True,
            ascending=timed and not exact and not early,
            # in a batch the timers of a key fire behind its last record, also those of processing time
            batchable=kind.batchable
            and self.triggering.name != "continuous"
            and (self.windows.name not in PROCESSING or self.triggering.name == "count"),
        )
        late = replace(moved, time=EventTime.TAINTED, ascending=False)
        return {"": result, "late": late} if self.late_output else {"": result}

    def _check(self, kind: StreamType) -> None:
        if not kind.settled:
            raise Misfit("which window a sum is in depends on timing")
        if self.windows.in_event_time and not kind.has_event_time:
            raise Misfit("what is late depends on timing")
        counts = self.triggering.name == "count" or self.windows.name == "count"
        needs_order = counts or any(getattr(f, "ordered", False) for f in (self.incremental, self.function))
        needs_order = needs_order or self.evicting.needs_order
        if needs_order and not (kind.ordered if self.key else kind.lane):
            raise Misfit("what is counted depends on the order")
        self._check_evictor(kind)
        if counts and not self.triggering.purging and kind.volume > _MAX_FIRINGS:
            raise Misfit("each record would be looked at too often")
        if self.triggering.name == "continuous" and kind.time is not EventTime.EXACT:
            raise Misfit("the watermarks decide when it fires")
        if isinstance(self.incremental, Add) and self.incremental.shape != kind.shape:
            raise Misfit("the function is made for another shape")
        if isinstance(self.function, Listing) and self.function.changes and kind.shape not in MUTABLE_SHAPES:
            raise Misfit("the function is made for another shape")

    def _check_evictor(self, kind: StreamType) -> None:
        evicting = self.evicting
        if evicting.name and self.windows.name == "count":
            raise Misfit("count windows have an evictor of their own")
        if evicting.name == "time" and kind.time is EventTime.NONE:
            raise Misfit("records without timestamps are not evicted by time")
        if evicting.needs_order and self.windows.merging:
            raise Misfit("merging windows join their contents in an order that is not defined")
        if evicting.name == "multiples" and not evicting.after and self.incremental is not None:
            raise Misfit("of no records nothing can be reduced")

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls window or window_all, the settings, and the function."""
        stream: Any = inputs[0]
        if self.key is None:
            windowed = stream.window_all(self.windows.assigner())
        else:
            keyed = stream.key_by(site.arm(self, self.key, "key"))
            if self.windows.name == "count":
                windowed = keyed.count_window(self.windows.size, self.windows.slide)
            else:
                windowed = keyed.window(self.windows.assigner())
        trigger = self.triggering.trigger()
        if trigger is not None:
            windowed = windowed.trigger(trigger)
        if self.evicting.name:
            windowed = windowed.evictor(self.evicting.evictor(self, site))
        if self.lateness:
            windowed = windowed.allowed_lateness(self.lateness)
        if self.late_output:
            windowed = windowed.side_output_late_data(OutputTag("late"))
        return site.finish(self._evaluated(windowed, site), self)

    def _evaluated(self, windowed: Any, site: Site) -> Any:
        function = None if self.function is None else site.arm(self, self.function)
        if isinstance(self.incremental, Add):
            return windowed.reduce(site.arm(self, self.incremental, "incremental"), function)
        if isinstance(self.incremental, Gather):
            return windowed.aggregate(site.arm(self, self.incremental, "incremental"), function)
        if isinstance(self.function, (Apply, ApplyAll)):
            return windowed.apply(function)
        return windowed.process(function)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Runs the oracle's window operator."""
        outputs = run_keyed(self._oracle, inputs, [self.key.get_key if self.key else lambda _value: 0], mode)
        return outputs if self.late_output else {"": outputs[""]}

    def _oracle(self) -> WindowOracle:
        operator: WindowOracle
        states = OracleContext(Timers())

        def context(window: Span) -> _Context:
            states._timers.key = operator.timers.key
            return _Context(window, states)

        def evaluate(key: Any, window: Span, values: list[Any]) -> Iterable[Any]:
            return self._results(key, context(window), copied(values))

        def cleared(_key: Any, window: Span) -> None:
            if isinstance(self.function, Listing):
                self.function.clear(context(window))  # type: ignore[arg-type]

        operator = WindowOracle(
            self.windows.spans,
            evaluate,
            self.triggering.rule(self.windows),
            self.lateness,
            self.windows.merging,
            self.windows.in_event_time,
            cleared,
        )
        if self.evicting.after:
            operator.keeps_after = self.evicting.keeps
        else:
            operator.keeps_before = self.evicting.keeps
        return operator

    def _results(self, key: Any, context: _Context, values: list[Any]) -> Iterable[Any]:
        values = self._reduced(values)
        function = self.function
        if function is None:
            return values
        if isinstance(function, Listing):
            return function.process(key, context, values)  # type: ignore[arg-type]
        if isinstance(function, ListingAll):
            return function.process(context, values)  # type: ignore[arg-type]
        if isinstance(function, Apply):
            return function.apply(key, context.window(), values)
        return function.apply(context.window(), values)

    def _reduced(self, values: list[Any]) -> list[Any]:
        if isinstance(self.incremental, Add):
            result = values[0]
            for value in values[1:]:
                result = self.incremental.reduce(result, value)
            return [result]
        if isinstance(self.incremental, Gather):
            accumulator = self.incremental.create_accumulator()
            for value in values:
                accumulator = self.incremental.add(value, accumulator)
            return [self.incremental.get_result(accumulator)]
        return values


@dataclass(frozen=True)
class _Context:
    """What a process window function sees."""

    span: Span
    states: OracleContext

    def window(self) -> Span:
        return self.span

    def window_state(self) -> OracleContext:
        return self.states.at(self.span)

    def global_state(self) -> OracleContext:
        return self.states.at("global")


# -- drawing ------------------------------------------------------------------------------------------------


def _draw(cls: type[Window], sketch: Sketch) -> Window | None:
    ref = sketch.pick(lambda kind: kind.settled)
    if ref is None:
        return None
    rng, kind = sketch.rng, sketch.types[ref]
    over_all = rng.random() < 0.12
    orderly = kind.lane if over_all else kind.ordered
    names = ["tumbling", "tumbling", "sliding", "session", "dynamic"] if kind.has_event_time else []
    names += ["global", rng.choice(list(PROCESSING))] + (["count", "count"] if orderly and not over_all else [])
    name = rng.choice(names)
    windows = draw_windows(rng, name)
    triggers = [Triggering()]
    if name == "global":
        triggers = [Triggering("end")]
    if orderly and name != "count":
        triggers += [Triggering("count", rng.choice((1, 3)), purging=rng.random() < 0.5)]
    if kind.time is EventTime.EXACT and name in ("tumbling", "sliding", "session"):
        triggers += [Triggering("continuous", 40), Triggering(purging=True)]
    incremental, function = _draw_functions(sketch, kind, over_all=over_all, orderly=orderly, windows=windows)
    evicting = _draw_evictor(sketch, kind, windows, orderly=orderly, reduces=incremental is not None)
    if evicting.after and len(triggers) > 1:
        del triggers[0]  # which most often fires once: what is left then is not seen
    return cls(
        id=sketch.next_id,
        inputs=(ref,),
        parallelism=1 if over_all else sketch.draw_width(),
        chain=sketch.draw_chain(),
        key=None if over_all else KeyOf(rng.choice(KEY_KINDS)),
        windows=windows,
        triggering=rng.choice(triggers),
        lateness=rng.choice((0, 0, 20, 200)) if windows.in_event_time else 0,
        late_output=windows.in_event_time and rng.random() < 0.3,
        evicting=evicting,
        incremental=incremental,
        function=function,
    )


def _draw_evictor(sketch: Sketch, kind: StreamType, windows: WindowKind, *, orderly: bool, reduces: bool) -> Evicting:
    rng = sketch.rng
    if windows.name == "count" or rng.random() < 0.7:
        return _NONE
    names = ["multiples"]
    if orderly and not windows.merging:
        names += ["count", "count", "delta", "delta"]
    if kind.time is not EventTime.NONE:
        names += ["time", "time"]
    name = rng.choice(names)
    number = {"count": rng.choice((1, 2, 5)), "delta": rng.choice((1, 4, 30)), "time": rng.choice((4, 12, 50))}
    after = rng.random() < 0.5 or (name == "multiples" and reduces)
    return Evicting(name, number.get(name, rng.choice((2, 3))), after)


def draw_windows(rng: random.Random, name: str) -> WindowKind:
    """Draws the size of windows, and what else their assigner needs."""
    if name == "tumbling":
        return WindowKind(name, rng.choice((20, 100, 1000)), offset=rng.choice((0, 0, 8)))
    if name == "sliding":
        return WindowKind(name, *rng.choice(((60, 20), (100, 40), (40, 60))))
    if name in ("session", "dynamic"):
        # never a multiple of 4, as all timestamps are: windows that just touch merge or not, depending on the watermark
        return WindowKind(name, rng.choice((6, 22, 90)))
    if name == "count":
        return WindowKind(name, *rng.choice(((3, 0), (5, 2), (2, 3))))
    return WindowKind(name)


def _draw_functions(
    sketch: Sketch, kind: StreamType, *, over_all: bool, orderly: bool, windows: WindowKind
) -> tuple[Any, Any]:
    rng = sketch.rng
    # merging windows join their contents in an order that is not defined
    ordered = orderly and not windows.merging and rng.random() < 0.5
    incremental: Any = None
    style = rng.choice(("reduce", "aggregate", "none", "none"))
    if style == "reduce":
        incremental = Add(kind.shape, ordered, in_place=rng.random() < 0.3)
    elif style == "aggregate":
        shape = rng.choice(SHAPES)
        incremental = Gather(shape, ordered, shares=shape == "list")
    if incremental is not None and rng.random() < 0.5:
        return incremental, None
    shape = rng.choice(SHAPES)
    if over_all:
        return incremental, rng.choice((ListingAll, ApplyAll))(shape, ordered)
    if rng.random() < 0.3:
        return incremental, Apply(shape, ordered)
    counts = rng.choice(("", "window", "global")) if windows.name == "tumbling" else ""
    changes = incremental is None and kind.shape in MUTABLE_SHAPES and rng.random() < 0.4
    return incremental, Listing(shape, ordered, counts, changes)
