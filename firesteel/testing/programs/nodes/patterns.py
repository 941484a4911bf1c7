"""Patterns on streams (CEP): static ones, and such that rules of a broadcast stream select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from firesteel.cep import (
    CEP,
    AfterMatchSkipStrategy,
    IterativeCondition,
    Pattern,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
)
from firesteel.datastream.output_tag import OutputTag
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf
from firesteel.testing.programs.oracle.flow import MAX_TIME, MIN_TIME, Flow, Mark, Mode, Record, by_time, copied
from firesteel.testing.programs.oracle.patterns import PatternOracle, Stage, Taken, TimedValue
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import MUTABLE_SHAPES, SHAPES, TRAIL_LENGTH, canonical, change, fields, make
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["DescribeMatch", "DescribeTimedOut", "DrawnPattern", "Match", "match_pattern"]

LATE, TIMED_OUT = "late", "timed_out"
_MAX_MATCHES = 5_000
_MAX_EVENTS = 400
_Events = Mapping[str, Sequence[Any]]


@dataclass
class Fits(IterativeCondition):
    """The condition of a stage."""

    stage: Stage
    first_stages: tuple[str, ...]
    """Those that a match may begin with."""
    trip: Trip | None = None

    def filter(self, value: Any, ctx: Any) -> bool:
        """Whether an event fits."""
        step(self.trip)
        firsts = (ctx.get_events_for_pattern(name) for name in self.first_stages) if self.stage.rising else ()
        first = next((fields(events[0])[1] for events in firsts if events), None)
        return self.stage.fits(fields(value)[1], first)


@dataclass(frozen=True)
class DrawnPattern:
    """A pattern as data, and how it is matched. As a function, it makes a pattern from a rule."""

    stages: tuple[Stage, ...]
    within: int | None = None
    skip: str = "no_skip"
    skip_to: int = 0
    """The stage that is skipped to, if any."""
    compares: bool = False
    """Events of the same time are ordered by a comparator."""
    in_processing_time: bool = False
    late_output: bool = False
    rules: int = 0
    """The number of rules, of which the last one gives this pattern; 0: the pattern is fixed."""
    trip: Trip | None = None

    def __call__(self, rule: int) -> Pattern:
        """Returns the pattern of a rule; all but the last match single events."""
        return self.pattern() if rule == self.rules - 1 else Pattern.begin("s0")

    def pattern(self) -> Pattern:
        """Calls the pattern API."""
        strategy = getattr(AfterMatchSkipStrategy, self.skip)
        named = self.skip in ("skip_to_first", "skip_to_last")
        built = Pattern.begin("s0", strategy(f"s{self.skip_to}") if named else strategy())
        optional = next((number for number, stage in enumerate(self.stages) if not stage.optional), 0)
        firsts = tuple(f"s{number}" for number in range(optional + 1))
        for number, stage in enumerate(self.stages):
            if number:
                built = getattr(built, stage.contiguity)(f"s{number}")
            built = built.where(Fits(stage, firsts, self.trip))
            if stage.most is None:
                built = built.times_or_more(stage.least)
            elif stage.most > 1:
                built = built.times(stage.least, stage.most)
            if stage.most != 1 and stage.inner != "followed_by":
                built = built.consecutive() if stage.inner == "next" else built.allow_combinations()
            if stage.optional:
                built = built.optional()
        return built if self.within is None else built.within(self.within)

    @property
    def is_linear(self) -> bool:
        """Whether each stage has a fixed number of events, so that a partial match waits in one place only."""
        return all(stage.is_fixed for stage in self.stages)

    @property
    def has_one_match(self) -> bool:
        """Whether there is at most one match for each event that it may begin with."""
        ways = {way for stage in self.stages for way in (stage.contiguity, stage.inner if stage.most != 1 else "next")}
        return self.is_linear and "followed_by_any" not in ways and not self.stages[-1].is_negative

    @property
    def is_dated(self) -> bool:
        """Whether a match is found with its last event, and not at some watermark after it."""
        ends = self.stages[-1].contiguity
        return not self.in_processing_time and self.skip == "no_skip" and ends not in ("not_next", "not_followed_by")

    def most_matches(self, events: int) -> int:
        """Returns how many matches there may be, by a rough estimate."""
        most = events
        for stage in self.stages:
            share = max(events * len(stage.remainders) // stage.modulus, 2)
            most *= share if stage.contiguity == "followed_by_any" else 1
            if stage.most != 1:
                most *= share if stage.most is None else stage.most
                most *= share if stage.inner == "followed_by_any" else 1
        return most

    def check(self) -> None:
        """Raises Misfit unless the oracle knows what the pattern means, and the API admits it."""
        stages = self.stages
        if stages[0].is_negative or all(stage.optional for stage in stages) or stages[0].rising:
            raise Misfit("no event to begin with")
        for before, stage in pairwise(stages):
            if stage.is_negative and (before.is_negative or before.optional or before.most != 1):
                raise Misfit("nothing may be absent behind a loop")
            if before.is_negative and (
                stage.modulus != before.modulus or set(stage.remainders) & set(before.remainders)
            ):
                raise Misfit("events must be either absent or taken")
            if before.is_negative and not stage.is_fixed:
                raise Misfit("in Flink an event must be absent until the last repetition that may be left out")
        if stages[-1].contiguity == "not_followed_by" and self.within is None:
            raise Misfit("it never ends")
        if self.skip != "no_skip" and (not self.has_one_match or self.skip_to >= len(stages)):
            raise Misfit("which match is first depends on the automaton")
        if stages[self.skip_to].is_negative or (self.in_processing_time and (self.within or self.late_output)):
            raise Misfit("nothing to skip to, or no event time")
        if self.rules and (self.in_processing_time or self.late_output):
            raise Misfit("when a rule comes depends on timing")


def match_pattern(stream: Any, drawn: DrawnPattern, function: PatternProcessFunction, rules: Any = None) -> Any:
    """Matches a pattern on a stream, or that of the last rule."""
    comparator = _compare if drawn.compares else None
    if rules is None:
        matched = CEP.pattern(stream, drawn.pattern(), comparator)
    else:
        matched = CEP.dynamic_patterns(stream, rules, drawn, comparator)
    if drawn.in_processing_time:
        matched = matched.in_processing_time()
    if drawn.late_output:
        matched = matched.side_output_late_data(OutputTag(LATE))
    return matched.process(function)


def _compare(one: Any, other: Any) -> int:
    left, right = canonical(one), canonical(other)
    return (left > right) - (left < right)


def _described(shape: str, match: _Events, time: int | None, factor: int = 1) -> Any:
    """Returns a record that depends on which event each stage has."""
    events = [
        (7 * int(name[1:]) + position + 1, *fields(event)[:3])
        for name, taken in match.items()
        for position, event in enumerate(taken)
    ]
    total = factor * sum(weight * v for weight, _, v, _ in events)
    trail = [v % 11 for _, _, v, _ in events[:TRAIL_LENGTH]]
    return make(shape, events[0][1], total, max(t for *_, t in events) if time is None else time, trail)


@dataclass
class DescribeMatch(PatternProcessFunction):
    """One result per match; may change its events."""

    shape: str
    dated: bool = False
    changes: bool = False
    trip: Trip | None = None

    def process_match(self, match: Any, ctx: Any) -> Iterator[Any]:
        """Yields the result."""
        step(self.trip)
        yield self.result(match, ctx.timestamp())
        if self.changes:
            for events in match.values():
                for event in events:
                    change(event, -7)

    def result(self, match: _Events, time: int) -> Any:
        """The record for a match."""
        return _described(self.shape, match, time if self.dated else None)


@dataclass
class DescribeTimedOut(DescribeMatch, TimedOutPartialMatchHandler):
    """One result per timed-out partial match, too."""

    def process_timed_out_match(self, match: Any, ctx: Any) -> Iterator[Any]:
        """Yields the result to a side output."""
        yield OutputTag(TIMED_OUT), self.timed_out(match, ctx.timestamp())

    def timed_out(self, match: _Events, time: int) -> Any:
        """The record for a partial match."""
        return _described(self.shape, match, time, -1)


@dataclass(frozen=True, kw_only=True)
class Match(Node):
    """Matches a pattern."""

    weight: ClassVar[float] = 3.0

    key: KeyOf | None
    pattern: DrawnPattern
    function: DescribeMatch

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a pattern of which the oracle knows the matches."""
        return _draw(cls, sketch)

    @property
    def kind(self) -> str:
        """Counted by how it is matched."""
        how = "rules" if self.pattern.rules else "processing" if self.pattern.in_processing_time else self.pattern.skip
        return f"Match{'' if self.key else 'All'}[{how}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """The function, the conditions and the key selector."""
        return ("", "condition", "key") if self.key is not None else ("", "condition")

    @property
    def mutates(self) -> bool:
        """Whether it changes the events of a match."""
        return self.function.changes

    @property
    def pinned(self) -> tuple[str, ...]:
        """The rules come from one subtask."""
        return (*super().pinned, f"node-{self.id}-rules")

    @property
    def waits_for_time(self) -> bool:
        """Whether events wait for the watermark."""
        return not self.pattern.in_processing_time

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Matches come in any order; late events have no event time that could be known."""
        kind, pattern = inputs[0], self.pattern
        self._check(kind)
        if not pattern.in_processing_time:
            kind = kind.in_event_time()
        moved = kind.shuffled(self.parallelism)
        time = EventTime.NONE
        if pattern.is_dated:
            time = EventTime.TAINTED if kind.idle else EventTime.SAFE
        result = replace(moved, shape=self.function.shape, time=time, volume=pattern.most_matches(kind.volume))
        outputs = {"": result}
        if pattern.late_output:
            outputs[LATE] = replace(moved, time=EventTime.TAINTED)
        if isinstance(self.function, DescribeTimedOut):
            outputs[TIMED_OUT] = result
        return outputs

    def _check(self, kind: StreamType) -> None:
        pattern = self.pattern
        pattern.check()
        if not kind.settled:
            raise Misfit("events must be certain")
        if not pattern.in_processing_time and not kind.has_event_time:
            raise Misfit("what is late depends on timing")
        if pattern.rules and (kind.time is not EventTime.SAFE or kind.idle):
            raise Misfit("what is late depends on when the rules come")
        orderly = kind.lane if self.key is None else kind.ordered
        if not orderly and (pattern.in_processing_time or not pattern.compares):
            raise Misfit("the order of events is not known")
        if kind.volume > _MAX_EVENTS or pattern.most_matches(kind.volume) > _MAX_MATCHES:
            raise Misfit("too many matches")
        if self.function.changes and kind.shape not in MUTABLE_SHAPES:
            raise Misfit("the function does not fit")
        if self.function.dated and not pattern.is_dated:
            raise Misfit("when a match is found depends on watermarks")
        if isinstance(self.function, DescribeTimedOut) and not (
            pattern.is_linear and pattern.within is not None and pattern.skip == "no_skip"
        ):
            raise Misfit("which partial matches there are depends on the automaton")

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls CEP.pattern, or CEP.dynamic_patterns with rules of its own."""
        stream = inputs[0] if self.key is None else inputs[0].key_by(site.arm(self, self.key, "key"))
        pattern, function = site.arm(self, self.pattern, "condition"), site.arm(self, self.function)
        if not self.pattern.rules:
            return site.finish(site.call(match_pattern, stream, pattern, function), self)
        rules = site.env.from_collection(list(range(self.pattern.rules))).uid(f"node-{self.id}-rules")
        return site.finish(site.call(match_pattern, stream, pattern, function, rules.set_parallelism(1)), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Enumerates the matches of each key."""
        outputs = {tag: Flow() for tag in ("", LATE, TIMED_OUT)}
        by_key: dict[Any, list[Record]] = {}
        for record in self._on_time(inputs[0], mode, outputs[LATE]):
            key = 0 if self.key is None else self.key.get_key(record.value)
            by_key.setdefault(key, []).append(record)
        end = MAX_TIME if mode is Mode.BATCH else inputs[0].watermark
        for records in by_key.values():
            self._match(records, end, outputs)
        for flow in outputs.values():
            flow.mark(end)
        return outputs

    def _on_time(self, flow: Flow, mode: Mode, late: Flow) -> Iterator[Record]:
        watermark = MIN_TIME
        items = by_time(flow.records()) if mode is Mode.BATCH else flow.items
        for item in items:
            if isinstance(item, Mark):
                watermark = item.time
            elif self.pattern.in_processing_time or mode is Mode.BATCH:
                yield Record(copied(item.value), item.time)
            elif item.time is not None and item.time <= watermark:
                late.emit(item.value, item.time)
            else:
                yield Record(copied(item.value), item.time)

    def _match(self, records: list[Record], end: int, outputs: dict[str, Flow]) -> None:
        pattern = self.pattern
        if not pattern.in_processing_time:
            if pattern.compares:
                records = sorted(records, key=lambda record: canonical(record.value))
            records = [record for record in by_time(records) if record.time is not None and record.time <= end]
        events = [TimedValue(record.time or 0, fields(record.value)[1]) for record in records]
        oracle = PatternOracle(pattern.stages, pattern.within, pattern.skip, pattern.skip_to, events, end)
        matches, timed_out = oracle.run()
        for taken, time in matches:
            value = self.function.result(_by_stage(taken, records), time)
            outputs[""].emit(value, time if pattern.is_dated else None)
        if isinstance(self.function, DescribeTimedOut):
            for taken, time in timed_out:
                outputs[TIMED_OUT].emit(self.function.timed_out(_by_stage(taken, records), time), time)


def _by_stage(taken: Taken, records: Sequence[Record]) -> dict[str, list[Any]]:
    match: dict[str, list[Any]] = {}
    for stage, event in taken:
        match.setdefault(f"s{stage}", []).append(records[event].value)
    return match


# -- drawing ------------------------------------------------------------------------------------------------


def _may_be_matched(kind: StreamType) -> bool:
    return kind.settled and kind.volume <= _MAX_EVENTS and (kind.has_event_time or kind.ordered)


def _draw(cls: type[Match], sketch: Sketch) -> Match | None:
    ref = sketch.pick(_may_be_matched)
    if ref is None:
        return None
    rng, kind = sketch.rng, sketch.types[ref]
    key = None if rng.random() < 0.1 else KeyOf(rng.choice(KEY_KINDS))
    orderly = kind.lane if key is None else kind.ordered
    in_processing_time = orderly and (not kind.has_event_time or rng.random() < 0.15)
    pattern = DrawnPattern(
        _draw_stages(sketch),
        within=None if in_processing_time or rng.random() < 0.3 else rng.choice((24, 88, 400)),
        compares=not in_processing_time and (not orderly or rng.random() < 0.3),
        in_processing_time=in_processing_time,
    )
    if pattern.has_one_match and rng.random() < 0.6:
        skip = rng.choice(("skip_to_next", "skip_past_last_event", "skip_to_first", "skip_to_last"))
        places = [number for number, stage in enumerate(pattern.stages) if not stage.is_negative]
        pattern = replace(pattern, skip=skip, skip_to=rng.choice(places))
    if not in_processing_time and kind.time is EventTime.SAFE and not kind.idle and rng.random() < 0.3:
        pattern = replace(pattern, rules=rng.choice((1, 3)))
    elif not in_processing_time and rng.random() < (0.6 if kind.time is EventTime.EXACT else 0.1):
        pattern = replace(pattern, late_output=True)
    times_out = pattern.is_linear and pattern.within is not None and pattern.skip == "no_skip"
    function = (DescribeTimedOut if times_out and rng.random() < 0.7 else DescribeMatch)(
        rng.choice(SHAPES),
        dated=pattern.is_dated and rng.random() < 0.7,
        changes=kind.shape in MUTABLE_SHAPES and rng.random() < 0.3,
    )
    return cls(
        id=sketch.next_id,
        inputs=(ref,),
        parallelism=1 if key is None else sketch.draw_width(),
        chain=sketch.draw_chain(),
        key=key,
        pattern=pattern,
        function=function,
    )


def _draw_stages(sketch: Sketch) -> tuple[Stage, ...]:
    rng = sketch.rng
    modulus = rng.choice((2, 3, 4))
    stages: list[Stage] = []
    for number in range(rng.choices((1, 2, 3, 4), (1, 6, 3, 1))[0]):
        ways = ["next", "followed_by", "followed_by", "followed_by_any"]
        if stages and stages[-1].most == 1 and not stages[-1].is_negative and not stages[-1].optional:
            ways += ["not_next", "not_followed_by"]
        way = rng.choice(ways) if number else "next"
        taken = stages[-1].remainders if stages and stages[-1].is_negative else ()
        free = [remainder for remainder in range(modulus) if remainder not in taken]
        width = 1 if way.startswith("not_") else rng.choice((1, 2, 2))
        stage = Stage(way, modulus, tuple(sorted(rng.sample(free, min(width, len(free))))))
        if not stage.is_negative:
            stage = _draw_quantifier(sketch, stage, is_fixed=bool(taken), is_first=not number)
        stages.append(stage)
    return tuple(stages)


def _draw_quantifier(sketch: Sketch, stage: Stage, *, is_fixed: bool, is_first: bool) -> Stage:
    rng = sketch.rng
    repeated = ((1, 1), (2, 2), (1, 3), (2, 3), (1, None), (2, None))
    least, most = rng.choices(repeated, (14, 3, 0, 0, 0, 0) if is_fixed else (14, 3, 1, 1, 2, 1))[0]
    return replace(
        stage,
        least=least,
        most=most,
        inner="followed_by" if most == 1 else rng.choices(("followed_by", "next", "followed_by_any"), (3, 2, 1))[0],
        optional=not is_fixed and rng.random() < 0.15,
        rising=not is_first and rng.random() < 0.2,
    )
