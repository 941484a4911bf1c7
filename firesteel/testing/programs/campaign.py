"""Runs many programs and reports those whose results are wrong."""

from __future__ import annotations

import logging
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from firesteel.testing.programs.coverage import Coverage, Met, met_by
from firesteel.testing.programs.grammar import GRAMMAR, draw_program
from firesteel.testing.programs.printing import print_program
from firesteel.testing.programs.program import Node
from firesteel.testing.programs.results import Runner, check
from firesteel.testing.programs.running.running import InProcessRunner
from firesteel.testing.programs.running.way_drawing import draw_way
from firesteel.testing.programs.shrinking import Case, shrink

__all__ = ["Campaign", "Finding", "Report", "Verdict"]


@dataclass(frozen=True)
class Verdict:
    """What came of one program."""

    seed: str
    met: Met | None
    problems: tuple[str, ...] = ()
    details: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Finding:
    """A program with wrong results, made small."""

    seed: str
    problems: tuple[str, ...]
    text: str
    """A Python file that shows it."""
    details: str = ""


@dataclass
class Report:
    """What came of a campaign."""

    programs: int = 0
    skipped: int = 0
    findings: list[Finding] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    seconds: float = 0.0

    @property
    def summary(self) -> str:
        """One line."""
        rate = self.programs / self.seconds * 60 if self.seconds else 0
        return f"{self.programs} programs in {self.seconds:.0f} s ({rate:.0f} a minute), {len(self.findings)} wrong"


@dataclass
class Campaign:
    """Draws programs from seeds and runs each once.

    ``grammar`` may have nodes of your own; ``runner`` is what programs are run on.
    """

    seed: str = "7"
    runner: Runner = field(default_factory=InProcessRunner)
    grammar: tuple[type[Node], ...] = GRAMMAR
    kills: bool = False
    only: str | None = None
    """A regular expression: programs whose text does not match are left out."""
    without: str | None = None
    """A regular expression: programs whose text matches are left out."""
    prepare: Callable[[], None] | None = None
    """Called once in each process that runs programs; with several processes it must be importable."""
    shrink_seconds: float = 60.0

    def case(self, number: int) -> Case:
        """Returns the program of a number, and the way to run it."""
        seed = f"{self.seed}-{number}"
        program = draw_program(seed, self.grammar)
        return Case(program, draw_way(program, seed, kills=self.kills))

    def judge(self, number: int) -> Verdict:
        """Runs the program of a number."""
        case = self.case(number)
        seed = case.program.seed
        if self._is_skipped(case):
            return Verdict(seed, None)
        began = time.monotonic()
        with _directory() as directory:
            outcome = self.runner.run(case.program, case.way, directory)
        problems = check(case.program, case.way, outcome)
        met = met_by(case.program, case.way, outcome)
        return Verdict(seed, met, tuple(problems), outcome.details, time.monotonic() - began)

    def _is_skipped(self, case: Case) -> bool:
        if not self.only and not self.without:
            return False
        text = f"{case.program} {case.way}"
        return bool((self.only and not re.search(self.only, text)) or (self.without and re.search(self.without, text)))

    def run(
        self, numbers: Iterable[int], on_verdict: Callable[[Verdict], None] = lambda _verdict: None, stop_after: int = 3
    ) -> Report:
        """Runs programs until so many were wrong; makes those small."""
        return self.sum_up((self.judge(number) for number in numbers), on_verdict, stop_after)

    def sum_up(self, verdicts: Iterator[Verdict], on_verdict: Callable[[Verdict], None], stop_after: int) -> Report:
        """Counts verdicts, and makes programs that were wrong small."""
        if self.prepare is not None:
            self.prepare()
        report, began = Report(), time.monotonic()
        with _quiet():
            for verdict in verdicts:
                on_verdict(verdict)
                if verdict.met is None:
                    report.skipped += 1
                    continue
                report.programs += 1
                report.coverage.add(verdict.met)
                report.seconds = time.monotonic() - began
                if verdict.problems:
                    report.findings.append(self.make_small(verdict))
                    if len(report.findings) >= stop_after:
                        break
        return report

    def make_small(self, verdict: Verdict) -> Finding:
        """Returns the smallest program that was found to fail like this one."""
        number = int(verdict.seed.rpartition("-")[2])
        case, problems = shrink(self.case(number), self._fails, seconds=self.shrink_seconds)
        problems = problems or [*verdict.problems, "(it was right when it was run again)"]
        return Finding(verdict.seed, tuple(problems), print_program(case.program, case.way, problems), verdict.details)

    def _fails(self, case: Case) -> list[str]:
        with _directory() as directory:
            return check(case.program, case.way, self.runner.run(case.program, case.way, directory))


class _directory:  # noqa: N801 - a context manager
    def __enter__(self) -> Path:
        self._path = Path(tempfile.mkdtemp(prefix="programs-"))
        return self._path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


class _quiet:  # noqa: N801 - a context manager
    """Jobs that are made to fail produce logs and warnings."""

    def __enter__(self) -> None:
        self._level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *_: object) -> None:
        self._warnings.__exit__(None, None, None)
        logging.disable(self._level)
