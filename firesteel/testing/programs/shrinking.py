"""Shrinks a failing program to a smaller one that still fails."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from firesteel.testing.programs.nodes.sources import Source
from firesteel.testing.programs.program import Node, Program, Ref
from firesteel.testing.programs.running.split_source import Many, Split
from firesteel.testing.programs.running.ways import Phase, Way

__all__ = ["Case", "kind_of", "shrink"]

_FIRST_TRIES = 5


@dataclass(frozen=True)
class Case:
    """A program and a way to run it."""

    program: Program
    way: Way


Fails = Callable[[Case], list[str]]
"""Runs a case and returns what is wrong."""


def shrink(case: Case, fails: Fails, *, tries: int = 300, seconds: float = 120.0) -> tuple[Case, list[str]]:
    """Returns a smaller case that fails, and what is wrong with it.

    Every step that leaves a case that fails is kept; it ends when none does, or after so many tries or seconds.
    """
    budget = _Budget(tries, time.monotonic() + seconds)
    problems: list[str] = []
    for _ in range(_FIRST_TRIES):
        problems = problems or fails(case)
    kind = kind_of(problems)
    progress = bool(problems)
    while progress and budget.lasts():
        progress = False
        for smaller in _candidates(case):
            if not budget.lasts():
                break
            found = _try(smaller, fails, budget)
            if found and kind_of(found) == kind:
                case, problems, progress = smaller, found, True
                break
    return case, problems


def kind_of(problems: list[str]) -> str:
    """Returns what kind of failure it is: a smaller program must fail in the same way.

    >>> kind_of(["sink 3: 1 of 9 missing: …"]), kind_of(["fails: JobExecutionError: …"]), kind_of([])
    ('differs', 'fails: JobExecutionError', '')
    """
    if not problems:
        return ""
    first = problems[0].split(":")
    return ":".join(first[:2]) if first[0] == "fails" else "differs" if first[0].startswith("sink") else first[0]


class _Budget:
    def __init__(self, tries: int, until: float):
        self._tries = tries
        self._until = until

    def lasts(self) -> bool:
        return self._tries > 0 and time.monotonic() < self._until

    def spend(self) -> None:
        self._tries -= 1


def _try(case: Case, fails: Fails, budget: _Budget) -> list[str]:
    try:
        case.program.types()
        budget.spend()
        return fails(case) or fails(case)  # what is wrong may need some luck to show
    except Exception:  # noqa: BLE001 - what was left out was needed
        return []


def _candidates(case: Case) -> Iterator[Case]:
    """Yields smaller cases, those that leave out most first."""
    for program in _smaller_programs(case.program):
        yield replace(case, program=program)
    for way in _smaller_ways(case.way):
        yield replace(case, way=way)
    for program in _simpler_programs(case.program):
        yield replace(case, program=program)


def _smaller_ways(way: Way) -> Iterator[Way]:
    if len(way.phases) > 1:
        yield replace(way, phases=way.phases[1:])
        yield replace(way, phases=(*way.phases[:-2], replace(way.phases[-2], stop_after=None)))
    for index in range(len(way.faults)):
        yield replace(way, faults=way.faults[:index] + way.faults[index + 1 :])
    if len(way.phases) == 1 and not way.faults and not way.phases[0].actions and way.phases[0].checkpoint_ms:
        yield _with_phase(way, 0, replace(way.phases[0], checkpoint_ms=None))
    plain = Phase()
    for index, phase in enumerate(way.phases):
        for field in dataclasses.fields(phase):
            default = getattr(plain, field.name)
            if field.name in ("checkpoint_ms", "stop_after") or getattr(phase, field.name) == default:
                continue
            yield _with_phase(way, index, replace(phase, **{field.name: default}))
        for parallelism in range(1, phase.parallelism):
            yield _with_phase(way, index, replace(phase, parallelism=parallelism))


def _with_phase(way: Way, index: int, phase: Phase) -> Way:
    return replace(way, phases=(*way.phases[:index], phase, *way.phases[index + 1 :]))


def _smaller_programs(program: Program) -> Iterator[Program]:
    if len(program.sinks) > 1:
        for sink in program.sinks:
            yield _pruned(program, {sink.id})
        for sink in program.sinks:
            yield _pruned(program, {other.id for other in program.sinks} - {sink.id})
    for node in program.nodes:
        if node.inputs and not node.is_sink:
            for source in node.inputs:
                yield _bypassed(program, node, source)
    for node in program.nodes:
        for less in node.smaller():
            yield _with_node(program, less)
    for node in program.nodes:
        if isinstance(node, Source):
            for smaller in _smaller_sources(node):
                yield _with_node(program, smaller)


def _pruned(program: Program, sinks: set[int]) -> Program:
    """Leaves those sinks, and what they need."""
    needed = set(sinks)
    for node in reversed(program.nodes):
        if node.id in needed:
            needed |= {ref.node for ref in node.inputs}
    return replace(program, nodes=tuple(node for node in program.nodes if node.id in needed))


def _bypassed(program: Program, gone: Node, source: Ref) -> Program:
    """Leaves out a node; who read it reads one of its inputs."""
    nodes = []
    for node in program.nodes:
        if node.id != gone.id:
            inputs = tuple(source if ref.node == gone.id else ref for ref in node.inputs)
            nodes.append(replace(node, inputs=inputs))
    shortened = replace(program, nodes=tuple(nodes))
    return _pruned(shortened, {sink.id for sink in shortened.sinks})


def _with_node(program: Program, changed: Node) -> Program:
    return replace(program, nodes=tuple(changed if node.id == changed.id else node for node in program.nodes))


def _smaller_sources(source: Source) -> Iterator[Source]:
    for index in range(len(source.splits)):
        if len(source.splits) > 1:
            yield replace(source, splits=source.splits[:index] + source.splits[index + 1 :])
    for index, split in enumerate(source.splits):
        for items in _shorter(split.items):
            yield _with_split(source, index, replace(split, items=items))


def _shorter(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yields the sequence with a half, a quarter and so on left out, then with fewer repetitions."""
    length = len(items)
    while length > 1:
        length = (length + 1) // 2
        for start in range(0, len(items), length):
            yield items[:start] + items[start + length :]
    if len(items) == 1:
        yield ()
    for index, item in enumerate(items):
        if isinstance(item, Many) and item.count > 1:
            yield (*items[:index], replace(item, count=item.count // 2), *items[index + 1 :])


def _with_split(source: Source, index: int, split: Split) -> Source:
    return replace(source, splits=(*source.splits[:index], split, *source.splits[index + 1 :]))


def _simpler_programs(program: Program) -> Iterator[Program]:
    for node in program.nodes:
        for simpler in _simpler(node):
            yield _with_node(program, simpler)


def _simpler(value: Any) -> Iterator[Any]:
    """Yields a dataclass with one field as it is by default, also within its fields, or one element fewer."""
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        if field.name in ("id", "inputs", "splits"):
            continue
        if field.default is not dataclasses.MISSING and content != field.default and content is not None:
            yield replace(value, **{field.name: field.default})
        if dataclasses.is_dataclass(content):
            for simpler in _simpler(content):
                yield replace(value, **{field.name: simpler})
        elif isinstance(content, tuple) and len(content) > 1 and dataclasses.is_dataclass(content[0]):
            for index in range(len(content)):
                yield replace(value, **{field.name: content[:index] + content[index + 1 :]})
