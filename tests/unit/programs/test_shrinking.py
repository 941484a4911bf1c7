"""Programs that fail are made small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firesteel.testing.programs.grammar import draw_program
from firesteel.testing.programs.nodes.reductions import Reduce
from firesteel.testing.programs.nodes.sources import Source
from firesteel.testing.programs.program import Program
from firesteel.testing.programs.running.way_drawing import draw_way
from firesteel.testing.programs.running.ways import Way
from firesteel.testing.programs.shrinking import Case, kind_of, shrink


def _records(program: Program) -> list[tuple[int, int, int]]:
    return [
        item
        for node in program.nodes
        if isinstance(node, Source)
        for split in node.splits
        for item in split.items
        if isinstance(item, tuple)
    ]


def _reduced(program: Program) -> Program:
    """Leaves the last reduce, and what it reads."""
    needed: set[int] = set()
    for node in reversed(program.nodes):
        if node.id in needed or (isinstance(node, Reduce) and not needed):
            needed |= {node.id, *(ref.node for ref in node.inputs)}
    return replace(program, nodes=tuple(node for node in program.nodes if node.id in needed))


def _case() -> Case:
    """A program with a reduce that reads at least twenty records."""
    for seed in range(1000):
        program = draw_program(seed)
        if len(_records(_reduced(program))) >= 20:
            way = draw_way(program, seed)
            if len(way.phases) > 1 and way.faults:
                return Case(program, way)
    raise AssertionError


def test_what_is_not_needed_is_left_out() -> None:
    def fails(case: Case) -> list[str]:
        return ["sink 1: wrong"] if len(_records(_reduced(case.program))) >= 2 else []

    small, problems = shrink(_case(), fails, tries=5000)
    assert problems == ["sink 1: wrong"]
    assert len(_records(small.program)) == 2
    assert sorted(node.kind.partition("[")[0] for node in small.program.nodes) == ["Reduce", "Sink", "Source"]
    small.program.types()
    assert replace(small.way, seed="") == Way()


def test_another_failure_does_not_count() -> None:
    case = _case()

    def fails(candidate: Case) -> list[str]:
        return ["sink 1: wrong"] if candidate == case else ["fails: TypeError: …"]

    assert shrink(case, fails) == (case, ["sink 1: wrong"])


def test_candidates_that_cannot_run_do_not_count() -> None:
    case = _case()

    def fails(candidate: Case) -> list[str]:
        if candidate != case:
            raise TypeError
        return ["hangs: …"]

    assert shrink(case, fails) == (case, ["hangs: …"])


def test_it_ends_after_some_tries() -> None:
    tried = 0

    def fails(_case: Case) -> list[str]:
        nonlocal tried
        tried += 1
        return ["sink 1: wrong"]

    shrink(_case(), fails, tries=10)
    assert tried <= 20


@pytest.mark.parametrize(
    ("problems", "kind"),
    [
        (["sink 3: 1 missing", "sink 4: 2 too many"], "differs"),
        (["hangs: the job did not end"], "hangs"),
        (["fails: JobExecutionError: x: y"], "fails: JobExecutionError"),
        ([], ""),
    ],
)
def test_kinds_of_failures(problems: list[str], kind: str) -> None:
    assert kind_of(problems) == kind
