"""The chaos job: sums, windows, timers of both kinds and a side output, into two file sinks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from firesteel.common import WatermarkStrategy
from firesteel.common.serialization import Encoder
from firesteel.common.time import Duration, Time
from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from firesteel.datastream.function_base import Function
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SourceReader,
    SplitEnumeratorContext,
)
from tests.support.chaos.agent import agent
from tests.support.chaos.stream import (
    ALARM_EVERY,
    JITTER_MS,
    LANES,
    SIDE_EVERY,
    WINDOW_MS,
    Event,
    event_at,
    line,
    sum_payload,
)

__all__ = ["Directories", "build", "read_limit", "write_limit"]

SIDE = OutputTag("side")
ALARM_AFTER_MS = 150
LIMIT_POLL_S = 0.02


@dataclass(frozen=True)
class Directories:
    """Where the parts of one chaos run meet."""

    root: Path

    @property
    def output(self) -> Path:
        """What the sinks write and readers see."""
        return self.root / "output"

    @property
    def checkpoints(self) -> Path:
        """Checkpoints of all drivers, one directory for each."""
        return self.root / "checkpoints"

    @property
    def control(self) -> Path:
        """Orders, slots, fault points, the limit of the input."""
        return self.root / "control"

    @property
    def limit(self) -> Path:
        """How many records the log has."""
        return self.control / "limit"

    def create(self) -> Directories:
        """Makes the directories."""
        for path in (self.output, self.checkpoints, *(self.control / name for name in ("orders", "slots", "points"))):
            path.mkdir(parents=True, exist_ok=True)
        (self.control / "violations").mkdir(exist_ok=True)
        (self.root / "tmp").mkdir(exist_ok=True)
        return self


def write_limit(path: Path, count: int, ended: bool) -> None:
    """The log has so many records; ``ended`` if there will never be more."""
    temporary = path.with_name(".limit.new")
    temporary.write_text(f"{count} {int(ended)}")
    temporary.replace(path)


def read_limit(path: Path) -> tuple[int, bool]:
    """How many records the log has, and whether that is all."""
    count, ended = path.read_text().split()
    return int(count), ended == "1"


# ---- the source ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogSplit:
    """Every LANES-th record from a position on."""

    split_id: str
    position: int


class LogSource(Source[LogSplit]):
    """Reads a log that grows as the limit's file says, and ends when that says so."""

    def __init__(self, limit: Path):
        self.limit = limit

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> OwnedSplitEnumerator[LogSplit]:
        return OwnedSplitEnumerator(context, [LogSplit(str(lane), lane) for lane in range(LANES)])

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[LogSplit]
    ) -> OwnedSplitEnumerator[LogSplit]:
        return OwnedSplitEnumerator(context, state)

    def create_reader(self, context: ReaderContext) -> LogReader:
        return LogReader(context, self.limit)


class LogReader(SourceReader[LogSplit]):
    def __init__(self, context: ReaderContext, limit: Path):
        self._context = context
        self._path = limit
        self._limit = (0, False)
        self._read_at = 0.0
        self._splits: list[LogSplit] = []
        self._no_more_splits = False

    def start(self) -> None:
        if not self._splits:
            self._context.send_split_request()

    def add_splits(self, splits: Sequence[LogSplit]) -> None:
        self._splits += splits

    def notify_no_more_splits(self) -> None:
        self._no_more_splits = True

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        agent.at("source")
        now = time.monotonic()
        if now >= self._read_at:
            self._limit = read_limit(self._path)
            self._read_at = now + LIMIT_POLL_S
        limit, ended = self._limit
        if not self._splits:
            return InputStatus.END_OF_INPUT if self._no_more_splits else InputStatus.NOTHING_AVAILABLE
        index = min(range(len(self._splits)), key=lambda i: self._splits[i].position)
        split = self._splits[index]
        end = min(split.position + LANES * min(max_records, 64), limit + LANES - 1)
        positions = range(split.position, min(end, limit), LANES)
        if positions:
            self._splits[index] = replace(split, position=positions[-1] + LANES)
            output.collect(split.split_id, [event_at(position) for position in positions])
            return InputStatus.MORE_AVAILABLE
        if not ended:
            return InputStatus.NOTHING_AVAILABLE
        for each in self._splits:
            output.release_split(each.split_id)
        self._splits.clear()
        if not self._no_more_splits:
            self._context.send_split_request()
        return InputStatus.END_OF_INPUT if self._no_more_splits else InputStatus.NOTHING_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> list[LogSplit]:
        return list(self._splits)

    def available_at(self) -> float | None:
        return self._read_at if self._splits else None


# ---- the functions ------------------------------------------------------------------------------------


class Guard(MapFunction, CheckpointedFunction):
    """Opens the slot's agent; sees to it, with operator state, that no record of a split is missing or comes twice."""

    def __init__(self, control: Path, run: int):
        self.control = control
        self.run = run
        self.last: dict[int, int] = {}

    def open(self, runtime_context: RuntimeContext) -> None:
        places = ("map", "key selector", "source", "snapshot")
        agent.open(self.control, runtime_context.get_attempt_number(), self.run, places)

    def close(self) -> None:
        agent.close()

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("last", None))
        # after a change of parallelism splits are read elsewhere: everybody knows all, the highest is the latest
        self.last = dict(sorted(self.state.get()))

    def snapshot_state(self, context: Any) -> None:
        agent.at("snapshot")
        self.state.update(list(self.last.items()))

    def map(self, value: Event) -> Event:
        agent.at("map")
        lane = value.position % LANES
        last = self.last.get(lane)
        if value.position != (lane if last is None else last + LANES):
            text = f"operator state: after record {last} came {value.position}"
            (self.control / "violations" / f"{lane}-{value.position}").write_text(text)
        self.last[lane] = value.position
        return value


class Watched(Function):
    """A function whose process has an agent."""

    def __init__(self, control: Path, run: int):
        self.control = control
        self.run = run

    def watch(self, runtime_context: RuntimeContext, *places: str) -> None:
        agent.open(self.control, runtime_context.get_attempt_number(), self.run, places)

    def close(self) -> None:
        agent.close()


class Sums(Watched, KeyedProcessFunction):
    """Running sums of each key; some records go to the side output."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.watch(runtime_context, "process", "encoder")
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", None))
        self.sides = runtime_context.get_state(ValueStateDescriptor("sides", None))

    def process_element(self, value: Event, ctx: Any) -> Iterator[Any]:
        agent.at("process")
        count, total = self.sum.value() or (0, 0)
        count, total = count + 1, total + value.value
        self.sum.update((count, total))
        yield line("sum", value.key, count, sum_payload(total, value.position))
        if value.value % SIDE_EVERY == 0:
            number = (self.sides.value() or 0) + 1
            self.sides.update(number)
            yield SIDE, line("side", value.key, number, value.position)


class Total(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Event, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value.value

    def get_result(self, accumulator: tuple[int, int]) -> str:
        return f"{accumulator[0]}:{accumulator[1]}"

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WindowLine(Watched, ProcessWindowFunction[Any, Any, Any, Any]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.watch(runtime_context, "window")

    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        agent.at("window")
        (total,) = elements
        yield line("window", key, context.window().start, total)


class Timers(Watched, KeyedProcessFunction):
    """An event-time timer at the end of each window tells how many records it had; every so many records an alarm in
    processing time goes off a little later."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.watch(runtime_context, "timer")
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", None, None))
        self.alarms = runtime_context.get_map_state(MapStateDescriptor("alarms", None, None))
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: Event, ctx: Any) -> None:
        timers = ctx.timer_service()
        end = value.time // WINDOW_MS * WINDOW_MS + WINDOW_MS
        self.counts.put(end, (self.counts.get(end) or 0) + 1)
        timers.register_event_time_timer(end)
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count % ALARM_EVERY == 0:
            due = timers.current_processing_time() + ALARM_AFTER_MS
            self.alarms.put(count, (due, value.position))
            timers.register_processing_time_timer(due)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        agent.at("timer")
        group = ctx.get_current_key()
        if self.counts.contains(timestamp):
            yield line("timer", group, timestamp, self.counts.get(timestamp))
            self.counts.remove(timestamp)
            return
        for number, (due, index) in sorted(self.alarms.items()):
            if due <= timestamp:
                yield line("alarm", group, number, index)
                self.alarms.remove(number)


# ---- the sinks ----------------------------------------------------------------------------------------


class Lines(Encoder):
    def encode(self, element: str, stream: BinaryIO) -> None:
        agent.at("encoder")
        stream.write(element.encode() + b"\n")


class ByKind(BucketAssigner):
    """One directory for each kind of result."""

    def get_bucket_id(self, element: str, context: BucketAssigner.Context) -> str:
        return element.partition(" ")[0]


def _key(event: Event) -> int:
    agent.at("key selector")
    return event.key


def _group(event: Event) -> int:
    return event.group


def build(env: StreamExecutionEnvironment, directories: Directories, run: int) -> None:
    """Puts the job's operators into the environment."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(JITTER_MS)).with_timestamp_assigner(
        lambda event, _: event.time
    )
    watched = directories.control, run
    events: DataStream = (
        env.from_source(LogSource(directories.limit), strategy, "log").uid("log").map(Guard(*watched)).uid("guard")
    )
    sums = events.key_by(_key).process(Sums(*watched)).uid("sums")
    windows = (
        events.key_by(_group)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .aggregate(Total(), WindowLine(*watched))
        .uid("windows")
    )
    timers = events.key_by(_group).process(Timers(*watched)).uid("timers")
    every_checkpoint = FileSink.for_row_format(directories.output / "sums", Lines()).with_rolling_policy(
        RollingPolicy.on_checkpoint_rolling_policy()
    )
    # files that stay in progress over several checkpoints
    by_size = FileSink.for_row_format(directories.output / "others", Lines()).with_rolling_policy(
        RollingPolicy.default_rolling_policy(part_size=2_000, rollover_interval=1_500, inactivity_interval=1_000)
    )
    root = BucketAssigner.base_path_bucket_assigner()
    sums.sink_to(every_checkpoint.with_bucket_assigner(root).build()).name("sums").uid("sums sink")
    others = sums.get_side_output(SIDE).union(windows, timers)
    sink = by_size.with_bucket_assigner(ByKind()).with_bucket_check_interval(200).build()
    others.sink_to(sink).name("others").uid("others sink")
