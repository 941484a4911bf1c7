"""A fixed handful of drawn programs, in process."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from firesteel.testing.programs.grammar import draw_program
from firesteel.testing.programs.results import check
from firesteel.testing.programs.running.running import InProcessRunner
from firesteel.testing.programs.running.way_drawing import draw_way

SEEDS = [3, 5, 8, 13, 21, 34, 55, 89, 144, 233]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_program_gives_what_the_oracle_says(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    program = draw_program(seed)
    way = draw_way(program, seed)
    outcome = InProcessRunner().run(program, way, tmp_path)
    assert check(program, way, outcome) == [], (program, way)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_draws_the_same_program_again(seed: int) -> None:
    program = draw_program(seed)
    assert program == draw_program(seed)
    assert draw_way(program, seed) == draw_way(program, seed)
