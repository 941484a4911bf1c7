"""Whole runs of the simulated cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

from firesteel.testing.simulation.run import RunResult, draw_plan, simulate

SEEDS = (101, 102, 103, 107, 113, 131)


@cache
def run_of(seed: int) -> RunResult:
    """Simulates once what several tests look at."""
    return simulate(draw_plan(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_is_right(seed: int) -> None:
    result = run_of(seed)
    assert result.problems == [], "\n".join([result.description, *result.story])
    assert result.virtual_s > 60


def test_a_run_replays_in_the_same_process() -> None:
    first, second = run_of(101), simulate(draw_plan(101))
    assert first.story == second.story
    assert len(first.story) > 20
    assert run_of(102).story != first.story


def test_a_run_replays_in_another_process_with_other_hashes() -> None:
    runs = "[simulate(draw_plan(seed)).digest for seed in (101, 102, 103)]"
    code = f"from firesteel.testing.simulation.run import *; print({runs})"

    def digests(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=True).stdout

    first = digests("1")
    assert first.count("'") == 6
    assert first == digests("2")


def test_a_run_loads_no_modules() -> None:
    run_of(101)  # what only a first run needs
    before = set(sys.modules)
    simulate(draw_plan(103))
    assert {name for name in set(sys.modules) - before if name.startswith("firesteel.")} == set()
