"""Command line: python -m benchmarks."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.cases import CASES, SYSTEMS, Case, Variant
from benchmarks.report import Figures, Row, bytes_per_key, combine, json_line, relate, table
from benchmarks.venvs import PeerUnavailable, cache_directory, python_of


def _names(known: Sequence[str]):  # type: ignore[no-untyped-def]
    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}")
        return names

    return parse


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError("must be more than zero")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures Firesteel and its peers: each case on each system in a process of its own, "
        "steady state after warm-up, median of the repeats.",
        epilog="Peers install themselves into FIRESTEEL_BENCH_CACHE (default ~/.cache/firesteel-bench). "
        "ratio is Firesteel's figure over the peer's (records/s; p99 in the latency case).",
    )
    parser.add_argument("--cases", type=_names(list(CASES)), default=list(CASES), metavar="A,B")
    parser.add_argument(
        "--peers",
        type=_names(list(SYSTEMS)),
        default=list(SYSTEMS),
        metavar="A,B",
        help="systems to run, firesteel among them (default: all)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per line instead of the table")
    parser.add_argument("--repeat", type=_count, default=3, help="runs of each, of which the median counts (3)")
    parser.add_argument("--seconds", type=_positive, default=10.0, help="steady state to measure per run (10)")
    parser.add_argument("--list", action="store_true", help="list cases and systems, and run nothing")
    return parser


def _listing() -> str:
    lines = ["cases:"]
    for case in CASES.values():
        variants = [variant.name for variant in case.variants if variant.name]
        lines.append(f"  {case.name:10} {case.about}" + (f" ({', '.join(variants)})" if variants else ""))
        lines.append(f"  {'':10} {', '.join(case.systems)}")
    lines.append("systems:")
    lines += [f"  {system.name:16} {system.about}" for system in SYSTEMS.values()]
    return "\n".join(lines)


def _interpreters(systems: Sequence[str], cache: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Interpreter of each system that can run, and the reason for each that cannot."""
    found: dict[str, Path] = {}
    skipped: dict[str, str] = {}
    for name in systems:
        environment = SYSTEMS[name].venv
        try:
            found[name] = Path(sys.executable) if environment is None else python_of(environment, cache)
        except PeerUnavailable as reason:
            skipped[name] = str(reason)
    return found, skipped


def _measure_case(
    case: Case,
    systems: Sequence[str],
    found: dict[str, Path],
    repeat: int,
    seconds: float,
    cache: Path,
) -> tuple[dict[tuple[str, str], list[Figures]], dict[tuple[str, str], str]]:
    """Repeats go round the systems, so that a disturbance of the machine does not hit one of them alone."""
    from benchmarks.harness import RunFailed, measure

    results: dict[tuple[str, str], list[Figures]] = {}
    failures: dict[tuple[str, str], str] = {}
    for turn in range(repeat):
        for variant in case.variants:
            for name in systems:
                at = (variant.name, name)
                if name not in found or at in failures:
                    continue
                title = " ".join(filter(None, (case.name, variant.name, name)))
                print(f"[{turn + 1}/{repeat}] {title}", file=sys.stderr, flush=True)
                try:
                    figures = measure(case, variant, SYSTEMS[name], found[name], seconds, cache / "logs")
                except RunFailed as failure:
                    failures[at] = str(failure)
                    print(f"  failed: {failure}", file=sys.stderr, flush=True)
                    continue
                results.setdefault(at, []).append(figures)
    return results, failures


def _with_memory_per_key(rows: list[Row], variants: Sequence[Variant]) -> list[Row]:
    """Adds the bytes per key to the rows of a case whose variants differ in their number of keys."""
    keys = {variant.name: int(variant.params["keys"]) for variant in variants}
    base = rows[0].figures.peak_rss_mb
    if base is None:
        return rows
    fewest = keys[rows[0].variant]
    return [
        replace(row, bytes_per_key=bytes_per_key(base, fewest, row.figures.peak_rss_mb, keys[row.variant]))
        if row.figures.peak_rss_mb is not None and keys[row.variant] > fewest
        else row
        for row in rows
    ]


def _with_other_keys(rows: list[Row], variants: Sequence[Variant]) -> list[Row]:
    """Adds the throughput of all keys but the hot one."""
    share = {variant.name: float(variant.params.get("hot_share", 0.0)) for variant in variants}
    return [
        replace(row, other_keys_records_per_s=row.figures.records_per_s * (1 - share[row.variant]))
        if row.figures.records_per_s is not None
        else row
        for row in rows
    ]


def _rows(
    case: Case,
    systems: Sequence[str],
    results: dict[tuple[str, str], list[Figures]],
    skipped: dict[str, str],
    failures: dict[tuple[str, str], str],
) -> list[Row]:
    rows = []
    for variant in case.variants:
        for name in systems:
            at = (variant.name, name)
            figures = combine(results[at]) if at in results else Figures()
            reasons = {"skipped": skipped.get(name), "failed": failures.get(at)}
            rows.append(Row(case.name, name, variant.name, figures, **reasons))
    rows = relate(rows, case.figure)
    if case.name == "keys":
        rows = _with_memory_per_key(rows, case.variants)
    if case.name == "skew":
        rows = _with_other_keys(rows, case.variants)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what was asked for; 1 if something that could be run failed."""
    args = _parser().parse_args(argv)
    if args.list:
        print(_listing())
        return 0
    if importlib.util.find_spec("psutil") is None:
        print("the benchmarks need psutil: pip install psutil", file=sys.stderr)
        return 2
    cache = cache_directory()
    wanted = {name for case in args.cases for name in CASES[case].systems if name in args.peers}
    if not wanted:
        print("none of these systems takes part in these cases; see --list", file=sys.stderr)
        return 2
    found, skipped = _interpreters([name for name in SYSTEMS if name in wanted], cache)
    failed = False
    rows: list[Row] = []
    for name in args.cases:
        case = CASES[name]
        systems = [system for system in case.systems if system in args.peers]
        if not systems:
            print(f"{name}: none of the chosen systems takes part in it", file=sys.stderr)
            continue
        results, failures = _measure_case(case, systems, found, args.repeat, args.seconds, cache)
        failed = failed or bool(failures)
        case_rows = _rows(case, systems, results, skipped, failures)
        rows += case_rows
        if args.json:
            for row in case_rows:
                print(json_line(row), flush=True)
    if not args.json:
        print(table(rows))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
