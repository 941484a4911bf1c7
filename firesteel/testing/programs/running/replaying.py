"""Runs one program again: what a printed program calls."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from firesteel.testing.programs.program import Program
from firesteel.testing.programs.results import check
from firesteel.testing.programs.running.running import InProcessRunner
from firesteel.testing.programs.running.ways import Way

__all__ = ["replay"]


def replay(program: Program, way: Way, build: Callable[..., None] | None = None, times: int = 10) -> None:
    """Runs a program until its results are wrong, at most so many times; exits with 1 if they were.

    ``build(env, directory, trips)`` makes the streams; without it they are made from the program's nodes.
    """
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for number in range(1, times + 1):
        directory = Path(tempfile.mkdtemp(prefix="program-"))
        outcome = InProcessRunner(build=build).run(program, way, directory)
        shutil.rmtree(directory, ignore_errors=True)
        problems = check(program, way, outcome)
        if problems:
            sys.stdout.write(f"run {number}:\n" + "\n".join(problems) + "\n" + outcome.details)
            sys.exit(1)
    sys.stdout.write(f"nothing wrong in {times} runs\n")
