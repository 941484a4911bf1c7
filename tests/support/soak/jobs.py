"""The jobs of a soak, and what their output must be: state in RocksDB with windows, unaligned barriers, epochs."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.common import WatermarkStrategy
from firesteel.common.serialization import Encoder
from firesteel.common.time import Duration, Time
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
from firesteel.datastream.window import TumblingEventTimeWindows
from tests.support.chaos.agent import agent
from tests.support.jobs.endless import endless
from tests.support.services.job_managers import Count
from tests.support.visible_files import visible_parts

__all__ = ["JOBS", "SoakJob", "build", "check"]

PER_SECOND = 300
KEYS = 20
STEP_MS = 10
"""Between two records, in event time."""
WINDOW_MS = 1_000
PARALLELISM = 2


@dataclass(frozen=True)
class SoakJob:
    """A job; ``number`` is what its slots call it."""

    number: int
    name: str
    settings: dict[str, str]
    windows: bool = False
    every_checkpoint: bool = True
    """Whether files are complete with each checkpoint; else they stay open over several."""

    @property
    def place(self) -> str:
        """Where its user code can be told to fail."""
        return f"map of {self.number}"


JOBS = (
    SoakJob(
        0,
        "windows in RocksDB",
        # a cache that is full before the measuring begins
        {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.fixed-per-slot": "4 mb"},
        windows=True,
    ),
    SoakJob(
        1,
        "counts, unaligned",
        {"state.backend.type": "hashmap", "execution.checkpointing.unaligned.enabled": "true"},
        every_checkpoint=False,
    ),
    SoakJob(
        2,
        "counts in epochs",
        {
            "state.backend.type": "hashmap",
            "execution.exchange": "spark",
            "execution.epoch.target-duration": "500 ms",
        },
    ),
)


class Watch(MapFunction):
    """Opens the agent of the process, and fails when told to."""

    def __init__(self, control: Path, job: int, place: str):
        self.control = control
        self.job = job
        self.place = place

    def open(self, runtime_context: RuntimeContext) -> None:
        agent.open(self.control, runtime_context.get_attempt_number(), self.job, [self.place])

    def close(self) -> None:
        agent.close()

    def map(self, value: int) -> int:
        agent.at(self.place)
        return value


class Total(AggregateFunction):
    """How many records, and their sum."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value

    def get_result(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WindowLine(ProcessWindowFunction[Any, Any, Any, Any]):
    """A line for each window of a key."""

    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterable[str]:
        ((count, total),) = elements
        yield f"{key} {context.window().start} {count} {total}"


def _key(number: int) -> int:
    return number % KEYS


def build(env: StreamExecutionEnvironment, job: SoakJob, output: Path, control: Path) -> None:
    """Puts the job's operators into the environment."""
    env.set_parallelism(PARALLELISM)
    numbers: DataStream = endless(env, PER_SECOND).set_parallelism(1)
    # as wide as the keyed operators: every slot has user code that can be told to fail
    watched = numbers.rebalance().map(Watch(control, job.number, job.place)).uid("watch")
    if job.windows:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(WINDOW_MS))
        timed = watched.assign_timestamps_and_watermarks(
            strategy.with_timestamp_assigner(lambda number, _: number * STEP_MS)
        )
        windows = timed.key_by(_key).window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        lines = windows.aggregate(Total(), WindowLine()).uid("windows")
    else:
        lines = watched.key_by(_key).process(Count()).uid("count")
    policy = RollingPolicy.on_checkpoint_rolling_policy()
    if not job.every_checkpoint:
        policy = RollingPolicy.default_rolling_policy(rollover_interval=10_000, inactivity_interval=10_000)  # type: ignore[assignment]
    sink = FileSink.for_row_format(str(output), Encoder.simple_string_encoder()).with_rolling_policy(policy)
    lines.sink_to(sink.build()).uid("files")


def check(job: SoakJob, output: Path) -> tuple[int, list[str]]:
    """How many records are in the output of a job that was stopped, and what is wrong with it."""
    return (_check_windows if job.windows else _check_counts)(_lines(output))


def _lines(output: Path) -> Iterable[list[int]]:
    for path in visible_parts(output):
        with path.open() as file:
            for line in file:
                yield list(map(int, line.split()))


class _Tally:
    """How often each number below some bound was there."""

    def __init__(self) -> None:
        self._times = array("B")

    def add(self, number: int) -> None:
        if number >= len(self._times):
            self._times.extend(bytes(number + 1 - len(self._times)))
        self._times[number] = min(self._times[number] + 1, 255)

    def __len__(self) -> int:
        return len(self._times)

    def problems(self, what: Callable[[int], str]) -> list[str]:
        """What is missing and what is there twice."""
        lost = [number for number, times in enumerate(self._times) if not times]
        twice = [number for number, times in enumerate(self._times) if times > 1]
        found = []
        if lost:
            found.append(f"{len(lost)} lost, the first is {what(lost[0])}")
        if twice:
            found.append(f"{len(twice)} twice, the first is {what(twice[0])}")
        return found


def _check_counts(lines: Iterable[list[int]]) -> tuple[int, list[str]]:
    values = _Tally()
    counts = [_Tally() for _ in range(KEYS)]
    elsewhere = 0
    for key, count, value in lines:
        values.add(value)
        counts[key].add(count - 1)
        elsewhere += value % KEYS != key
    problems = values.problems(lambda value: f"record {value}")
    for key, tally in enumerate(counts):
        problems += [f"counts of key {key}: {problem}" for problem in tally.problems(lambda count: f"{count + 1}")]
    if elsewhere:
        problems.append(f"{elsewhere} records under another key")
    return len(values), problems


def _check_windows(lines: Iterable[list[int]]) -> tuple[int, list[str]]:
    windows: dict[tuple[int, int], tuple[int, int]] = {}
    problems = []
    for key, start, count, total in lines:
        if (key, start) in windows:
            problems.append(f"twice: the window of key {key} at {start}")
        windows[key, start] = count, total
    records = sum(count for count, _ in windows.values())
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for number in range(records):
        place = _key(number), number * STEP_MS // WINDOW_MS * WINDOW_MS
        count, total = expected.get(place, (0, 0))
        expected[place] = count + 1, total + number
    for key, start in sorted(expected.keys() | windows.keys(), key=lambda place: place[1]):
        found, right = windows.get((key, start)), expected.get((key, start))
        if found != right:
            problems.append(f"the window of key {key} at {start} has {found} instead of {right}")
    return records, problems
