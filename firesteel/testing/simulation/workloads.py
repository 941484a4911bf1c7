"""Small programs with known results, for the simulated cluster."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.common import Types, WatermarkStrategy
from firesteel.common.time import Duration, Time
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import KeyedCoProcessFunction, KeyedProcessFunction, RuntimeContext
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing.simulation.logs import LogRecord, LogSource
from firesteel.testing.simulation.outside import LedgerSink, Outside, UpsertSink
from firesteel.testing.simulation.workload import Workload, build_graph
from firesteel.testing.source import At

__all__ = ["WORKLOADS", "LedgerWorkload"]

_END = 10**12


@dataclass(frozen=True)
class LedgerWorkload(Workload):
    """A job that writes known records to one ledger of its name."""

    expected: Counter[Any] = field(default_factory=Counter)
    exactly_once: bool = True

    def problems(self, outside: Outside, *, ended: bool) -> list[str]:
        """What is wrong with what was written by now."""
        found = self._found(outside)
        problems = []
        surplus = found - self.expected
        if not self.exactly_once:
            surplus = Counter({value: count for value, count in surplus.items() if value not in self.expected})
        if surplus:
            problems.append(f"{self.name}: written too often, or wrong: {_shown(surplus)}")
        missing = self.expected - found
        if missing and ended:
            problems.append(f"{self.name}: lost: {_shown(missing)}")
        return problems

    def is_complete(self, outside: Outside) -> bool:
        """Whether all output is there."""
        return not self.expected - self._found(outside)

    def _found(self, outside: Outside) -> Counter[Any]:
        ledger = outside.ledger(self.name)
        return Counter(ledger.committed if self.exactly_once else (write.value for write in ledger.writes))


def _shown(counts: Counter[Any]) -> str:
    items = sorted(counts.items(), key=repr)
    return ", ".join(f"{value!r} ×{count}" for value, count in items[:5]) + (" …" if len(items) > 5 else "")


def _log(draw: random.Random, values: Iterable[Any], splits: int, end_s: float) -> LogSource:
    """The values over several splits, and over the time until the end."""
    lists: list[list[LogRecord]] = [[] for _ in range(splits)]
    items = list(values)
    times = sorted(draw.uniform(0, end_s) for _ in items)
    for at_s, value in zip(times, items, strict=True):
        record = LogRecord(at_s, value.value, value.timestamp) if isinstance(value, At) else LogRecord(at_s, value)
        lists[draw.randrange(splits)].append(record)
    return LogSource(lists, ends_at_s=end_s)


class _Count(KeyedProcessFunction):
    """Emits each key with the number of its records so far."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield value[0], count


class _Timestamps(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


def _length(draw: random.Random) -> float:
    """How long a job has something to read, in seconds."""
    return draw.choice((20.0, 60.0, 120.0, 300.0))


def _keyed(draw: random.Random, keys: int, most: int) -> list[tuple[str, int]]:
    return [(f"k{draw.randrange(keys)}", number) for number in range(draw.randint(most // 4, most))]


def counts(
    draw: random.Random, settings: dict[str, str], parallelism: int, exactly_once: bool = True
) -> LedgerWorkload:
    """Counts per key, exactly once."""
    records = _keyed(draw, 5, 80)
    totals = Counter(key for key, _ in records)
    name = "counts" if exactly_once else "upserts"
    end_s = _length(draw)

    def define(environment: StreamExecutionEnvironment) -> None:
        source = _log(draw, records, parallelism + 1, end_s)
        stream = environment.from_source(source, WatermarkStrategy.no_watermarks(), "records")
        counted = stream.key_by(lambda record: record[0]).process(_Count())
        counted.sink_to(LedgerSink(name) if exactly_once else UpsertSink(name))

    graph = build_graph(name, settings, parallelism, define)
    expected = Counter((key, count + 1) for key, total in totals.items() for count in range(total))
    return LedgerWorkload(name, graph, busy_s=end_s, expected=expected, exactly_once=exactly_once)


def upserts(draw: random.Random, settings: dict[str, str], parallelism: int) -> LedgerWorkload:
    """Counts per key, written at once."""
    return counts(draw, settings, parallelism, exactly_once=False)


def windows(draw: random.Random, settings: dict[str, str], parallelism: int) -> LedgerWorkload:
    """Records per key and window of ten seconds of event time, a little out of order."""
    size, disorder = 10_000, 2_000
    records = [
        (f"k{draw.randrange(4)}", max(0, number * 700 - draw.randrange(disorder)))
        for number in range(draw.randint(20, 80))
    ]
    expected = Counter((key, timestamp // size * size) for key, timestamp in records)
    end_s = _length(draw)

    def define(environment: StreamExecutionEnvironment) -> None:
        # in one split: the watermark of several would depend on which is read first
        source = _log(draw, [At(record, record[1]) for record in records], 1, end_s)
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(disorder))
        stream = environment.from_source(source, strategy.with_timestamp_assigner(_Timestamps()), "events")
        counted = (
            stream.map(lambda record: (record[0], record[1] // size * size, 1))
            .key_by(lambda record: (record[0], record[1]))
            .window(TumblingEventTimeWindows.of(Time.milliseconds(size)))
            .reduce(lambda one, other: (one[0], one[1], one[2] + other[2]))
        )
        counted.sink_to(LedgerSink("windows"))

    results = Counter((key, start, count) for (key, start), count in expected.items())
    graph = build_graph("windows", settings, parallelism, define)
    return LedgerWorkload("windows", graph, busy_s=end_s, expected=results)


class _Timers(KeyedProcessFunction):
    """Emits a key with the number of its records when event time ends, and once when two seconds have passed."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        count = self._count.value()
        if count is None:
            ctx.timer_service().register_event_time_timer(_END)
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 2000)
        self._count.update((count or 0) + 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        if timestamp == _END:
            yield "total", ctx.get_current_key(), self._count.value()
        else:
            yield "seen", ctx.get_current_key()


def timers(draw: random.Random, settings: dict[str, str], parallelism: int) -> LedgerWorkload:
    """Event-time and processing-time timers per key."""
    records = _keyed(draw, 6, 60)
    totals = Counter(key for key, _ in records)
    end_s = _length(draw)

    def define(environment: StreamExecutionEnvironment) -> None:
        source = _log(draw, records, parallelism, end_s)
        # longer than the timers take: what has not fired by the end of the input never does
        source.linger_s = 10.0
        stream = environment.from_source(source, WatermarkStrategy.no_watermarks(), "records")
        stream.key_by(lambda record: record[0]).process(_Timers()).sink_to(LedgerSink("timers"))

    expected: Counter[Any] = Counter(("total", key, total) for key, total in totals.items())
    expected.update(("seen", key) for key in totals)
    graph = build_graph("timers", settings, parallelism, define)
    return LedgerWorkload("timers", graph, uses_wall_clock=True, busy_s=end_s, expected=expected)


class _Sides(KeyedCoProcessFunction):
    """Counts the records of both inputs, and emits both counts when event time ends."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._left = runtime_context.get_state(ValueStateDescriptor("left", Types.PICKLED_BYTE_ARRAY()))
        self._right = runtime_context.get_state(ValueStateDescriptor("right", Types.PICKLED_BYTE_ARRAY()))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> None:
        self._left.update((self._left.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(_END)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> None:
        self._right.update((self._right.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(_END)

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any]:
        yield ctx.get_current_key(), self._left.value() or 0, self._right.value() or 0


def sides(draw: random.Random, settings: dict[str, str], parallelism: int) -> LedgerWorkload:
    """Two sources that meet in one function."""
    left, right = _keyed(draw, 4, 40), _keyed(draw, 4, 40)
    of_left, of_right = Counter(key for key, _ in left), Counter(key for key, _ in right)
    ends_s = {"left": _length(draw), "right": _length(draw)}

    def define(environment: StreamExecutionEnvironment) -> None:
        streams = [
            environment.from_source(
                _log(draw, records, 2, ends_s[name]), WatermarkStrategy.no_watermarks(), name
            ).key_by(lambda record: record[0])
            for name, records in (("left", left), ("right", right))
        ]
        streams[0].connect(streams[1]).process(_Sides()).sink_to(LedgerSink("sides"))

    keys = sorted({*of_left, *of_right})
    expected = Counter((key, of_left[key], of_right[key]) for key in keys)
    graph = build_graph("sides", settings, parallelism, define)
    return LedgerWorkload("sides", graph, busy_s=max(ends_s.values()), expected=expected)


WORKLOADS = (counts, upserts, windows, timers, sides)
"""Functions of a random generator, a job's settings and its parallelism."""
