"""From the start of a program to its first result, and PySpark's own start beside it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.runner import Run

__all__ = ["run"]

ROOT = Path(__file__).resolve().parents[2]
_LOOK_S = 0.05

_SPARK = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").getOrCreate()
print(spark.sparkContext.parallelize([1], 1).map(lambda x: x + 1).collect(), flush=True)
"""
_SMALL = """
from firesteel.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).map(lambda x: x + 1).print()
env.execute()
"""
_IN_PROCESS = """
from firesteel.datastream import executor
from firesteel.testing.in_process import InProcessExecutor

executor._executor = InProcessExecutor()
"""


def run(run: Run) -> dict[str, Any]:
    """Runs the program in a process of its own."""
    program = {"spark": _SPARK, "small": _SMALL, "readme": _readme()}[run.params["program"]]
    if run.params.get("in_process"):
        program = "print(2)" if run.params["program"] == "spark" else _IN_PROCESS + program
    path = Path(run.scratch) / "program.py"
    path.write_text(program, encoding="utf-8")
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    )
    meter = _CpuMeter(process.pid)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        first_s = time.monotonic() - began
        cpu_s = meter.total()
        process.stdout.read()
        if process.wait() != 0 or not line:
            raise RuntimeError(f"the program ended with {process.returncode}")
    finally:
        process.kill()
        process.communicate()
        meter.stop()
    return {"first_result_s": first_s, "end_s": time.monotonic() - began, "cpu_s": cpu_s}


def _readme() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.partition("```python\n")[2].partition("```")[0]


class _CpuMeter:
    """Processor seconds of a process and all below it, also of those that have ended."""

    def __init__(self, pid: int):
        self._root = psutil.Process(pid)
        self._seconds: dict[int, float] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def total(self) -> float:
        self._look()
        return sum(self._seconds.values())

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            self._look()

    def _look(self) -> None:
        try:
            processes = [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in processes:
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            self._seconds[process.pid] = times.user + times.system
