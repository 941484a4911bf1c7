"""How many programs it takes to find a bug that was put back: ``python -m tests.fuzz.finding``."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

from firesteel.testing.programs import Campaign, InProcessRunner
from firesteel.testing.programs.workers import judge_in_processes
from tests.fuzz.bugs import BUGS

DEADLINE_S = 15.0


@dataclass(frozen=True)
class Installed:
    """Puts a bug back in a process of its own, for good."""

    name: str

    def __call__(self) -> None:
        for each in BUGS[self.name]():
            each.start()


def programs_until_found(name: str, seed: str, programs: int, jobs: int) -> tuple[int | None, str, float]:
    """The number of programs that were run, with the last one; what was wrong with it; and the seconds it took."""
    campaign = Campaign(seed, InProcessRunner(DEADLINE_S), prepare=Installed(name))
    began = time.monotonic()
    for count, verdict in enumerate(judge_in_processes(campaign, range(programs), jobs, DEADLINE_S), 1):
        if verdict.problems:
            return count, f"{verdict.seed}: {verdict.problems[0]}", time.monotonic() - began
    return None, "", time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.finding")
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", default="7")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("bugs", nargs="*", default=[name for name in BUGS if name != "starving_tasks"])
    arguments = parser.parse_args()
    missed = 0
    for name in arguments.bugs:
        count, problem, seconds = programs_until_found(name, arguments.seed, arguments.programs, arguments.jobs)
        missed += count is None
        print(f"{name:24} {count or 'not found':>9} programs {seconds:6.0f} s  {problem[:110]}", flush=True)
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
