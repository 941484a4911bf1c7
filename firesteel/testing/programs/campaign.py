"""Runs many programs and reports those whose results are wrong."""

from __future__ import annotations

import argparse
import logging
import re
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

from firesteel.testing.programs.grammar import draw_program
from firesteel.testing.programs.results import check
from firesteel.testing.programs.running import InProcessRunner
from firesteel.testing.programs.way_drawing import draw_way

__all__ = ["main"]


def main() -> int:
    """Runs the programs that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m firesteel.testing.programs")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", default="7")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--without", metavar="REGEX", help="skip programs whose text matches")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    runner = InProcessRunner(20)
    started = time.monotonic()
    failures = 0
    for number in range(arguments.first, arguments.first + arguments.programs):
        seed = f"{arguments.seed}-{number}"
        program = draw_program(seed)
        way = draw_way(program, seed)
        if arguments.without and re.search(arguments.without, f"{program} {way}"):
            continue
        directory = Path(tempfile.mkdtemp(prefix="programs-"))
        began = time.monotonic()
        outcome = runner.run(program, way, directory)
        if time.monotonic() - began > 2:
            _say(seed, "took", time.monotonic() - began, way.phases, len(program.nodes))
        problems = check(program, way, outcome)
        shutil.rmtree(directory, ignore_errors=True)
        if problems:
            failures += 1
            _say(seed, problems)
            for node in program.nodes:
                _say("   ", str(node)[:600])
            _say("   ", way)
            if outcome.details:
                _say(outcome.details)
    _say(f"{arguments.programs} programs in {time.monotonic() - started:.1f} s, {failures} wrong")
    return failures > 0


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()
