"""From the runs of a scenario to rows, and from rows to a table or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.report import align
from benchmarks.scenarios.scenario import Scenario, ScenarioVariant

__all__ = ["ScenarioRow", "json_line", "rows_of", "table"]

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class ScenarioRow:
    """One line of the report: a variant of a scenario and its figures."""

    scenario: str
    variant: str
    system: str
    figures: Figures = field(default_factory=dict)
    ratio: float | None = None
    skipped: str | None = None
    failed: str | None = None


def _combined(scenario: Scenario, repeats: Sequence[Figures]) -> dict[str, Any]:
    """Of each figure the median over the runs, or the worst."""
    figures = {}
    for column in scenario.columns:
        known = [figures[column.name] for figures in repeats if figures.get(column.name) is not None]
        if known:
            figures[column.name] = max(known) if column.worst else median(known)
    return figures


def _ratio(scenario: Scenario, variant: ScenarioVariant, results: Mapping[str, Sequence[Figures]]) -> float | None:
    """The median over the turns: the two runs of a turn saw the same machine."""
    if variant.ratio is None:
        return None
    over, under = (results.get(name, ()) for name in variant.ratio)
    pairs = [
        (above[scenario.figure], below[scenario.figure])
        for above, below in zip(over, under, strict=False)
        if above.get(scenario.figure) is not None and below.get(scenario.figure)
    ]
    return median(above / below for above, below in pairs) if pairs else None


def rows_of(
    scenario: Scenario,
    variants: Sequence[ScenarioVariant],
    results: Mapping[str, Sequence[Figures]],
    skipped: Mapping[str, str],
    failures: Mapping[str, str],
) -> list[ScenarioRow]:
    """A row for each variant, also for those that gave nothing. Results and failures come by variant."""
    return [
        ScenarioRow(
            scenario.name,
            variant.name,
            variant.system,
            _combined(scenario, results.get(variant.name, ())),
            _ratio(scenario, variant, results),
            skipped.get(variant.system),
            failures.get(variant.name),
        )
        for variant in variants
    ]


def json_line(row: ScenarioRow) -> str:
    """The row as one JSON object with the fields that apply."""
    fields: dict[str, Any] = {"case": row.scenario, "system": row.system, "variant": row.variant, **row.figures}
    rest = {"ratio": row.ratio, "skipped": row.skipped, "failed_because": row.failed}
    fields |= {name: value for name, value in rest.items() if value is not None}
    return json.dumps({name: round(v, 4) if isinstance(v, float) else v for name, v in fields.items()})


def table(scenario: Scenario, rows: Sequence[ScenarioRow]) -> str:
    """The rows of one scenario with its own columns."""
    ratio = [scenario.ratio_title] if scenario.ratio_title else []
    lines = [[scenario.name, "system", *(column.title for column in scenario.columns), *ratio, ""]]
    for row in rows:
        cells = [row.variant, row.system]
        for column in scenario.columns:
            value = row.figures.get(column.name)
            cells.append("" if value is None else format(value, column.pattern))
        if ratio:
            cells.append("" if row.ratio is None else format(row.ratio, ",.3g" if row.ratio < 1000 else ",.0f"))
        notes = {"skipped": row.skipped, "failed": row.failed}
        cells.append("; ".join(f"{name}: {why}" for name, why in notes.items() if why is not None))
        lines.append(cells)
    return align(lines)
