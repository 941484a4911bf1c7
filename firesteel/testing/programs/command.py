"""The command line: ``python -m firesteel.testing.programs --programs 500 --seed 7``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from firesteel.testing.programs.campaign import Campaign, Report, Verdict
from firesteel.testing.programs.running.running import EnvironmentRunner, InProcessRunner
from firesteel.testing.programs.running.workers import judge_in_processes

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Runs programs and prints what was found; returns the exit code."""
    options = _parser().parse_args(arguments)
    numbers = range(options.first, options.first + options.programs)
    in_process = options.on == "process"
    runner = InProcessRunner(options.deadline) if in_process else EnvironmentRunner(options.deadline)
    campaign = Campaign(
        options.seed,
        runner,
        kills=not in_process,
        only=options.only,
        without=options.without,
        shrink_seconds=options.shrink,
    )
    if in_process and options.jobs > 1:
        verdicts = judge_in_processes(campaign, numbers, options.jobs, options.deadline)
        report = campaign.sum_up(verdicts, _Progress(options.programs), options.stop_after)
    else:
        report = campaign.run(numbers, _Progress(options.programs), options.stop_after)
    _tell(report, options.directory)
    return 1 if report.findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m firesteel.testing.programs",
        description="Runs DataStream programs drawn at random and compares their results with an oracle's.",
    )
    parser.add_argument("--programs", type=int, default=500, metavar="N", help="how many (500)")
    parser.add_argument("--seed", default="7", help="what they are drawn from (7)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first program (0)")
    parser.add_argument("--on", choices=("process", "spark"), default="process", help="what they run on (process)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (one per core)")
    parser.add_argument("--deadline", type=float, default=60.0, metavar="SECONDS", help="for one program (60)")
    parser.add_argument("--shrink", type=float, default=60.0, metavar="SECONDS", help="for making one small (60)")
    parser.add_argument("--stop-after", type=int, default=3, metavar="N", help="wrong programs (3)")
    parser.add_argument("--only", metavar="REGEX", help="skip programs whose text does not match")
    parser.add_argument("--without", metavar="REGEX", help="skip programs whose text matches")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="where to write programs that are wrong")
    return parser


class _Progress:
    def __init__(self, programs: int):
        self._programs = programs
        self._done = 0

    def __call__(self, verdict: Verdict) -> None:
        self._done += 1
        for problem in verdict.problems:
            _say(f"{verdict.seed}: {problem}")
        if self._done % 100 == 0:
            _say(f"{self._done} of {self._programs}")


def _tell(report: Report, directory: Path | None) -> None:
    _say(report.coverage.report())
    for finding in report.findings:
        _say(f"\nSeed {finding.seed}:\n" + "\n".join(finding.problems))
        if finding.details:
            _say(finding.details)
        if directory is None:
            _say(finding.text)
        else:
            directory.mkdir(parents=True, exist_ok=True)
            path = directory / f"program_{finding.seed.replace('-', '_')}.py"
            path.write_text(finding.text, encoding="utf-8")
            _say(f"python {path}")
    _say(f"\n{report.summary}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
