"""Coverage of operators by faults and executions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from firesteel.testing.programs.program import Program
from firesteel.testing.programs.results import Outcome
from firesteel.testing.programs.running.ways import Way

__all__ = ["Coverage", "Met", "met_by"]

EXECUTIONS = ("no checkpoints", "aligned", "unaligned", "epochs", "batch")
OPERATORS = (
    "Source", "Map", "Filter", "FlatMap", "Union", "Repartition", "AssignTimestamps", "Reduce", "Window", "WindowAll",
    "EvictingWindow", "KeyedProcess", "Process", "HoldBack", "CoMap", "CoProcess", "IntervalJoin", "LateIntervalJoin",
    "WindowJoin", "WindowCoGroup", "AsyncWait", "Broadcast", "Match", "MatchAll", "Bundle", "Query", "Sink",
)  # fmt: skip


@dataclass(frozen=True)
class Met:
    """What one run covered."""

    operators: tuple[str, ...]
    executions: tuple[str, ...]
    faults: tuple[str, ...]
    """Faults and actions that came to pass, and ``restored`` if there was a savepoint in between."""


def met_by(program: Program, way: Way, outcome: Outcome) -> Met:
    """Returns what a run covered."""
    phases = way.phases[: outcome.phases]
    faults = list(outcome.happened)
    if len(phases) > 1:
        faults.append("restored")
        if len({phase.execution for phase in phases}) > 1:
            faults.append("restored in another execution")
        if len({phase.backend for phase in phases}) > 1:
            faults.append("restored with another backend")
        if len({phase.parallelism for phase in phases}) > 1:
            faults.append("restored at another parallelism")
    return Met(
        tuple(sorted({node.kind for node in program.nodes})),
        tuple(sorted({phase.label for phase in phases})),
        tuple(sorted(set(faults))) or ("none",),
    )


@dataclass
class Coverage:
    """Sums up what many runs covered."""

    programs: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    with_execution: Counter[tuple[str, str]] = field(default_factory=Counter)
    with_fault: Counter[tuple[str, str]] = field(default_factory=Counter)
    fault_in_execution: Counter[tuple[str, str]] = field(default_factory=Counter)
    triples: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, met: Met) -> None:
        """Counts a run."""
        self.programs += 1
        self.operators.update(met.operators)
        self.faults.update(met.faults)
        for operator in met.operators:
            self.with_execution.update((operator, execution) for execution in met.executions)
            self.with_fault.update((operator, fault) for fault in met.faults)
        for fault in met.faults:
            self.fault_in_execution.update((fault, execution) for execution in met.executions)
        self.triples.update(
            (operator.partition("[")[0], fault, execution)
            for operator in met.operators
            for fault in met.faults
            for execution in met.executions
        )

    def report(self) -> str:
        """Returns tables of operator by execution, fault by execution, and operator by fault."""
        faults = sorted(self.faults)
        families = sorted({operator.partition("[")[0] for operator in self.operators})
        by_family: Counter[tuple[str, str]] = Counter()
        for (operator, fault), count in self.with_fault.items():
            by_family[operator.partition("[")[0], fault] += count
        parts = [
            "Programs by operator and execution:",
            _table(sorted(self.operators), EXECUTIONS, self.with_execution),
            "Programs by fault and execution:",
            _table(faults, EXECUTIONS, self.fault_in_execution),
            "Programs by fault and operator:",
            _table(faults, families, Counter({(fault, family): n for (family, fault), n in by_family.items()})),
            self._holes(families, faults),
        ]
        return "\n\n".join(part for part in parts if part)

    def _holes(self, families: list[str], faults: list[str]) -> str:
        lines = [f"Not drawn: {', '.join(missing)}" for missing in [sorted(set(OPERATORS) - set(families))] if missing]
        possible = [
            (operator, fault, execution)
            for operator in families
            for fault in faults
            for execution in EXECUTIONS
            if self.fault_in_execution[fault, execution]
        ]
        unmet = [triple for triple in possible if not self.triples[triple]]
        lines.append(
            f"Operator x fault x execution: {len(possible) - len(unmet)} of {len(possible)} combinations met"
            + (f"; not met, for example: {', '.join(' x '.join(triple) for triple in unmet[:5])}" if unmet else "")
        )
        return "\n".join(lines)


def _table(rows: Iterable[str], columns: Iterable[str], counts: Counter[tuple[str, str]]) -> str:
    rows, columns = list(rows), list(columns)
    width = max(map(len, rows), default=0)
    lines = [" " * width + "  " + "  ".join(columns)]
    for row in rows:
        cells = (f"{counts[row, column] or '·':>{len(column)}}" for column in columns)
        lines.append(f"{row:<{width}}  " + "  ".join(cells))
    return "\n".join(lines)
