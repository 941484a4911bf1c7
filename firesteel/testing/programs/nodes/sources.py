"""Sources: several splits with uneven rates, pauses, disorder, late records and idleness."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.testing.programs.keys import KEYS
from firesteel.testing.programs.nodes.watermarks import TimestampOf, Watermarks, disorder_of, has_late
from firesteel.testing.programs.oracle.flow import MAX_TIME, MIN_TIME, Flow, Mode
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import SHAPES, make
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.split_source import Item, Many, Pause, Split, SplitSource, WatermarkAt, expanded

__all__ = ["ON_COMPLETE", "Source"]

ON_COMPLETE = "on_complete"
"""The place in a source that is notified of complete checkpoints."""
_NONE = Watermarks()


@dataclass(frozen=True, kw_only=True)
class Source(Node):
    """Reads splits of given records."""

    is_source: ClassVar[bool] = True

    splits: tuple[Split, ...]
    shape: str = "numbers"
    watermarks: Watermarks = _NONE
    timestamps: bool = True
    shared: bool = False
    """Readers ask for one split after the other, instead of having their own from the beginning."""
    bounded: bool = True

    @classmethod
    def draw(cls, sketch: Sketch) -> Source:
        """Draws a source with records."""
        return draw_source(sketch)

    @property
    def functions(self) -> tuple[str, ...]:
        """The reader, and the timestamp assigner."""
        return ("", "assigner") if self.watermarks.assigner else ("",)

    @property
    def kind(self) -> str:
        """Sources are counted by their watermarks."""
        idle = "+idle" if self.watermarks.idle_ms is not None else ""
        return f"Source[{self.watermarks.kind}{idle}]"

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Looks at the records to see what holds for them."""
        full = [split for split in self.splits if any(True for _ in _records(split))]
        owners = Counter(k for split in full for k in {record[0] for record in _records(split)})
        disorder = max((disorder_of(split.items) for split in full), default=0)
        ordered = max(owners.values(), default=1) == 1
        lane = len(full) <= 1
        one_by_one = lane or len(self.splits) == self.parallelism
        return {
            "": StreamType(
                self.shape,
                time=self._event_time(full, disorder),
                ordered=ordered,
                lane=lane,
                idle=self.watermarks.idle_ms is not None,
                width=self.parallelism,
                disorder=disorder if one_by_one and not self.shared else None,
                ascending=ordered and disorder == 0,
                volume=sum(1 for split in full for _ in _records(split)),
            )
        }

    def _event_time(self, full: list[Split], disorder: int) -> EventTime:
        marks = self.watermarks
        if not self.timestamps and not marks.assigner:
            if marks.kind != "none":
                raise Misfit("watermarks without timestamps")
            return EventTime.NONE
        if self.shared and (marks.kind != "none" or not self.bounded):
            raise Misfit("a split that is found later may be behind the others, or never found")
        if marks.idle_ms is not None and len(full) > 1:
            raise Misfit("while one split is idle the others may go ahead of it")
        if marks.drift is not None and not self.bounded and marks.idle_ms is None:
            raise Misfit("a split that has no more records holds the others back for ever")
        if marks.kind in ("bounded", "monotonous"):
            if disorder > marks.bound:
                raise Misfit("records may be late or not")
        elif marks.kind in ("punctuated", "inline"):
            if len(self.splits) == 1 and self.parallelism == 1:
                return EventTime.EXACT
            if any(has_late(marks, split.items) for split in full):
                raise Misfit("records may be late or not")
        return EventTime.SAFE

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls from_source."""
        on_complete = site.trips.get(f"{self.id}.{ON_COMPLETE}")
        source = SplitSource(self.splits, self.shape, self.timestamps, self.shared, self.bounded, None, on_complete)
        source = site.arm(self, source)
        strategy = self.watermarks.strategy(site.arm(self, TimestampOf(), "assigner"))
        return site.finish(site.env.from_source(source, strategy, f"source {self.id}"), self)

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Gives the records of one split after the other."""
        flow = Flow()
        timed = self.timestamps or self.watermarks.assigner
        exact = len(self.splits) == 1 and self.parallelism == 1 and mode is not Mode.BATCH
        for split in self.splits:
            for event in self.watermarks.events(split.items):
                if isinstance(event, WatermarkAt):
                    if exact:
                        flow.mark(event.t)
                else:
                    k, v, t = event
                    flow.emit(make(self.shape, k, v, t, (v % 7,)), t if timed else None)
        flow.mark(self._stay() if mode is Mode.STAY and not self.bounded else MAX_TIME)
        return {"": flow}

    def _stay(self) -> int:
        """Returns how far event time certainly comes before the source is stopped."""
        lasts = [self.watermarks.last(split.items) for split in self.splits]
        if self.watermarks.idle_ms is not None:
            return max(lasts)
        if self.parallelism is None or self.parallelism > len(self.splits):
            return MIN_TIME  # a reader without a split holds event time back
        return min(lasts)


def _records(split: Split) -> Iterator[tuple[int, int, int]]:
    return (item for item in expanded(split.items) if isinstance(item, tuple))


_CHECKPOINT = Pause(400, checkpoint=True)
_SILENCE = Pause(25)
"""Longer than an idle timeout."""
_LONG_SILENCE = Pause(150)
"""Longer than a slow consumer takes for what was read before it."""

# -- drawing ------------------------------------------------------------------------------------------------


def draw_source(sketch: Sketch) -> Source:
    """Draws a source of one of several kinds, which differ in how their event time goes."""
    rng = sketch.rng
    # what an idle source has lost shows only if it does not end
    style = rng.choices(("plain", "exact", "idle", "bare"), (8, 5, 3, 5) if sketch.ends else (6, 0, 11, 4))[0]
    shape = rng.choice(SHAPES)
    number = 1 if style == "exact" else rng.choices((1, 2, 3, 5), (3, 4, 3, 1))[0]
    disorder = rng.choice((0, 0, 8, 40))
    base = sketch.next_id * 100_000
    owned = rng.random() < 0.7
    full = number if style != "idle" else 1
    timeouts = (4, 10) if sketch.ends else (4, 10, 40)
    watermarks, timestamps = _draw_watermarks(rng, style, disorder, number, timeouts)
    many = 1.0 if rng.random() < (0.3 if style == "idle" and sketch.ends else 0.06) else 0.03
    pauses = (_SILENCE,) if sketch.ends else (_SILENCE, _LONG_SILENCE)
    splits = [_draw_split(rng, base + 10_000 * i, i, full, owned, disorder, style, many, pauses) for i in range(full)]
    if rng.random() < 0.4:
        splits = [replace(split, items=_with_checkpoint(rng, split.items)) for split in splits]
    if full > 1 and rng.random() < 0.4:
        splits = _with_one_ahead(rng, splits)
    if watermarks.kind == "inline":
        splits = [replace(split, items=_with_watermarks(rng, split.items, style)) for split in splits]
    splits += [Split(()) for _ in range(number - full)]
    if style != "idle" and number > 1 and rng.random() < 0.15:
        splits[-1] = Split(())
    rng.shuffle(splits)
    widths = (None, 1, len(splits), len(splits) + 1)
    weights = {"exact": (0, 1, 0, 0), "idle": (4, 4, 2, 1)}.get(style, (6, 1, 3, 1))
    parallelism = rng.choices(widths, weights)[0]
    bounded = sketch.ends or rng.random() < 0.4
    return Source(
        id=sketch.next_id,
        parallelism=parallelism,
        chain=sketch.draw_chain(),
        splits=tuple(splits),
        shape=shape,
        watermarks=watermarks,
        timestamps=timestamps,
        shared=bounded and watermarks.kind == "none" and rng.random() < 0.3,
        bounded=bounded,
    )


def _draw_watermarks(
    rng: random.Random, style: str, disorder: int, splits: int, timeouts: tuple[int, ...]
) -> tuple[Watermarks, bool]:
    if style == "bare":
        return Watermarks(), False
    assigner = rng.random() < 0.3
    timestamps = not assigner or rng.random() < 0.5
    if style == "exact":
        return Watermarks(rng.choice(("punctuated", "inline")), rng.choice((0, 10)), assigner=assigner), timestamps
    kinds = ["bounded", "punctuated"]
    if disorder == 0:
        kinds.append("monotonous")
    if style == "plain":
        kinds += ["none", "inline"]
    kind = rng.choice(kinds)
    bound = 0 if kind == "monotonous" else disorder + rng.choice((4, 4, 16))
    idle = rng.choice(timeouts) if style == "idle" else None
    drift = rng.choice((20, 200)) if splits > 1 and kind in ("bounded", "monotonous") and rng.random() < 0.2 else None
    return Watermarks(kind, bound, idle, assigner, drift), timestamps


def _draw_split(
    rng: random.Random,
    base: int,
    index: int,
    splits: int,
    owned: bool,
    disorder: int,
    style: str,
    many: float,
    pauses: tuple[Pause, ...],
) -> Split:
    """Draws one split; ``many`` is how likely it has a great number of records in a row."""
    count = rng.choices((0, 3, 20, 60), (1, 2, 8, 6))[0]
    keys = [k for k in range(rng.choice((1, 3, KEYS))) if not owned or k % splits == index] or [index % KEYS]
    items: list[Item] = []
    clock = rng.choice((0, 0, 100))
    stride = rng.choice((1, 5, 12))
    late = disorder if style != "exact" else rng.choice((0, 30, 120))
    for i in range(count):
        clock += rng.randint(0, 2 * stride)
        t = clock - (rng.randint(0, late) if rng.random() < 0.5 else 0)
        items.append((rng.choice(keys), base + i, max(t - t % 4, 0)))
        if rng.random() < 0.02:
            items.append(Pause(rng.choice((2, 5, 15))))
    floods = rng.random() < many
    if floods:
        items.append(
            Many(rng.choice((300, 5000)), tuple(keys[:2]), base + 5_000, clock - clock % 4, rng.choice((0, 4)))
        )
    if style == "idle":
        _add_silences(rng, items)
        if rng.random() < (0.6 if len(pauses) == 1 else 0.85):
            # one record behind a silence, which completes most windows
            latest = max((item[2] for item in expanded(items) if isinstance(item, tuple)), default=0)
            silence = rng.choice((*pauses, _CHECKPOINT))
            items += [silence, (rng.choice(keys), base + 4_999, latest + 400)]
    burst, gap = (500, 0) if floods else (rng.choice((1, 1, 2, 5, 50)), rng.choice((0, 0, 0, 1, 2)))
    return Split(tuple(items), burst, gap)


def _with_checkpoint(rng: random.Random, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Waits for a checkpoint somewhere between the records, which is at another time in each split."""
    at = rng.randint(0, len(items))
    return (*items[:at], _CHECKPOINT, *items[at:])


def _with_one_ahead(rng: random.Random, splits: Sequence[Split]) -> list[Split]:
    """Makes one split far faster than the others."""
    ahead = rng.randrange(len(splits))
    return [
        replace(split, burst=50, gap_ms=0)
        if index == ahead
        else replace(split, burst=rng.choice((1, 2)), gap_ms=2)
        if not any(isinstance(item, Many) for item in split.items)
        else split
        for index, split in enumerate(splits)
    ]


def _add_silences(rng: random.Random, items: list[Item]) -> None:
    for _ in range(rng.randint(1, 2)):
        items.insert(rng.randint(0, len(items)), _SILENCE)
    if rng.random() < 0.5:
        items.append(_SILENCE)


def _with_watermarks(rng: random.Random, drawn: Sequence[Item], style: str) -> tuple[Item, ...]:
    """Puts watermarks between the records."""
    items = list(drawn)
    places = sorted(rng.sample(range(len(items) + 1), min(len(items), rng.randint(0, 6))), reverse=True)
    for place in places:
        after = [item[2] for item in expanded(items[place:]) if isinstance(item, tuple)]
        before = [item[2] for item in expanded(items[:place]) if isinstance(item, tuple)]
        safe = min(after, default=max(before, default=0)) - 1
        if style == "exact" and before:
            safe = max(before) - rng.choice((0, 20))
        items.insert(place, WatermarkAt(safe))
    return tuple(items)
