"""Drawn programs with async functions, in process: all executions, faults, restores and other parallelisms."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from firesteel.testing.programs.grammar import GRAMMAR, draw_program
from firesteel.testing.programs.nodes.async_waits import AsyncWait
from firesteel.testing.programs.program import Program
from firesteel.testing.programs.results import check
from firesteel.testing.programs.running.running import InProcessRunner
from firesteel.testing.programs.running.way_drawing import draw_way

SEEDS = range(6)


def draw(seed: int) -> Program:
    """Draws programs until one has an async function and ends by itself."""
    tries = 0
    while True:
        program = draw_program(f"async {seed} {tries}", (*GRAMMAR, AsyncWait))
        if program.ends and any(isinstance(node, AsyncWait) for node in program.nodes):
            return program
        tries += 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_program_gives_what_the_oracle_says(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    program = draw(seed)
    way = draw_way(program, seed)
    outcome = InProcessRunner().run(program, way, tmp_path)
    assert check(program, way, outcome) == [], (program, way)
