"""Drawn programs with patterns and bundled aggregations, in process: executions, faults, restores, parallelisms."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from firesteel.testing.programs.grammar import draw_program
from firesteel.testing.programs.nodes.bundles import Bundle
from firesteel.testing.programs.nodes.patterns import Match
from firesteel.testing.programs.program import Node, Program
from firesteel.testing.programs.results import check
from firesteel.testing.programs.running.running import InProcessRunner
from firesteel.testing.programs.running.way_drawing import draw_way

KINDS = {"pattern": Match, "bundle": Bundle}


def draw(kind: type[Node], seed: int) -> Program:
    """Draws programs until one has such a node and ends by itself."""
    tries = 0
    while True:
        program = draw_program(f"patterns {seed} {tries}")
        if program.ends and any(isinstance(node, kind) for node in program.nodes):
            return program
        tries += 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_drawn_program_gives_what_the_oracle_says(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    program = draw(KINDS[kind], seed)
    way = draw_way(program, seed)
    outcome = InProcessRunner().run(program, way, tmp_path)
    assert check(program, way, outcome) == [], (program, way)
