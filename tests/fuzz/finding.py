"""How many programs it takes to find a defect that was put back or planted: ``python -m tests.fuzz.finding``."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

from firesteel.testing.programs import Campaign, InProcessRunner
from firesteel.testing.programs.running.workers import judge_in_processes
from tests.fuzz.bugs import BUGS
from tests.fuzz.planted import PLANTED

DEFECTS = {**BUGS, **PLANTED}
DEADLINE_S = 60.0
CLEAN_RUNS = 3
"""So often a program that has found a bug must be right without it."""


@dataclass(frozen=True)
class Installed:
    """Puts a bug back in a process of its own, for good."""

    name: str

    def __call__(self) -> None:
        for each in DEFECTS[self.name]():
            each.start()


def programs_until_found(
    name: str, seed: str, programs: int, jobs: int, only: str | None = None
) -> tuple[int | None, str, float]:
    """The number of programs up to the one that found it; what was wrong with it; and the seconds it took.

    ``only`` is a regular expression: programs whose text does not match are counted, but not run.
    """
    campaign = Campaign(seed, InProcessRunner(DEADLINE_S), only=only, prepare=Installed(name))
    began = time.monotonic()
    for count, verdict in enumerate(judge_in_processes(campaign, range(programs), jobs, DEADLINE_S), 1):
        if verdict.problems and _is_right_without(verdict.seed, seed, jobs):
            return count, f"{verdict.seed}: {verdict.problems[0]}", time.monotonic() - began
    return None, "", time.monotonic() - began


def _is_right_without(program: str, seed: str, jobs: int) -> bool:
    """Whether the same program is right if no bug is put back; if not, it shows something else."""
    number = int(program.rpartition("-")[2])
    runs = judge_in_processes(Campaign(seed, InProcessRunner(DEADLINE_S)), [number] * CLEAN_RUNS, jobs, DEADLINE_S)
    problems = [verdict.problems[0] for verdict in runs if verdict.problems]
    if problems:
        print(f"  {program} is wrong without the bug, too: {problems[0][:110]}", flush=True)
    return not problems


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.finding")
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", default="7")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", metavar="REGEX", help="count programs whose text does not match, but do not run them")
    parser.add_argument("bugs", nargs="*", default=list(DEFECTS))
    arguments = parser.parse_args()
    missed = 0
    for name in arguments.bugs:
        count, problem, seconds = programs_until_found(
            name, arguments.seed, arguments.programs, arguments.jobs, arguments.only
        )
        missed += count is None
        print(f"{name:24} {count or 'not found':>9} programs {seconds:6.0f} s  {problem[:110]}", flush=True)
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
