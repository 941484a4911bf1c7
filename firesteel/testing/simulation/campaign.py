"""``python -m firesteel.testing.simulation --runs 200 --seed 7``: runs simulated clusters and reports failures."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from firesteel.testing.simulation.run import RunResult, draw_plan, simulate

__all__ = ["main"]


def main() -> int:
    """The exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m firesteel.testing.simulation", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="that of the first run; the others follow")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="how many runs are simulated at once"
    )
    parser.add_argument("--story", action="store_true", help="print what happened, even if nothing was wrong")
    arguments = parser.parse_args()
    begun = time.monotonic()
    results = []
    for result in _results(range(arguments.seed, arguments.seed + arguments.runs), arguments.processes):
        if arguments.story or result.problems:
            _show(result)
        results.append(replace(result, story=[]))  # those of hundreds of runs are long
    _summarize(results, time.monotonic() - begun)
    return 1 if any(result.problems for result in results) else 0


def _results(seeds: range, processes: int) -> Iterator[RunResult]:
    if processes <= 1 or len(seeds) <= 1:
        yield from map(_run, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(_run, seeds)


def _run(seed: int) -> RunResult:
    return simulate(draw_plan(seed))


def _show(result: RunResult) -> None:
    out = sys.stdout
    out.write(result.description + "\n")
    out.write("\n".join(result.story) + "\n")
    for problem in result.problems:
        out.write(f"PROBLEM: {problem}\n")
    out.write(f"again: python -m firesteel.testing.simulation --runs 1 --seed {result.seed}\n\n")
    out.flush()


def _summarize(results: list[RunResult], seconds: float) -> None:
    out = sys.stdout
    virtual = sum(result.virtual_s for result in results)
    cpu = sum(result.cpu_s for result in results)
    wrong = [result.seed for result in results if result.problems]
    met: Counter[tuple[str, str]] = sum((result.met for result in results), Counter())
    out.write(
        f"{len(results)} runs, {virtual / 60:.0f} simulated minutes in {seconds:.0f} s "
        f"({virtual / seconds:.0f} per minute; {virtual / cpu:.0f} per minute of CPU), "
        f"at most {max(result.resident_mb for result in results)} MB per process\n"
    )
    statuses = sorted({status for _, status in met})
    width = max((len(kind) for kind, _ in met), default=0)
    for kind in sorted({kind for kind, _ in met}):
        counts = "  ".join(f"{status} {met[kind, status]}" for status in statuses if met[kind, status])
        out.write(f"  {kind:<{width}}  {counts}\n")
    out.write(f"wrong: {len(wrong)}{' ' if wrong else ''}{', '.join(map(str, wrong))}\n")
