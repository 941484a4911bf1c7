"""Runs all tests in several processes: clusters, Spark, servers, jobs, integration tests, and unit tests; and mypy.

Much of what they do is to wait, so a few run side by side. Arguments go to all tests. The exit code is that of the
first part that failed, if any did.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, NamedTuple

PACKAGE = Path(__file__).parents[1] / "firesteel"
TYPES = "types"
PARTS = {
    "cluster": "cluster",
    "spark": "spark and not cluster",
    TYPES: "",
    "services": "services and not spark and not cluster",
    "jobs": "not unit and not integration and not services and not spark and not cluster",
    "integration": "integration and not services and not spark and not cluster",
    "unit": "unit and not services and not spark and not cluster",
}
"""By name, with the marks that choose the tests; those first that wait for other processes most of the time, those last
that several processes share."""
AT_ONCE = 5
"""Parts with tests; types are checked beside them."""
WORKERS = {"integration": ("-n", "2"), "jobs": ("-n", "2", "--dist", "loadfile"), "unit": ("-n", "2")}
"""Processes among which a part distributes its tests; those of a file share what is expensive to make."""
SLOWEST = ("--durations=10", "--durations-min=5")
"""Which tests each part shows at the end as the slowest."""
FOLDERS = {"unit": ("tests/unit",), "integration": ("tests/integration",), "services": ("tests/services",)}
OTHER_FOLDERS = ("tests", *(f"--ignore={folder}" for folders in FOLDERS.values() for folder in folders))
"""What a part reads to find its tests: all test modules would take 20 seconds of processor time."""
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of the many JVMs that tests start for a short time: a third of their processor time would be compilation."""
SHARED_CLASSES = Path(sys.prefix) / "spark-classes.jsa"
"""Spark's classes as a JVM maps them into memory: to load and verify them again takes each JVM three seconds."""
CLASS_USER = """
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
session.sparkContext.parallelize(range(2)).map(str).collect()
session.range(2).groupBy("id").count().collect()
jvm = session.sparkContext._gateway.proc
session.stop()
jvm.stdin.close()
jvm.wait(60)
"""
"""A program that loads most of the classes that the tests' JVMs use. They are stored when its JVM ends."""
NICE = {"integration": 3, "unit": 3, "jobs": 3, TYPES: 3}
"""Parts that compute rather than wait: what waits for other processes goes first."""
SEED = os.environ.get("SEED", "7")
"""Of the random order, which is the same each time: a test that fails has to do with what was changed."""
NO_TESTS = 5
"""What pytest says where an argument has left nothing to run."""


class Outcome(NamedTuple):
    """How a part ended."""

    code: int
    lines: Sequence[str]
    """What it printed."""

    @property
    def failures(self) -> Sequence[str]:
        """What pytest said of each test that failed, or its last words if it has not come so far."""
        return [line for line in self.lines if line.startswith(("FAILED ", "ERROR "))] or self.lines[-15:]


def main(arguments: Sequence[str]) -> int:
    """Runs all parts, shows what they print as it comes, and says again at the end what failed."""
    began = time.monotonic()
    environment = {**os.environ, "JDK_JAVA_OPTIONS": os.environ.get("JDK_JAVA_OPTIONS") or _jvm_options()}
    # hundreds of processes would compile all modules again
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(PACKAGE, quiet=2)
    with ThreadPoolExecutor(AT_ONCE) as pool, ThreadPoolExecutor(1) as beside:
        running = {
            name: (beside if name == TYPES else pool).submit(_run, name, marks, arguments, environment)
            for name, marks in PARTS.items()
        }
        try:
            outcomes = {name: future.result() for name, future in running.items()}
        except KeyboardInterrupt:
            # pytest has got the signal too, and cleans up
            pool.shutdown(cancel_futures=True)
            return 130
    failed = {name: outcome for name, outcome in outcomes.items() if outcome.code not in (0, NO_TESTS)}
    for name, outcome in failed.items():
        sys.stdout.writelines(f"{name:>11} | {line[:500].rstrip()}\n" for line in outcome.failures)
    said = f"failed: {', '.join(failed)}" if failed else "passed"
    sys.stdout.write(f"{said}, in {time.monotonic() - began:.0f} s\n")
    if failed:
        return next(iter(failed.values())).code
    return NO_TESTS if all(outcomes[name].code == NO_TESTS for name in PARTS if name != TYPES) else 0


def _jvm_options() -> str:
    """Returns the options of the tests' JVMs. Those of Spark share classes that are stored the first time."""
    if not SHARED_CLASSES.exists():
        stored = SHARED_CLASSES.with_suffix(f".{os.getpid()}")
        options = f"{JVM_OPTIONS} -XX:ArchiveClassesAtExit={stored} -Xlog:disable"
        subprocess.run(  # noqa: S603 - a command of ours
            [sys.executable, "-c", CLASS_USER],
            env={**os.environ, "JDK_JAVA_OPTIONS": options},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=120,
        )
        try:
            stored.rename(SHARED_CLASSES)
        except OSError:
            return JVM_OPTIONS
    # a JVM with other classes than Spark's would print a warning
    return f"{JVM_OPTIONS} -XX:SharedArchiveFile={SHARED_CLASSES} -Xlog:disable"


def _command(name: str, marks: str, arguments: Sequence[str]) -> list[str]:
    if name == TYPES:
        return ["mypy"]
    names_tests = any(Path(argument.partition("::")[0]).exists() for argument in arguments)
    folders = () if names_tests else FOLDERS.get(name, OTHER_FOLDERS)
    workers = WORKERS.get(name, ())
    options = ("-q", "-p", "no:cacheprovider", f"--randomly-seed={SEED}", "-m", marks, *workers, *SLOWEST)
    return ["pytest", *options, *folders, *arguments]


def _run(name: str, marks: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Outcome:
    python = ["nice", "-n", str(NICE.get(name, 0)), sys.executable, "-m"]
    process = subprocess.Popen(  # noqa: S603 - a command of ours
        [*python, *_command(name, marks, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    lines: list[str] = []
    reader = threading.Thread(target=_show, args=(name, process.stdout, lines), daemon=True)
    reader.start()
    code = process.wait()
    # not for good: a process that a test has left behind may hold the other end
    reader.join(10)
    return Outcome(code, lines)


def _show(name: str, output: IO[str], lines: list[str]) -> None:
    for line in output:
        lines.append(line)
        sys.stdout.write(f"{name:>11} | {line}")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
