"""From samples to figures, and from figures to a table or JSON lines; nothing here does I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from benchmarks.board import upper_ms

__all__ = [
    "Figures",
    "Row",
    "Sample",
    "align",
    "combine",
    "json_line",
    "percentile_ms",
    "relate",
    "steady",
    "steady_histogram",
    "steady_rate",
    "table",
]


@dataclass(frozen=True)
class Sample:
    """Progress at one moment, counted from the start of the job."""

    t: float
    records: int
    histogram: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """What one run, or the median of several, showed."""

    records_per_s: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    peak_rss_mb: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of the report: a case, a variant of it, and a system."""

    case: str
    system: str
    variant: str = ""
    figures: Figures = Figures()
    ratio: float | None = None
    bytes_per_key: float | None = None
    skipped: str | None = None
    failed: str | None = None


def steady(samples: Sequence[Sample], warmup_s: float, warmup_records: int = 0) -> list[Sample]:
    """The samples after the warm-up, which begins with the first record and ends when both limits are passed."""
    moving = [sample for sample in samples if sample.records > 0]
    if not moving:
        return []
    until = moving[0].t + warmup_s
    return [sample for sample in moving if sample.t >= until and sample.records >= warmup_records]


def steady_rate(samples: Sequence[Sample]) -> float | None:
    """Records a second between the first and the last of these samples, None if they span no time."""
    if len(samples) < 2 or samples[-1].t <= samples[0].t:
        return None
    return (samples[-1].records - samples[0].records) / (samples[-1].t - samples[0].t)


def steady_histogram(samples: Sequence[Sample]) -> dict[int, int]:
    """What the latency histogram gained between the first and the last of these samples."""
    if len(samples) < 2:
        return {}
    before = samples[0].histogram
    gained = {bucket: count - before.get(bucket, 0) for bucket, count in samples[-1].histogram.items()}
    return {bucket: count for bucket, count in gained.items() if count > 0}


def percentile_ms(histogram: Mapping[int, int], share: float) -> float | None:
    """Latency that `share` of the records did not exceed."""
    total = sum(histogram.values())
    seen = 0
    for bucket in sorted(histogram):
        seen += histogram[bucket]
        if seen >= share * total:
            return upper_ms(bucket)
    return None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def combine(repeats: Sequence[Figures]) -> Figures:
    """The median of each figure over the repeats."""
    return Figures(
        records_per_s=_median(each.records_per_s for each in repeats),
        p50_ms=_median(each.p50_ms for each in repeats),
        p99_ms=_median(each.p99_ms for each in repeats),
        peak_rss_mb=_median(each.peak_rss_mb for each in repeats),
    )


def relate(rows: Sequence[Row], figure: str, home: str = "firesteel") -> list[Row]:
    """The rows of one case with `ratio`: Firesteel's figure over the peer's, variant by variant."""
    own = {row.variant: getattr(row.figures, figure) for row in rows if row.system == home}
    related = []
    for row in rows:
        ours, theirs = own.get(row.variant), getattr(row.figures, figure)
        known = row.system != home and ours is not None and theirs
        related.append(replace(row, ratio=ours / theirs) if known else row)
    return related


def bytes_per_key(small_mb: float, small_keys: int, large_mb: float, large_keys: int) -> float:
    """Resident memory one more key costs, from two runs that differ in their number of keys."""
    return (large_mb - small_mb) * 1024 * 1024 / (large_keys - small_keys)


def json_line(row: Row) -> str:
    """The row as one JSON object with the fields that apply."""
    fields: dict[str, Any] = {"case": row.case, "system": row.system}
    if row.variant:
        fields["variant"] = row.variant
    figures = row.figures
    values = {
        "records_per_s": figures.records_per_s,
        "p50_ms": figures.p50_ms,
        "p99_ms": figures.p99_ms,
        "peak_rss_mb": figures.peak_rss_mb,
        "ratio": row.ratio,
        "bytes_per_key": row.bytes_per_key,
        "skipped": row.skipped,
        "failed": row.failed,
    }
    fields.update({name: value for name, value in values.items() if value is not None})
    return json.dumps({name: round(v, 4) if isinstance(v, float) else v for name, v in fields.items()})


def _number(value: float | None, pattern: str) -> str:
    return "" if value is None else format(value, pattern)


def _note(row: Row) -> str:
    notes = []
    if row.skipped is not None:
        notes.append(f"skipped: {row.skipped}")
    if row.failed is not None:
        notes.append(f"failed: {row.failed}")
    if row.bytes_per_key is not None:
        notes.append(f"{row.bytes_per_key:,.0f} bytes per key")
    return "; ".join(notes)


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned plain text: names to the left, numbers to the right."""
    head = ("case", "system", "records/s", "p50 ms", "p99 ms", "peak RSS MB", "ratio", "")
    lines = [head] + [
        (
            f"{row.case} {row.variant}".strip(),
            row.system,
            _number(row.figures.records_per_s, ",.0f"),
            _number(row.figures.p50_ms, ",.2f"),
            _number(row.figures.p99_ms, ",.2f"),
            _number(row.figures.peak_rss_mb, ",.0f"),
            _number(row.ratio, ",.3g" if (row.ratio or 0) < 1000 else ",.0f"),
            _note(row),
        )
        for row in rows
    ]
    return align(lines)


def align(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells, the first being the head: two names and the note at the end to the left, numbers to the right."""
    last = len(lines[0]) - 1
    widths = [max(len(line[column]) for line in lines) for column in range(last + 1)]

    def join(line: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if column in (0, 1, last) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    rule = "  ".join("-" * width for width in widths[:-1])
    return "\n".join([join(lines[0]), rule, *(join(line) for line in lines[1:])])
