"""The same pattern and payments with flink-cep, in Java."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from benchmarks.runner import Run
from benchmarks.scenarios.cep import figures_of
from benchmarks.venvs import cache_directory

__all__ = ["run"]

JAVA = Path(__file__).parent / "java"
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.util", "java.lang")]


def run(run: Run) -> dict[str, Any]:
    """Needs Maven and Java 17."""
    records, few = run.params["records"], run.params["few"]
    libraries, classes = cache_directory() / "flink-cep", Path(run.scratch) / "classes"
    pom = ["mvn", "-q", "-B", "-f", str(JAVA / "pom.xml"), "dependency:copy-dependencies"]
    subprocess.run([*pom, f"-DoutputDirectory={libraries}"], check=True, stdout=subprocess.DEVNULL)
    source = str(JAVA / "CepJob.java")
    subprocess.run(["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), source], check=True)
    settings = [str(run.params["keys"]), str(run.params["matches"]).lower(), str(run.params["within_ms"])]
    command = ["java", "-Xmx2g", *OPENED, "-cp", f"{classes}:{libraries}/*", "CepJob", *settings]
    done = subprocess.run(
        [*command, str(few), str(few), str(records)],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    _, short, long = map(float, done.stdout.split())
    return figures_of(records, few, short, long)
