"""Windows of two streams: join and co_group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf
from firesteel.testing.programs.nodes.connects import joined
from firesteel.testing.programs.nodes.joins import MAX_PAIRS
from firesteel.testing.programs.nodes.window_kinds import PROCESSING, Evicting, Triggering, WindowKind
from firesteel.testing.programs.nodes.windows import draw_windows
from firesteel.testing.programs.oracle.flow import Flow, Mode, Record, copied
from firesteel.testing.programs.oracle.meetings import Meeting, by_key, meetings
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import MUTABLE_SHAPES, SHAPES, change, fields, make
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["JoinPair", "JoinPairs", "SumBoth", "WindowCoGroup", "WindowJoin"]

_NONE = Evicting()


@dataclass
class SumBoth(CoGroupFunction):
    """One result per key and window, of the sums of both sides; may change all records."""

    shape: str
    changes: bool = False
    trip: Trip | None = None

    def co_group(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        """Makes a record of both sides."""
        step(self.trip)
        yield from self.results(first, second)
        if self.changes:
            for record in (*first, *second):
                change(record, -1)

    def results(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        """The result for both sides; none if everything was evicted."""
        if not first and not second:
            return
        k = fields((first or second)[0])[0]
        sums = [sum(fields(record)[1] for record in side) for side in (first, second)]
        t = max(fields(record)[2] for record in (*first, *second))
        yield make(self.shape, k, 3 * sums[0] + sums[1], t, (len(first), len(second)))


@dataclass
class JoinPair(JoinFunction):
    """One result per pair; may change both records."""

    shape: str
    changes: bool = False
    trip: Trip | None = None

    def join(self, first: Any, second: Any) -> Any:
        """Makes a record of both."""
        step(self.trip)
        result = _match(self.shape, first, second)
        if self.changes:
            change(first, -1)
            change(second, -2)
        return result

    def results(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        """The results of a window."""
        for one in first:
            for two in second:
                yield _match(self.shape, one, two)


@dataclass
class JoinPairs(FlatJoinFunction):
    """None or two results per pair; may change both records."""

    shape: str
    changes: bool = False
    trip: Trip | None = None

    def join(self, first: Any, second: Any) -> Iterator[Any] | None:
        """Makes records of both; none if the sum of both v is odd."""
        step(self.trip)
        return None if (fields(first)[1] + fields(second)[1]) % 2 else self._both(first, second)

    def _both(self, first: Any, second: Any) -> Iterator[Any]:
        yield _match(self.shape, first, second)
        yield _match(self.shape, first, second, 1)
        if self.changes:
            change(first, -1)
            change(second, -2)

    def results(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        """The results of a window."""
        for one in first:
            for two in second:
                if (fields(one)[1] + fields(two)[1]) % 2 == 0:
                    yield _match(self.shape, one, two)
                    yield _match(self.shape, one, two, 1)


def _match(shape: str, first: Any, second: Any, more: int = 0) -> Any:
    k, v, t, _ = fields(first)
    _, v2, t2, _ = fields(second)
    return make(shape, k, 3 * v + v2 + more, max(t, t2), (v % 11, v2 % 11))


@dataclass(frozen=True, kw_only=True)
class _InWindows(Node):
    """What joins and co-groups share."""

    keys: tuple[KeyOf, KeyOf]
    windows: WindowKind
    each: bool = False
    """Whether the window is evaluated for each record alone, instead of at its end."""
    lateness: int = 0
    evicting: Evicting = _NONE
    function: Any

    _functions: ClassVar[tuple[type[Any], ...]]
    _pairs_only: ClassVar[bool] = False
    """Whether a record alone has no result."""

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws two streams and windows."""
        in_event_time = sketch.chance(0.8)
        fits = _is_safe if in_event_time else _is_settled
        refs = [sketch.pick(fits), sketch.pick(fits)]
        if refs[0] is None or refs[1] is None:
            return None
        rng = sketch.rng
        kinds = [sketch.types[ref] for ref in refs if ref is not None]
        key = rng.choice(KEY_KINDS)
        if in_event_time:
            name, each = rng.choice(("tumbling", "tumbling", "sliding", "session", "dynamic")), False
        elif cls._pairs_only:
            name, each = "global", False
        else:
            name, each = rng.choice((("global", False), ("global", True), (rng.choice(list(PROCESSING)), True)))
        changes = MUTABLE_SHAPES.issuperset(kind.shape for kind in kinds) and rng.random() < 0.6
        return cls(
            id=sketch.next_id,
            inputs=(refs[0], refs[1]),
            parallelism=sketch.draw_width(),
            chain=sketch.draw_chain(),
            keys=(KeyOf(key), KeyOf(key)),
            windows=draw_windows(rng, name),
            each=each,
            lateness=rng.choice((0, 0, 20)) if in_event_time else 0,
            evicting=_draw_evictor(sketch, timed=all(kind.time is not EventTime.NONE for kind in kinds)),
            function=rng.choice(cls._functions)(rng.choice(SHAPES), changes),
        )

    @property
    def kind(self) -> str:
        """Counted by assigner and evictor."""
        evictor = f",{self.evicting.label}" if self.evicting.name else ""
        return f"{type(self).__name__}[{self.windows.name}{evictor}]"

    @property
    def mutates(self) -> bool:
        """Whether it changes the records of a window."""
        return bool(self.function.changes)

    @property
    def waits_for_time(self) -> bool:
        """Whether results come with watermarks."""
        return self.windows.in_event_time

    @property
    def functions(self) -> tuple[str, ...]:
        """The function, the key selectors, and that of the evictor."""
        return ("", "key", "key2", "evictor") if self.evicting.has_function else ("", "key", "key2")

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Windows of a key come in the order of time, unless each record is a result of its own."""
        kind = joined(inputs, self.function.shape, self.parallelism)
        timed = self.windows.in_event_time
        if timed and (self.each or kind.time is not EventTime.SAFE):
            raise Misfit("what is late, or in which window, depends on timing")
        if self.evicting.needs_order:
            raise Misfit("records of two streams have no order")
        if timed or self.evicting.name == "time":
            if any(each.time is EventTime.NONE for each in inputs):
                raise Misfit("records without timestamps")
            kind = kind.in_event_time()
        if not timed:
            kind = replace(kind, time=EventTime.NONE, idle=False, batch_times=True)
        if self.windows.name in PROCESSING and not self.each:
            raise Misfit("the end of the window never comes")
        volume = self._volume(*(each.volume for each in inputs))
        return {"": replace(kind, volume=volume, ordered=self._is_ordered, ascending=self._is_ordered and timed)}

    @property
    def _is_ordered(self) -> bool:
        return False

    def _volume(self, first: int, second: int) -> int:
        raise NotImplementedError

    @property
    def _overlap(self) -> int:
        """How many windows a record is in at most."""
        return {"sliding": 3, "processing-sliding": 2}.get(self.windows.name, 1)

    def _windowed(self, streams: Any, site: Site) -> Any:
        windows = (
            streams.where(site.arm(self, self.keys[0], "key"))
            .equal_to(site.arm(self, self.keys[1], "key2"))
            .window(self.windows.assigner(tagged=True))
        )
        if self.each:
            windows = windows.trigger(Triggering("count", 1, purging=True).trigger())
        elif self.windows.name == "global":
            windows = windows.trigger(Triggering("end").trigger())
        if self.lateness:
            windows = windows.allowed_lateness(self.lateness)
        if self.evicting.name:
            windows = windows.evictor(self.evicting.evictor(self, site, tagged=True))
        return site.finish(windows.apply(site.arm(self, self.function)), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """The windows that the watermark has passed, or all of a batch."""
        flow = Flow()
        reached = min(source.watermark for source in inputs)
        for sides in by_key(inputs, [key.get_key for key in self.keys]):
            for meeting in self._meetings(sides):
                last = meeting.window.max_timestamp()
                if self.each or mode is Mode.BATCH or last <= reached:
                    for value in self.function.results(*self._values(meeting)):
                        flow.emit(value, last)
        flow.mark(reached)
        return {"": flow}

    def _meetings(self, sides: tuple[list[Record], list[Record]]) -> list[Meeting]:
        if not self.each:
            return meetings(sides, self.windows.spans, merging=self.windows.merging)
        alone: list[tuple[list[Record], list[Record]]] = [([record], []) for record in sides[0]]
        alone += [([], [record]) for record in sides[1]]
        return [meeting for one in alone for meeting in meetings(one, self.windows.spans, merging=False)]

    def _values(self, meeting: Meeting) -> list[list[Any]]:
        """The records of both sides that are not evicted before the function."""
        first, second = meeting.sides
        if self.evicting.name and not self.evicting.after:
            kept = {id(record) for record in self.evicting.keeps([*first, *second])}
            first, second = ([record for record in side if id(record) in kept] for side in meeting.sides)
        return [[copied(record.value) for record in side] for side in (first, second)]


def _is_settled(kind: StreamType) -> bool:
    return kind.settled


def _is_safe(kind: StreamType) -> bool:
    return kind.settled and kind.time is EventTime.SAFE and not kind.idle


def _draw_evictor(sketch: Sketch, *, timed: bool) -> Evicting:
    if sketch.chance(0.6):
        return _NONE
    after = sketch.chance(0.2)
    if timed and sketch.chance(0.6):
        return Evicting("time", sketch.choice(4, 12, 50), after)
    return Evicting("multiples", sketch.choice(2, 3), after)


@dataclass(frozen=True, kw_only=True)
class WindowCoGroup(_InWindows):
    """Calls co_group."""

    weight: ClassVar[float] = 1.5
    _functions = (SumBoth,)

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls co_group and the settings."""
        return self._windowed(inputs[0].co_group(inputs[1]), site)

    @property
    def _is_ordered(self) -> bool:
        return not self.each

    def _volume(self, first: int, second: int) -> int:
        volume = self._overlap * (first + second)
        if volume > MAX_PAIRS:
            raise Misfit("too many records")
        return volume


@dataclass(frozen=True, kw_only=True)
class WindowJoin(_InWindows):
    """Calls join."""

    weight: ClassVar[float] = 1.5
    _functions = (JoinPair, JoinPairs)
    _pairs_only = True

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls join and the settings."""
        return self._windowed(inputs[0].join(inputs[1]), site)

    def _volume(self, first: int, second: int) -> int:
        pairs = 2 * self._overlap * first * second
        if pairs > MAX_PAIRS:
            raise Misfit("too many pairs")
        return pairs
