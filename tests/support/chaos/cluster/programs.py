"""Generated programs for a chaos run: long enough to last as long as the faults, and judged by the oracle."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput, SourceReader
from firesteel.testing.programs import Mode, Phase, Program, draw_program, evaluate
from firesteel.testing.programs.comparing import compare
from firesteel.testing.programs.nodes.sinks import Sink
from firesteel.testing.programs.nodes.sources import Source
from firesteel.testing.programs.program import Misfit, Node
from firesteel.testing.programs.records import canonical
from firesteel.testing.programs.running.building import Site, build
from firesteel.testing.programs.running.faults import Fault, Trip
from firesteel.testing.programs.running.split_source import (
    Item,
    Many,
    Pause,
    Position,
    Split,
    SplitReader,
    SplitSource,
    WatermarkAt,
)
from firesteel.testing.programs.running.store_sink import committed_batches, read_store

__all__ = ["Gate", "ProgramJob", "draw_jobs"]

LENGTH = 600
"""Records of a split, about."""
WIDEST = 2
MAX_RESULTS = 60_000
EVALUATION_S = 5.0
BURST = 8
GATE_S = 0.05
MAX_PAUSES = 40
"""Of a split: in epochs, each of them takes an epoch, and that may take a second."""
SHIFT = 1_000_000
"""Between the numbers of two repetitions of a split's records."""
F = TypeVar("F")


# ---- a source that gives only what it is allowed to -------------------------------------------------------


class Gate:
    """Which share of their records sources may give by now; they do not end before all of it is allowed."""

    def __init__(self, path: Path):
        self.path = path

    def open(self, share: float) -> None:
        """Allows a share of all records."""
        unfinished = self.path.with_name(f".{self.path.name}.new")
        unfinished.write_text(f"{share:.6f}")
        unfinished.replace(self.path)

    def share(self) -> float:
        """What is allowed."""
        return float(self.path.read_text())


@dataclass
class GatedSource(SplitSource):
    """A source of a generated program behind a gate. Its pauses do not depend on the wall clock."""

    gate: str = ""

    def create_reader(self, context: ReaderContext) -> SourceReader[Position]:
        return GatedReader(context, self)


class GatedReader(SplitReader):
    def __init__(self, context: ReaderContext, source: GatedSource):
        super().__init__(context, source)
        self._gate = Gate(Path(source.gate))
        self._share = 0.0
        self._looked_at = float("-inf")
        self._wanted_at: float | None = None

    def now_ms(self) -> int:
        return int(time.monotonic() * 1_000)

    def await_ms(self, time_ms: int) -> None:
        self._wanted_at = time_ms / 1_000

    def available_at(self) -> float | None:
        return self._wanted_at

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        self._wanted_at = None
        now = time.monotonic()
        if now >= self._looked_at + GATE_S:
            self._looked_at = now
            self._share = self._gate.share()
        for cursor in self.cursors:
            if self._share < 1 and cursor.position >= int(len(cursor.items) * self._share):
                cursor.ready_at = max(cursor.ready_at, self.now_ms() + int(GATE_S * 1_000))
        return super().poll_next(output, max_records)


@dataclass
class ChaosSite(Site):
    """Puts sources behind the gate."""

    gate: str = ""

    def arm(self, node: Node, function: F, place: str = "") -> F:
        if isinstance(function, SplitSource) and not place:
            drawn = {each.name: getattr(function, each.name) for each in fields(function)}
            function = GatedSource(**drawn, gate=self.gate)  # type: ignore[assignment]
        return super().arm(node, function, place)


# ---- drawing ------------------------------------------------------------------------------------------


def draw_jobs(seed: int, count: int, directory: Path) -> list[ProgramJob]:
    """Draws programs that end, are long enough and not too wide, each with a way to run it. One runs in epochs."""
    drawn = random.Random(f"chaos {seed}")
    jobs: list[ProgramJob] = []
    number = 0
    while len(jobs) < count:
        number += 1
        program = _fitting(draw_program(f"chaos-{seed}-{number}"))
        expected = None if program is None else _evaluated(program)
        if program is None or expected is None:
            continue
        phase = _draw_phase(drawn, program, in_epochs=not jobs)
        jobs.append(ProgramJob(program, phase, expected, directory / f"program-{len(jobs)}"))
    return jobs


def _draw_phase(drawn: random.Random, program: Program, in_epochs: bool) -> Phase:
    unaligned = not in_epochs and drawn.random() < 0.5
    return Phase(
        execution="epochs" if in_epochs else "pipelined",
        parallelism=drawn.choice((1, 1, 2)),
        backend=drawn.choice(("hashmap", "rocksdb")),
        checkpoint_ms=500,
        unaligned=unaligned,
        aligned_timeout_ms=drawn.choice((0, 20)),
        incremental=drawn.random() < 0.7,
        chaining=drawn.random() < 0.8,
        object_reuse=not program.mutates and drawn.random() < 0.3,
        buffer_timeout_ms=drawn.choice((5, 100)),
        watermark_ms=drawn.choice((5, 50, 200)),
    )


def _fitting(program: Program) -> Program | None:
    if not program.ends or any((node.parallelism or 1) > WIDEST for node in program.nodes):
        return None
    stretched = replace(program, nodes=tuple(map(_stretched, program.nodes)))
    if not any(isinstance(node, Source) and any(split.items for split in node.splits) for node in stretched.nodes):
        return None
    try:
        stretched.types()
    except Misfit:
        return None  # what was known of its records does not hold for more of them
    return stretched


def _stretched(node: Node) -> Node:
    if isinstance(node, Sink):
        return replace(node, how="store")  # what is sent to a client may be lost with its JobManager
    if isinstance(node, Source):
        return replace(node, splits=tuple(map(_repeated, node.splits)))
    return node


def _repeated(split: Split) -> Split:
    items = tuple(item for item in split.items if not isinstance(item, Many))
    records = [item for item in items if isinstance(item, tuple)]
    if not records:
        return replace(split, items=items)
    span = (max(t for _, _, t in records) // 4 + 2) * 4
    times = max(1, LENGTH // len(records))
    repeated = [_moved(item, number, span) for number in range(times) for item in items]
    pauses = itertools.count()
    kept = tuple(item for item in repeated if not isinstance(item, Pause) or next(pauses) < MAX_PAUSES)
    return Split(kept, BURST if split.gap_ms else min(split.burst, BURST), split.gap_ms)


def _moved(item: Item, number: int, span: int) -> Item:
    if isinstance(item, Pause):
        return item
    if isinstance(item, WatermarkAt):
        return WatermarkAt(item.t + number * span)
    assert isinstance(item, tuple)
    k, v, t = item
    return k, v + number * SHIFT, t + number * span


def _evaluated(program: Program) -> Mapping[int, list[Any]] | None:
    began = time.monotonic()
    expected = evaluate(program, Mode.STREAM)
    results = sum(map(len, expected.values()))
    if time.monotonic() - began > EVALUATION_S or not 0 < results <= MAX_RESULTS:
        return None
    return expected


# ---- a job --------------------------------------------------------------------------------------------


class ProgramJob:
    """A program with a way to run it, and what it must give."""

    def __init__(self, program: Program, phase: Phase, expected: Mapping[int, list[Any]], directory: Path):
        self.program = program
        self.phase = phase
        self.directory = directory
        self._expected = expected
        self._counted = {sink: Counter(records) for sink, records in expected.items()}
        self._seen: dict[int, set[str]] = {sink: set() for sink in expected}
        self._found: dict[int, Counter[Any]] = {sink: Counter() for sink in expected}
        self.places = [
            f"{node.id}.{place}" if place else str(node.id) for node in program.nodes for place in node.functions
        ]

    def __str__(self) -> str:
        kinds = Counter(node.kind for node in self.program.nodes)
        return (
            f"{self.program.seed}, {self.phase.label}, {self.phase.backend}, parallelism {self.phase.parallelism}: "
            + ", ".join(f"{kind} ×{times}" if times > 1 else kind for kind, times in kinds.items())
        )

    @property
    def results(self) -> int:
        """How many records all sinks must hold."""
        return sum(map(len, self._expected.values()))

    def token(self, place: str) -> Path:
        """The file whose existence makes the next call of a function fail."""
        return self.directory / f"trip-{place}"

    def environment(self, settings: Mapping[str, str], gate: Gate) -> StreamExecutionEnvironment:
        """The program in an environment."""
        self.directory.mkdir(parents=True, exist_ok=True)
        configuration = Configuration.from_dict({**self.phase.settings(), **settings})
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        trips = {place: Trip(Fault("user", place), self.token(place)) for place in self.places}
        build(self.program, ChaosSite(env, self.directory, trips, str(gate.path)))
        return env

    def surplus(self, began: float) -> list[str]:
        """Records that were committed since the last look and are wrong, or there too often; and when that was."""
        types = self.program.types()
        wrong: list[str] = []
        for sink in self.program.sinks:
            if not types[sink.inputs[0]].at(sink.parallelism).settled:
                continue  # only sums are known, at the end
            for path, records in committed_batches(self.directory / f"sink-{sink.id}", self._seen[sink.id]):
                self._seen[sink.id].add(path.name)
                counted = Counter(map(canonical, records))
                when = f"committed in {path.name} at {path.stat().st_mtime - began:.1f} s"
                self._found[sink.id] += counted
                wrong += [
                    f"sink {sink.id}: {record!r} is there {self._found[sink.id][record]} times instead of "
                    f"{self._counted[sink.id][record]}, {when}"
                    for record in counted
                    if self._found[sink.id][record] > self._counted[sink.id][record]
                ]
        return wrong

    def check(self) -> list[str]:
        """What is wrong with the output of a job that has finished."""
        found = {sink.id: read_store(self.directory / f"sink-{sink.id}") for sink in self.program.sinks}
        return compare(self.program, self._expected, found)
