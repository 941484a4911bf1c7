"""Runs random cases with flink-cep and with Firesteel, and records what flink-cep gives.

``python -m tests.support.cep_oracle.record --cases 4000`` writes the file that the unit tests read. It needs Maven and
Java 17. ``--seed 100000 --check`` tries other cases and writes nothing; cases that disagree are printed, to be added to
``DISAGREED``.
"""

from __future__ import annotations

import argparse
import json
import lzma
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.cep_oracle.cases import draw_case
from tests.support.cep_oracle.operator_run import run_case

__all__ = ["RECORDED", "read_recorded"]

JAVA = Path(__file__).parent / "java"
RECORDED = Path(__file__).parent / "recorded_cases.jsonl.xz"
MAX_EMITTED = 60
"""Cases that emit more are left out: the file is to be small."""

DISAGREED: tuple[int, ...] = (1426, 3496)
"""Seeds of cases for which Firesteel once gave something else than Flink; they are recorded whatever the range."""


@cache
def read_recorded() -> Sequence[dict[str, Any]]:
    """Returns the recorded cases, each with what flink-cep gave as ``expected``."""
    with lzma.open(RECORDED, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def run_flink(cases: list[dict[str, Any]], directory: Path) -> list[dict[str, Any]]:
    """Returns what flink-cep gives for each case."""
    libraries, classes = directory / "lib", directory / "classes"
    copy = ["mvn", "-q", "-f", str(JAVA / "pom.xml"), "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"]
    subprocess.run(copy, check=True)
    compiler = ["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), str(JAVA / "CepOracle.java")]
    subprocess.run(compiler, check=True)
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    command = ["java", "-Xmx1g", "-cp", f"{classes}:{libraries}/*", "CepOracle"]
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_same(ours: dict[str, Any], flinks: dict[str, Any]) -> bool:
    """Whether two results are equal, but for the text of an error."""
    return ours["emitted"] == flinks["emitted"] and ("error" in ours) == ("error" in flinks)


def _is_comparable(case: dict[str, Any]) -> bool:
    ours = run_case(case)
    error = ours.get("error", "")
    # Flink would not end, or would take long
    return len(ours["emitted"]) <= MAX_EMITTED and "for ever" not in error and "partial matches" not in error


def main() -> int:
    """Records cases, or only checks them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    seeds = [*DISAGREED, *range(options.seed, options.seed + options.cases)]
    drawn = {seed: case for seed in seeds if _is_comparable(case := draw_case(seed))}
    with tempfile.TemporaryDirectory() as directory:
        results = run_flink(list(drawn.values()), Path(directory))
    rows, disagreed = [], []
    for (seed, case), expected in zip(drawn.items(), results, strict=True):
        if "NullPointerException" in expected.get("error", ""):
            continue  # a group that may be absent before a stage that must not occur: Flink itself fails
        rows.append({"seed": seed, **case, "expected": expected})
        if not is_same(run_case(case), expected):
            disagreed.append(seed)
            print(json.dumps(rows[-1]))
    print(f"{len(rows)} cases, {len(disagreed)} disagree: {disagreed}")
    if not options.check:
        with lzma.open(RECORDED, "wt", encoding="utf-8", preset=9) as file:
            file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    return 1 if disagreed else 0


if __name__ == "__main__":
    sys.exit(main())
