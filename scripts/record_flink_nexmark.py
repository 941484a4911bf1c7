"""Runs NEXMark's queries in Flink, and stores how many rows they give and a digest of them.

``python scripts/record_flink_nexmark.py PYTHON``: a Python in which PyFlink 2.3 is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.nexmark.flink_source import build_jar, write_texts
from benchmarks.nexmark.queries import QUERIES

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "integration" / "table" / "recorded" / "nexmark.json"
EVENTS, RATE = 20_000, 100


def main(python: str) -> None:
    """Records all queries that depend on their input alone."""
    where = "import pyflink; print(pyflink.__path__[0])"
    found = subprocess.run([python, "-c", where], check=True, capture_output=True, text=True)  # noqa: S603
    package = found.stdout.strip()
    names = [name for name in QUERIES if name not in ("q12", "q13")]
    with tempfile.TemporaryDirectory() as scratch:
        jar = build_jar(Path(scratch), Path(package) / "lib")
        program = [python, str(ROOT / "benchmarks" / "nexmark" / "flink_program.py")]
        arguments = [str(jar), str(write_texts(Path(scratch))), ",".join(names), "rows", str(EVENTS), str(RATE)]
        environ = {**os.environ, "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"}
        found = subprocess.run(  # noqa: S603
            [*program, *arguments], check=True, stdout=subprocess.PIPE, text=True, env=environ
        )
    queries = {}
    for line in found.stdout.splitlines():
        if line.startswith("{"):
            result = json.loads(line)
            queries[result["query"]] = {
                "rows": sum(times for _, times in result["rows"]),
                "digest": hashlib.sha256(json.dumps(result["rows"]).encode()).hexdigest(),
                "first": result["rows"][0][0] if result["rows"] else None,
            }
    RECORDED.write_text(json.dumps({"events": EVENTS, "rate": RATE, "queries": queries}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
