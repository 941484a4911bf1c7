"""A batch job of three stages, each of which can be held up once so that a test can kill what runs it.

Who comes first to a stage that is to be held up says who it is, in a file, and waits. Nobody waits there again: a task
that is run once more goes through.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from firesteel.common import WatermarkStrategy
from firesteel.common.serialization import Encoder
from firesteel.common.time import Time
from firesteel.datastream import (
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import eventually

__all__ = ["STAGES", "build", "expected", "hidden_files", "lines", "who_waits"]

STAGES = ("source", "process", "window")
RECORDS = 4_000
KEYS = 50
GROUPS = 7
WINDOW_MS = 1_000
_LONG_S = 300.0


class Hold:
    """Holds up the first process that comes to a stage."""

    def __init__(self, directory: Path, stage: str, held: str):
        self.path = directory / "held" if stage == held else None

    def __call__(self) -> None:
        if self.path is None:
            return
        try:
            descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            self.path = None
            return
        os.write(descriptor, b"%d\n" % os.getpid())
        os.close(descriptor)
        threading.Event().wait(_LONG_S)


class Read(MapFunction):
    """Part of the source's stage."""

    def __init__(self, hold: Hold):
        self.hold = hold

    def map(self, value: int) -> int:
        self.hold()
        return value


class Running(KeyedProcessFunction):
    """Numbers the records of each key."""

    def __init__(self, hold: Hold):
        self.hold = hold

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int, int]]:
        self.hold()
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


class Total(ProcessWindowFunction[Any, Any, Any, Any]):
    """What a window of a group adds up to."""

    def __init__(self, hold: Hold):
        self.hold = hold

    def process(self, key: int, context: Any, elements: Iterable[tuple[int, int]]) -> Iterable[str]:
        self.hold()
        counts = [count for _, count in elements]
        yield f"{key} {context.window().start} {len(counts)} {sum(counts)}"


def build(env: StreamExecutionEnvironment, directory: Path, held: str) -> None:
    """Puts the job into an environment; its files go to ``directory/output``."""
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    holds = [Hold(directory, stage, held) for stage in STAGES]
    source = DataGeneratorSource(lambda index: index, RECORDS)
    totals = (
        env.from_source(source, strategy, "numbers")
        .map(Read(holds[0]))
        .key_by(lambda value: value % KEYS)
        .process(Running(holds[1]))
        .key_by(lambda pair: pair[0] % GROUPS)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .process(Total(holds[2]))
    )
    totals.sink_to(FileSink.for_row_format(directory / "output", Encoder.simple_string_encoder()).build())


def expected() -> list[str]:
    """The lines that all files have together."""
    sizes: Counter[tuple[int, int]] = Counter()
    sums: Counter[tuple[int, int]] = Counter()
    for value in range(RECORDS):
        window = value % GROUPS, value // WINDOW_MS * WINDOW_MS
        sizes[window] += 1
        sums[window] += value // KEYS + 1
    return sorted(f"{group} {start} {sizes[group, start]} {sums[group, start]}" for group, start in sizes)


def who_waits(directory: Path) -> int:
    """The process that is held up, as soon as there is one."""

    def found() -> int:
        text = (directory / "held").read_text() if (directory / "held").exists() else ""
        assert text.endswith("\n"), "no process has come to the stage"
        return int(text)

    return eventually(found, timeout=240.0)


def lines(directory: Path) -> list[str]:
    """What a reader of the job's output sees."""
    return sorted(
        line
        for path in (directory / "output").rglob("*")
        if path.is_file() and not _is_hidden(path, directory)
        for line in path.read_text().splitlines()
    )


def hidden_files(directory: Path) -> list[str]:
    """What is there besides."""
    return sorted(
        str(path.relative_to(directory))
        for path in (directory / "output").rglob("*")
        if path.is_file() and _is_hidden(path, directory)
    )


def _is_hidden(path: Path, directory: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(directory).parts)
