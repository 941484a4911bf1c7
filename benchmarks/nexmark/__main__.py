"""NEXMark in SQL: Firesteel on embedded Spark beside Flink, the same events on two cores.

``python -m benchmarks.nexmark --queries q0,q5 --events 1000000,4000000 --json figures.json``

Each query runs over two numbers of events. *wall* is the larger number over the seconds from submission to the end;
*steady* is what one more event costs: the difference of both, without start-up and most of the compilation in the JVM.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.nexmark.flink_source import build_jar, write_texts
from benchmarks.nexmark.queries import QUERIES
from benchmarks.programs import json_lines
from benchmarks.venvs import cache_directory, python_of

__all__ = ["main"]

HERE = Path(__file__).parent
NOT_MEASURED = {"q12": "depends on the clock", "q13": "needs a table to look up"}


def main(arguments: list[str] | None = None) -> int:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark", description=__doc__.splitlines()[0])
    parser.add_argument("--queries", default=",".join(["source", *(q for q in QUERIES if q not in NOT_MEASURED)]))
    parser.add_argument("--events", default="1000000,4000000", help="two numbers of events")
    parser.add_argument("--flink-events", help="other numbers for Flink, which is slower; the same if left out")
    parser.add_argument("--pyflink", help="a Python with PyFlink 2.3; one is installed if left out")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args(arguments)
    names = options.queries.split(",")
    python = options.pyflink or str(python_of("pyflink", cache_directory()))
    with tempfile.TemporaryDirectory() as scratch:
        ours = json_lines(
            [sys.executable, "-m", "benchmarks.nexmark.firesteel_program", ",".join(names), options.events]
        )
        libraries = subprocess.run(
            [python, "-c", "import pyflink; print(pyflink.__path__[0])"], check=True, capture_output=True, text=True
        ).stdout.strip()
        jar = build_jar(Path(scratch), Path(libraries) / "lib")
        texts = write_texts(Path(scratch))
        program = [python, str(HERE / "flink_program.py"), str(jar), str(texts)]
        flink = json_lines([*program, ",".join(names), options.flink_events or options.events], Path(python).parent)
    figures = [{"query": name, "firesteel": _figures(ours, name), "flink": _figures(flink, name)} for name in names]
    _print(figures)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


def _figures(runs: list[dict[str, Any]], name: str) -> dict[str, float]:
    """Events per second."""
    few, many = sorted(
        ((run["events"], run["seconds"]) for run in runs if run["query"] == name), key=lambda run: run[0]
    )
    return {"wall": many[0] / many[1], "steady": (many[0] - few[0]) / max(many[1] - few[1], 1e-3)}


def _print(figures: list[dict[str, Any]]) -> None:
    lines = [
        "| query | Firesteel, wall | steady | Flink, wall | steady | ratio, wall | steady |",
        "|---|---|---|---|---|---|---|",
    ]
    product = {"wall": 1.0, "steady": 1.0}
    counted = 0
    for row in figures:
        mine, other = row["firesteel"], row["flink"]
        ratios = {kind: mine[kind] / other[kind] for kind in ("wall", "steady")}
        if row["query"] != "source":
            counted += 1
            for kind, ratio in ratios.items():
                product[kind] *= ratio
        thousands = [f"{side[kind] / 1000:,.0f} k" for side in (mine, other) for kind in ("wall", "steady")]
        lines.append(f"| {row['query']} | {' | '.join(thousands)} | {ratios['wall']:.1f} | {ratios['steady']:.1f} |")
    if counted:
        means = (f"**{product[kind] ** (1 / counted):.1f}**" for kind in ("wall", "steady"))
        lines.append(f"| geometric mean | | | | | {' | '.join(means)} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
