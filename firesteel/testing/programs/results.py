"""Results of a run, and its errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from firesteel.testing.programs.comparing import compare
from firesteel.testing.programs.oracle.evaluate import evaluate
from firesteel.testing.programs.oracle.flow import Mode
from firesteel.testing.programs.program import Program
from firesteel.testing.programs.running.ways import Way

__all__ = ["Outcome", "Runner", "check"]


@dataclass
class Outcome:
    """What came of a run."""

    results: dict[int, list[Any]] = field(default_factory=dict)
    """The records of each sink by node id."""
    problem: str = ""
    """The job failed, or did not end in time; empty if neither."""
    details: str = ""
    happened: list[str] = field(default_factory=list)
    """The faults and actions that came to pass, by their labels."""
    phases: int = 0
    """How many phases were begun."""


class Runner(Protocol):
    """Something programs can be run on."""

    def run(self, program: Program, way: Way, directory: Path) -> Outcome:
        """Runs the program; returns within a deadline."""
        ...


def check(program: Program, way: Way, outcome: Outcome) -> list[str]:
    """Returns what is wrong with the outcome of a run."""
    if outcome.problem:
        return [outcome.problem]
    mode = Mode.BATCH if way.phases[0].execution == "batch" else Mode.STREAM
    return compare(program, evaluate(program, mode), outcome.results)
