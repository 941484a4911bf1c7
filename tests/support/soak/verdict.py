"""What grew during a soak: a line is fitted to each measure after the warm-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

__all__ = ["Sample", "Trend", "as_table", "tolerance_of", "trends"]

WINDOW_MIN = 10.0
"""Medians of so many minutes are compared, of a shorter soak those of a sixth."""
TOLERANCES = (
    ("live heap MB", 8.0, 0.1),
    ("memory MB", 12.0, 0.06),
    ("descriptors", 6.0, 0.05),
    ("threads", 4.0, 0.05),
    ("processes", 3.0, 0.1),
    ("files", 40.0, 0.1),
    ("MB", 4.0, 0.1),
)
"""By how much a measure may have grown from the first minutes after the warm-up to the last ones: by this much, and
this share of what it was."""


@dataclass(frozen=True)
class Sample:
    """All measures of one moment, in minutes since the start."""

    minute: float
    measures: Mapping[str, float]


@dataclass(frozen=True)
class Trend:
    """How one measure went."""

    name: str
    first: float
    """The median of the first minutes after the warm-up."""
    last: float
    highest: float
    per_hour: float
    """The slope of the fitted line."""
    tolerance: float
    samples: int
    grows: bool

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def tolerance_of(name: str, first: float) -> float:
    """By how much a measure may grow."""
    for ending, amount, share in TOLERANCES:
        if name.endswith(ending):
            return amount + share * first
    raise ValueError(f"no tolerance for {name!r}")


def trends(samples: Sequence[Sample], minutes: float) -> list[Trend]:
    """One trend for each measure that was taken often enough after the warm-up."""
    window = min(WINDOW_MIN, minutes / 6)
    after = [sample for sample in samples if sample.minute >= window]
    names = sorted({name for sample in after for name in sample.measures})
    found = (_trend(name, after, window, minutes) for name in names)
    return [trend for trend in found if trend is not None]


def _trend(name: str, samples: Sequence[Sample], window: float, minutes: float) -> Trend | None:
    points = [(sample.minute, sample.measures[name]) for sample in samples if name in sample.measures]
    first = [value for minute, value in points if minute < 2 * window]
    last = [value for minute, value in points if minute >= minutes - window]
    if not first or not last:
        return None
    slope = _slope(points)
    tolerance = tolerance_of(name, median(first))
    # both: a single high value tilts the line, and medians do not show what goes up and down
    fitted = slope * (minutes - 2 * window)
    return Trend(
        name,
        round(median(first), 2),
        round(median(last), 2),
        max(value for _, value in points),
        round(slope * 60, 2),
        round(tolerance, 2),
        len(points),
        min(median(last) - median(first), fitted) > tolerance,
    )


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Least squares, per minute."""
    x, y = fmean(point[0] for point in points), fmean(point[1] for point in points)
    spread = sum((point[0] - x) ** 2 for point in points)
    return sum((point[0] - x) * (point[1] - y) for point in points) / spread if spread else 0.0


def as_table(found: Sequence[Trend]) -> str:
    """The trends for people, as a table of Markdown."""
    lines = [
        "| measure | after warm-up | at the end | highest | per hour | allowed | |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {trend.name} | {trend.first:g} | {trend.last:g} | {trend.highest:g} | {trend.per_hour:+g} "
        f"| +{trend.tolerance:g} | {'**grows**' if trend.grows else 'flat'} |"
        for trend in found
    ]
    return "\n".join(lines) + "\n"
