"""Runs one case on one system in a process of its own and measures it from outside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import psutil

from benchmarks.cases import Case, System, Variant
from benchmarks.processes import is_python_worker
from benchmarks.report import (
    Figures,
    Sample,
    percentile_ms,
    steady,
    steady_histogram,
    steady_rate,
)

__all__ = ["Process", "RunFailed", "measure"]

ROOT = Path(__file__).resolve().parents[1]
START_S = 120.0
"""How long a system may take to its first record."""
STALL_S = 120.0
"""How long it may go without a sample once it moves."""
STOP_S = 15.0


class RunFailed(Exception):
    """A run gave no figures; the message says why."""


class ProcessTree:
    """A process and everything below it, remembered even when a parent goes first."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._known: dict[int, psutil.Process] = {pid: self._root}
        self.peak_rss = 0
        """Of all members together."""
        self.peak_worker_rss = 0
        """Of the largest Python worker of Spark."""
        self._workers: dict[int, bool] = {}

    def sample(self) -> None:
        """Notes new members and the sum of resident memory."""
        try:
            for child in self._root.children(recursive=True):
                self._known.setdefault(child.pid, child)
        except psutil.NoSuchProcess:
            pass
        total = 0
        for process in self._known.values():
            try:
                rss = process.memory_info().rss
                total += rss
                if rss > self.peak_worker_rss and self._is_worker(process):
                    self.peak_worker_rss = rss
            except psutil.NoSuchProcess:
                continue
        self.peak_rss = max(self.peak_rss, total)

    def _is_worker(self, process: psutil.Process) -> bool:
        if process.pid not in self._workers:
            self._workers[process.pid] = is_python_worker(process)
        return self._workers[process.pid]

    def kill(self) -> None:
        """Ends every member that still runs."""
        self.sample()
        for process in self._known.values():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(list(self._known.values()), timeout=STOP_S)


def _read(stream: Any, lines: SimpleQueue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _sample(line: str) -> Sample:
    fields = json.loads(line)
    if "error" in fields:
        raise RunFailed(fields["error"].splitlines()[0][:200])
    histogram = {int(bucket): count for bucket, count in fields.get("histogram", {}).items()}
    return Sample(fields["t"], fields["records"], histogram)


class Process:
    """The runner in a process of its own, with a scratch directory and a log; nothing is left behind."""

    def __init__(self, label: str, python: Path, system: str, case: str, params: Mapping[str, Any], logs: Path) -> None:
        self._label = label
        self._scratch = tempfile.mkdtemp(prefix="firesteel-bench-")
        logs.mkdir(parents=True, exist_ok=True)
        self._log = logs / f"{label}.log"
        command = [str(python), "-m", "benchmarks.runner", "--system", system, "--case", case]
        command += ["--scratch", self._scratch, "--params", json.dumps(dict(params))]
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=self._scratch,
                env={**os.environ, "PYTHONPATH": str(ROOT), "FIRESTEEL_BENCH_PYTHON": sys.executable},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self.tree = ProcessTree(self._process.pid)
        self.lines: SimpleQueue[str | None] = SimpleQueue()
        """What it reports; None at the end."""
        threading.Thread(target=_read, args=(self._process.stdout, self.lines), daemon=True).start()

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait()

    def __enter__(self) -> Process:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._end()
        if isinstance(error, RunFailed):
            raise RunFailed(f"{error} (see {self._log})") from None

    def _end(self) -> None:
        self.tree.sample()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            print(f"{self._label} did not stop by itself", file=sys.stderr)
        self.tree.kill()
        shutil.rmtree(self._scratch, ignore_errors=True)


def _collect(process: Process, system: System, variant: Variant, seconds: float) -> list[Sample]:
    """Steady samples that span the wanted time."""
    samples: list[Sample] = []
    kept: list[Sample] = []
    deadline = time.monotonic() + START_S
    wanted = max(seconds, system.min_seconds)
    while not kept or kept[-1].t - kept[0].t < wanted:
        process.tree.sample()
        try:
            line = process.lines.get(timeout=0.25)
        except Empty:
            line = ""
        if line is None:
            raise RunFailed(f"the process ended with {process.wait()}")
        if line:
            sample = _sample(line)
            if not samples or sample.records > samples[-1].records:
                deadline = time.monotonic() + STALL_S
            samples.append(sample)
            kept = steady(samples, system.warmup_s, variant.warmup_records)
        if time.monotonic() > deadline:
            raise RunFailed(f"no progress for {STALL_S:.0f} s after {samples[-1].records if samples else 0} records")
    return kept


def measure(case: Case, variant: Variant, system: System, python: Path, seconds: float, logs: Path) -> Figures:
    """One run, from the start of the process to its end."""
    label = "-".join(filter(None, (case.name, variant.name, system.name)))
    with Process(label, python, system.name, case.name, variant.params, logs) as process:
        kept = _collect(process, system, variant, seconds)
        histogram = steady_histogram(kept)
        return Figures(
            records_per_s=steady_rate(kept),
            p50_ms=percentile_ms(histogram, 0.50),
            p99_ms=percentile_ms(histogram, 0.99),
            peak_rss_mb=process.tree.peak_rss / (1024 * 1024),
        )
