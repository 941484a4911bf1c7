"""A fixed handful of drawn programs, in process."""

from __future__ import annotations

import logging
from itertools import count
from pathlib import Path

import pytest

from firesteel.testing.programs.grammar import draw_program
from firesteel.testing.programs.program import Program
from firesteel.testing.programs.results import check
from firesteel.testing.programs.running.running import InProcessRunner
from firesteel.testing.programs.running.way_drawing import draw_way

SEEDS = [3, 5, 8, 13, 21, 34, 55, 89, 144, 233]
KINDS = ["EvictingWindow", "IntervalJoin", "LateIntervalJoin", "WindowJoin", "WindowCoGroup", "AsyncWait", "Query"]
"""What no seed may have, or not in a program that is small."""
MAX_VOLUME = 800


def draw_with(kind: str) -> Program:
    """Draws programs until a small one that ends has such a node."""
    for number in count():
        program = draw_program(f"with {kind} {number}")
        if (
            program.ends
            and 0 < program.volume < MAX_VOLUME
            and any(node.kind.startswith(kind) for node in program.nodes)
        ):
            return program
    raise AssertionError


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [*SEEDS, *KINDS])
def test_a_drawn_program_gives_what_the_oracle_says(
    seed: int | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    program = draw_with(seed) if isinstance(seed, str) else draw_program(seed)
    way = draw_way(program, seed)
    outcome = InProcessRunner().run(program, way, tmp_path)
    assert check(program, way, outcome) == [], (program, way)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_draws_the_same_program_again(seed: int) -> None:
    program = draw_program(seed)
    assert program == draw_program(seed)
    assert draw_way(program, seed) == draw_way(program, seed)
