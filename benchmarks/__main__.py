"""Command line: python -m benchmarks."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES, SYSTEMS, Case, Variant
from benchmarks.report import Figures, Row, bytes_per_key, combine, json_line, relate, table
from benchmarks.scenarios import report as scenario_report
from benchmarks.scenarios.catalogue import SCENARIOS
from benchmarks.scenarios.scenario import Scenario, ScenarioVariant
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
    everything = [*CASES, *SCENARIOS]
    parser.add_argument("--cases", type=_names(everything), default=everything, metavar="A,B")
    parser.add_argument(
        "--peers",
        type=_names(list(SYSTEMS)),
        default=list(SYSTEMS),
        metavar="A,B",
        help="systems to run, firesteel among them (default: all)",
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="one JSON object per line instead of the table; with a FILE they go there, beside the table",
    )
    parser.add_argument("--repeat", type=_count, default=3, help="runs of each, of which the median counts (3)")
    parser.add_argument("--seconds", type=_positive, default=10.0, help="steady state to measure per run (10)")
    parser.add_argument("--small", action="store_true", help="tiny parameters, to see that scenarios work")
    parser.add_argument("--list", action="store_true", help="list cases and systems, and run nothing")
    return parser


def _listing() -> str:
    lines = ["cases:"]
    for case in CASES.values():
        variants = [variant.name for variant in case.variants if variant.name]
        lines.append(f"  {case.name:10} {case.about}" + (f" ({', '.join(variants)})" if variants else ""))
        lines.append(f"  {'':10} {', '.join(case.systems)}")
    lines.append("scenarios, which run to their end:")
    for scenario in SCENARIOS.values():
        lines.append(f"  {scenario.name:14} {scenario.about}")
        lines.append(f"  {'':14} {', '.join(variant.name for variant in scenario.variants)}")
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
    return rows


def _measure_scenario(
    scenario: Scenario,
    variants: Sequence[ScenarioVariant],
    found: dict[str, Path],
    args: argparse.Namespace,
    cache: Path,
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Figures of every turn by variant, and why a variant has none."""
    from benchmarks.harness import RunFailed
    from benchmarks.scenarios.harness import measure_scenario

    results: dict[str, list[dict[str, Any]]] = {}
    failures: dict[str, str] = {}
    turns = 1 if args.small else min(args.repeat, scenario.most_repeats)
    for turn in range(turns):
        for variant in variants:
            if variant.system not in found or variant.name in failures:
                continue
            print(f"[{turn + 1}/{turns}] {scenario.name} {variant.name}", file=sys.stderr, flush=True)
            params = {"seconds": args.seconds, **variant.params, **(variant.small if args.small else {})}
            try:
                figures = measure_scenario(scenario, variant, found[variant.system], params, cache / "logs")
            except RunFailed as failure:
                failures[variant.name] = str(failure)
                print(f"  failed: {failure}", file=sys.stderr, flush=True)
                continue
            results.setdefault(variant.name, []).append(figures)
    return results, failures


class _Output:
    """Where results go: a table at the end, and JSON lines as they come."""

    def __init__(self, target: str | None) -> None:
        self._file = None if target is None or target == "-" else Path(target).open("w")  # noqa: SIM115 - see finish
        self._is_table = target != "-"
        self._tables: list[str] = []

    def add(self, lines: Sequence[str], table: str | None = None) -> None:
        """The rows of a case, with a table of its own if it has one."""
        for line in lines:
            if self._file is not None or not self._is_table:
                print(line, file=self._file, flush=True)
        if table is not None:
            self._tables.append(table)

    def finish(self, common: str | None) -> None:
        """Prints the tables, the one that the cases have in common first."""
        if self._file is not None:
            self._file.close()
        if self._is_table:
            print("\n\n".join(([] if common is None else [common]) + self._tables))


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
    known: dict[str, Case | Scenario] = {**CASES, **SCENARIOS}
    wanted = {name for case in args.cases for name in known[case].systems if name in args.peers}
    if not wanted:
        print("none of these systems takes part in these cases; see --list", file=sys.stderr)
        return 2
    found, skipped = _interpreters([name for name in SYSTEMS if name in wanted], cache)
    failed = False
    output = _Output(args.json)
    plain: list[Row] = []
    for name in args.cases:
        case = known[name]
        systems = [system for system in case.systems if system in args.peers]
        if not systems:
            print(f"{name}: none of the chosen systems takes part in it", file=sys.stderr)
        elif isinstance(case, Scenario):
            variants = [variant for variant in case.variants if variant.system in systems]
            outcome, problems = _measure_scenario(case, variants, found, args, cache)
            failed = failed or bool(problems)
            rows = scenario_report.rows_of(case, variants, outcome, skipped, problems)
            output.add([scenario_report.json_line(row) for row in rows], scenario_report.table(case, rows))
        else:
            results, failures = _measure_case(case, systems, found, args.repeat, args.seconds, cache)
            failed = failed or bool(failures)
            case_rows = _rows(case, systems, results, skipped, failures)
            plain += case_rows
            output.add([json_line(row) for row in case_rows])
    output.finish(table(plain) if plain else None)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
