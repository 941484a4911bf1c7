"""Bounded SQL over Parquet: Firesteel on embedded Spark, Flink in batch mode, and plain Spark SQL, on two cores.

``python -m benchmarks.bounded_sql --queries q0,q5 --events 500000,2000000 --json figures.json``

Each system runs each query over the same files, of two numbers of events, into a sink that drops everything. *wall* is
the larger number over the seconds from submission to the end; *steady* is what one more event costs: the difference of
both, without start-up. Flink's operators run in the JVM; PyFlink only submits the query. Plain Spark SQL runs the same
text where it can read it, and is the floor: what Firesteel's route through Spark adds is the ratio to it.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bounded_sql.data import event_files
from benchmarks.bounded_sql.tables import LEFT_OUT
from benchmarks.nexmark.queries import QUERIES
from benchmarks.programs import json_lines
from benchmarks.venvs import cache_directory, python_of

__all__ = ["figures_of", "main", "table_of"]

HERE = Path(__file__).parent
WARM = 20_000
SYSTEMS = ("firesteel", "flink", "spark")
PARQUET_JARS = (
    "org.apache.flink:flink-sql-parquet:2.3.0",
    "org.apache.hadoop:hadoop-client-api:3.4.1",
    "org.apache.hadoop:hadoop-client-runtime:3.4.1",
)


def main(arguments: list[str] | None = None) -> int:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounded_sql", description=__doc__.splitlines()[0])
    parser.add_argument("--queries", default=",".join(name for name in QUERIES if name not in LEFT_OUT))
    parser.add_argument("--events", default="500000,2000000", help="two numbers of events")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="which of them run")
    parser.add_argument("--repeats", type=int, default=1, help="how often; the shortest time counts")
    parser.add_argument("--pyflink", help="a Python with PyFlink 2.3; one is installed if left out")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args(arguments)
    names = options.queries.split(",")
    counts = {str(event_files(count)): count for count in sorted(map(int, options.events.split(",")))}
    run = [options.queries, str(options.repeats), str(event_files(WARM)), *counts]
    runs: dict[str, list[dict[str, Any]]] = {}
    for system in options.systems.split(","):
        command, path = _command(system, options.pyflink)
        runs[system] = json_lines([*command, *run], path)
    figures = [
        {"query": name, **{system: figures_of(found, name, counts) for system, found in runs.items()}} for name in names
    ]
    sys.stdout.write(table_of(figures, list(runs)))
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


def _command(system: str, pyflink: str | None) -> tuple[list[str], Path | None]:
    if system != "flink":
        return [sys.executable, "-m", f"benchmarks.bounded_sql.{system}_program"], None
    python = Path(pyflink or python_of("pyflink", cache_directory()))
    return [str(python), str(HERE / "flink_program.py"), _parquet_jars()], python.parent


def _parquet_jars() -> str:
    """The addresses of the jars with which Flink reads Parquet. Maven fetches them once."""
    directory = cache_directory() / "flink-parquet"
    for artifact in PARQUET_JARS:
        _, name, version = artifact.split(":")
        if not (directory / f"{name}-{version}.jar").is_file():
            copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={directory}"]
            subprocess.run(copy, check=True, stdout=subprocess.DEVNULL)
    return ";".join(f"file://{jar}" for jar in sorted(directory.glob("*.jar")))


def figures_of(runs: Sequence[dict[str, Any]], name: str, counts: dict[str, int]) -> dict[str, float] | None:
    """Seconds of the larger number of events, and events per second; None if the system did not run the query."""
    seconds = {
        count: min((run["seconds"] for run in runs if run["query"] == name and run["data"] == data), default=None)
        for data, count in counts.items()
    }
    few, many = min(seconds), max(seconds)
    short, long = seconds[few], seconds[many]
    if short is None or long is None:
        return None
    return {"seconds": long, "wall": many / long, "steady": (many - few) / max(long - short, 1e-3)}


def table_of(figures: Sequence[dict[str, Any]], systems: Sequence[str]) -> str:
    """Thousands of events per second, and the ratios of Firesteel to the others with their geometric means."""
    peers = [system for system in systems if system != "firesteel"] if "firesteel" in systems else []
    head = [f"{system}, {kind}" for system in systems for kind in ("wall", "steady")]
    head += [f"ratio to {peer}, {kind}" for peer in peers for kind in ("wall", "steady")]
    lines = [f"| query | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    ratios: dict[tuple[str, str], list[float]] = {(peer, kind): [] for peer in peers for kind in ("wall", "steady")}
    for row in figures:
        cells = [
            "" if row[system] is None else f"{row[system][kind] / 1000:,.0f} k"
            for system in systems
            for kind in ("wall", "steady")
        ]
        for (peer, kind), found in ratios.items():
            ours, theirs = row["firesteel"], row[peer]
            if ours is None or theirs is None:
                cells.append("")
                continue
            ratio = ours[kind] / theirs[kind]
            found.append(ratio)
            cells.append(f"{ratio:.2f}")
        lines.append(f"| {row['query']} | {' | '.join(cells)} |")
    if peers:
        means = [f"**{_mean(found):.2f}**" if found else "" for found in ratios.values()]
        lines.append(f"| geometric mean | {' | '.join([''] * 2 * len(systems) + means)} |")
    return "\n".join(lines) + "\n"


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


if __name__ == "__main__":
    raise SystemExit(main())
