"""Runs Flink's own parser."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from firesteel.testing.services.processes import ServiceUnavailable

__all__ = ["Verdict", "build_oracle", "require_maven", "run_flink"]

JAVA = Path(__file__).parent / "java"


class Verdict(NamedTuple):
    """What Flink's parser says of a text."""

    accepted: bool
    text: str
    """The tree of the first item of a SELECT that is accepted, or the message."""


def require_maven() -> Path:
    """Returns the path of Maven, which fetches Flink's parser."""
    maven, compiler = shutil.which("mvn"), shutil.which("javac")
    if maven is None or compiler is None:
        raise ServiceUnavailable("Maven or the compiler of Java is not installed")
    return Path(maven)


def build_oracle(directory: Path) -> None:
    """Fetches Flink's parser from Maven Central and compiles the program that calls it."""
    libraries, classes = directory / "lib", directory / "classes"
    copy = ["mvn", "-q", "-f", str(JAVA / "pom.xml"), "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"]
    subprocess.run(copy, check=True)
    compiler = ["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), str(JAVA / "SqlParserOracle.java")]
    subprocess.run(compiler, check=True)


def run_flink(statements: list[str], directory: Path) -> list[Verdict]:
    """Returns the verdict on each text, by the program that ``build_oracle`` made."""
    lines = "".join(base64.b64encode(text.encode()).decode() + "\n" for text in statements)
    command = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp"]
    command += [f"{directory / 'classes'}:{directory / 'lib'}/*", "SqlParserOracle"]
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    verdicts = []
    for line in done.stdout.splitlines():
        verdict, _, text = line.partition(" ")
        verdicts.append(Verdict(verdict == "A", base64.b64decode(text).decode()))
    assert len(verdicts) == len(statements)
    return verdicts
