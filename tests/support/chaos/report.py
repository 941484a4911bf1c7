"""What a chaos run found: per fault, per run, and over several runs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

__all__ = ["FaultReport", "Report", "as_text", "summarize"]


@dataclass
class FaultReport:
    """What became of one fault; times in seconds, ``at`` since the start of the run."""

    number: int
    kind: str
    planned: str
    overlapped: bool
    """Whether the job had not recovered from the one before."""
    at: float = 0.0
    """When it struck."""
    done: str = ""
    events_before: int = 0
    """How many records had come in by then."""
    attempts_before: int = 0
    recovered_after: float | None = None
    """Until the first result of a record that came in after the fault was visible."""
    statuses: dict[str, int] = field(default_factory=dict)
    """How many jobs were in which status when it struck, where there are several."""
    attempts: int = 0
    """Attempts, of all drivers, that began between the fault and the recovery."""


@dataclass
class Report:
    """The outcome of a run."""

    seed: int
    backend: str
    mode: str
    cluster: bool
    settings: dict[str, str]
    execution: str = "pipelined"
    passed: bool = False
    error: str | None = None
    faults: list[FaultReport] = field(default_factory=list)
    seconds: float = 0.0
    events: int = 0
    results: int = 0
    files: int = 0
    drivers: int = 0
    attempts: int = 0
    checkpoints: dict[str, int] = field(default_factory=dict)
    left_over: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def summarize(seed: int, reports: list[Report]) -> dict[str, Any]:
    """Totals over rounds, and for each kind of fault how long recovery took."""
    kinds: dict[str, list[float]] = defaultdict(list)
    for report in reports:
        for fault in report.faults:
            if fault.recovered_after is not None:
                kinds[fault.kind].append(fault.recovered_after)
    return {
        "seed": seed,
        "passed": all(report.passed for report in reports),
        "rounds run": len(reports),
        "faults": sum(len(report.faults) for report in reports),
        "seconds": round(sum(report.seconds for report in reports), 1),
        "input records": sum(report.events for report in reports),
        "results checked": sum(report.results for report in reports),
        "files checked": sum(report.files for report in reports),
        "drivers": sum(report.drivers for report in reports),
        "attempts": sum(report.attempts for report in reports),
        "recovery in seconds": {
            kind: {"faults": len(times), "median": round(median(times), 1), "longest": round(max(times), 1)}
            for kind, times in sorted(kinds.items())
        },
    }


def as_text(summary: dict[str, Any]) -> str:
    """The summary for people."""
    recovery = summary["recovery in seconds"]
    lines = [f"{key}: {value}" for key, value in summary.items() if key != "recovery in seconds"]
    lines.append(f"{'fault':36}{'times':>6}{'median s':>10}{'longest s':>11}   until the first new output")
    lines += [
        f"{kind:36}{figures['faults']:>6}{figures['median']:>10}{figures['longest']:>11}"
        for kind, figures in recovery.items()
    ]
    return "\n".join(lines) + "\n"
