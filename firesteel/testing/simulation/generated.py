"""Programs of the generator (`firesteel.testing.programs`) as jobs of the simulated cluster.

Their sources pause for milliseconds; here for seconds, so that there is time for something to break. So do the calls of
their async functions. Their sinks write to ledgers. The expected results are those of the generator's oracle.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing.programs.comparing import compare
from firesteel.testing.programs.grammar import draw_program
from firesteel.testing.programs.nodes.async_waits import AsyncWait
from firesteel.testing.programs.nodes.sources import Source
from firesteel.testing.programs.oracle.evaluate import evaluate
from firesteel.testing.programs.program import Node, Program
from firesteel.testing.programs.running.building import Site, build
from firesteel.testing.programs.running.faults import ProgramFault
from firesteel.testing.programs.running.split_source import Item, Pause, Split, expanded
from firesteel.testing.programs.running.store_sink import StoreSink
from firesteel.testing.simulation.machine import scheduler
from firesteel.testing.simulation.outside import LedgerSink, Outside
from firesteel.testing.simulation.workload import Workload, build_graph

__all__ = ["GeneratedWorkload", "generated"]

F = TypeVar("F")


@dataclass(frozen=True)
class GeneratedWorkload(Workload):
    """A program that was drawn, and what its sinks must hold."""

    program: Program = field(default_factory=lambda: Program(()))
    expected: Mapping[int, list[Any]] = field(default_factory=dict)

    def problems(self, outside: Outside, *, ended: bool) -> list[str]:
        """The differences, once the job has ended."""
        if not ended:
            return []
        return [f"{self.name}: {each}" for each in compare(self.program, self.expected, self._found(outside))]

    def is_complete(self, outside: Outside) -> bool:
        """Whether nothing is missing."""
        return not compare(self.program, self.expected, self._found(outside), partial=True)

    def _found(self, outside: Outside) -> dict[int, list[Any]]:
        return {sink.id: outside.ledger(_ledger(self.name, sink)).committed for sink in self.program.sinks}


def generated(draw: random.Random, settings: Mapping[str, str], parallelism: int) -> GeneratedWorkload:
    """Draws a program that ends and whose functions do not wait: in virtual time nothing would come of that."""
    while True:
        seed = f"{draw.getrandbits(48):x}"
        program = draw_program(seed)
        if program.ends and not any(node.takes_time for node in program.nodes):
            break
    factor = draw.choice((300, 1000))
    types = program.types()
    volumes = {node.id: sum(types[ref].volume for ref in node.inputs) for node in program.nodes}
    program = replace(program, nodes=tuple(_adapted(node, draw, factor, volumes[node.id]) for node in program.nodes))
    program.types()  # nothing of what holds for its streams has changed
    name = f"program-{seed}"
    chosen = {
        **settings,
        "pipeline.operator-chaining.enabled": draw.choice(("true", "true", "false")),
        "pipeline.object-reuse": "false" if program.mutates else draw.choice(("true", "false")),
        "execution.buffer-timeout.interval": draw.choice(("0 ms", "5 ms", "100 ms")),
        "execution.checkpointing.incremental": draw.choice(("true", "false")),
    }
    places = [f"{node.id}.{each}" if each else str(node.id) for node in program.nodes for each in node.functions]
    trips = {draw.choice(places): _Trip(name, draw.choice((1, 5, 20)))} if places and draw.random() < 0.3 else {}

    def define(environment: StreamExecutionEnvironment) -> None:
        build(program, _Site(environment, Path(), cast(Any, trips), name))

    splits = [split for node in program.nodes if isinstance(node, Source) for split in node.splits]
    return GeneratedWorkload(
        name,
        build_graph(name, chosen, parallelism, define),
        uses_wall_clock=True,
        can_rescale=False,
        busy_s=max(map(_busy_s, splits)),
        program=program,
        expected=evaluate(program),
    )


def _busy_s(split: Split) -> float:
    items = list(expanded(split.items))
    pauses = [item.ms for item in items if isinstance(item, Pause)]
    return (sum(pauses) + (len(items) - len(pauses)) / split.burst * split.gap_ms) / 1000


def _ledger(name: str, sink: Node) -> str:
    return f"{name}/{sink.id}"


def _adapted(node: Node, draw: random.Random, factor: int, volume: int) -> Node:
    if node.is_sink:
        # not "store": what several subtasks commit after a restore may come in another order
        return replace(node, how="ledger")  # type: ignore[call-arg]
    if isinstance(node, Source):
        splits = tuple(_slower(split, draw, factor) for split in node.splits)
        marks = node.watermarks
        idle_ms = None if marks.idle_ms is None else marks.idle_ms * factor
        marks = replace(marks, idle_ms=idle_ms, compare_ms=marks.compare_ms * factor)
        return replace(node, splits=splits, watermarks=marks)
    if isinstance(node, AsyncWait):
        longer = min(draw.choice((1, factor)), _MAX_CALLS_MS / max(volume * node.call_units, 1.0))
        longer = max(longer, 1.0)
        timeout_ms = int(node.timeout_ms * longer) if node.function.hangs else node.timeout_ms
        return replace(node, function=replace(node.function, unit_ms=longer), timeout_ms=timeout_ms)
    return node


_MAX_CALLS_MS = 60_000
"""How long all calls of an async function may take, about."""
_MAX_WAIT_MS = 20_000
"""How long a source waits for a checkpoint."""


def _slower(split: Split, draw: random.Random, factor: int) -> Split:
    def slower(item: Item) -> Item:
        if not isinstance(item, Pause):
            return item
        longer = item.ms * factor
        return replace(item, ms=min(longer, _MAX_WAIT_MS) if item.checkpoint else longer)

    gap = split.gap_ms or draw.choice((0, 1, 2))
    return replace(split, items=tuple(map(slower, split.items)), gap_ms=gap * factor)


class _Trip:
    """Fails the nth call of a function, once in all attempts."""

    def __init__(self, name: str, at: int):
        self._name = name
        self._at = at
        self._calls = 0

    def count(self) -> None:
        """Called once for each call of the function."""
        self._calls += 1
        if self._calls >= self._at:
            simulation = scheduler.current
            assert simulation is not None
            outside: Outside = simulation.outside
            if outside.happens_once(self._name):
                raise ProgramFault(f"Injected at call {self._calls}.")


@dataclass
class _Site(Site):
    name: str = ""

    def arm(self, node: Node, function: F, place: str = "") -> F:
        """Returns the function with what is to go wrong; a ledger in the place of a store."""
        if isinstance(function, StoreSink):
            return LedgerSink(_ledger(self.name, node))  # type: ignore[return-value]
        return super().arm(node, function, place)
