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
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import psutil

from benchmarks.cases import Case, System, Variant
from benchmarks.report import (
    Figures,
    Sample,
    percentile_ms,
    steady,
    steady_histogram,
    steady_rate,
)

__all__ = ["RunFailed", "measure"]

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
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        self.peak_rss = max(self.peak_rss, total)

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


def _collect(
    process: subprocess.Popen[str], tree: ProcessTree, system: System, variant: Variant, seconds: float
) -> list[Sample]:
    """Steady samples that span the wanted time."""
    lines: SimpleQueue[str | None] = SimpleQueue()
    threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    samples: list[Sample] = []
    kept: list[Sample] = []
    deadline = time.monotonic() + START_S
    wanted = max(seconds, system.min_seconds)
    while not kept or kept[-1].t - kept[0].t < wanted:
        tree.sample()
        try:
            line = lines.get(timeout=0.25)
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
    """One run, from the start of the process to its end; nothing of it is left behind."""
    scratch = tempfile.mkdtemp(prefix="firesteel-bench-")
    label = "-".join(filter(None, (case.name, variant.name, system.name)))
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{label}.log"
    command = [str(python), "-m", "benchmarks.runner", "--system", system.name, "--case", case.name]
    command += ["--scratch", scratch, "--params", json.dumps(dict(variant.params))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    tree = ProcessTree(process.pid)
    try:
        kept = _collect(process, tree, system, variant, seconds)
        histogram = steady_histogram(kept)
        return Figures(
            records_per_s=steady_rate(kept),
            p50_ms=percentile_ms(histogram, 0.50),
            p99_ms=percentile_ms(histogram, 0.99),
            peak_rss_mb=tree.peak_rss / (1024 * 1024),
        )
    except RunFailed as failure:
        raise RunFailed(f"{failure} (see {log})") from None
    finally:
        tree.sample()
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            print(f"{label} did not stop by itself", file=sys.stderr)
        tree.kill()
        shutil.rmtree(scratch, ignore_errors=True)
