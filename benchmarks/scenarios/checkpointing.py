"""Keyed sum with and without a checkpoint every second: throughput, pauses, bytes."""

from __future__ import annotations

import pickle
import time
from statistics import mean
from typing import Any

from benchmarks.cases import CORES
from benchmarks.runner import Run
from benchmarks.scenarios.controlled import KeyTraffic
from benchmarks.scenarios.job import Checkpoint, ScenarioJob, Scene, checkpoint_options, percentile

__all__ = ["run"]

_LARGE = 1 << 40
"""About what a hot key's sum is."""
_SETTLED = 3
"""Checkpoints that may be merging what was written while the state grew."""


def run(run: Run) -> dict[str, Any]:
    """Fills the state, then measures with traffic on the hot keys alone."""
    params = run.params
    scene = Scene(run, KeyTraffic(params["keys"], params["hot"]))
    backend, interval = params["backend"], params.get("interval")
    options = {"state.backend.type": backend}
    if interval is not None:
        options = checkpoint_options(scene.checkpoints, backend, interval)
    job = scene.start(scene.keyed_sum, options)
    try:
        job.emit(scene.traffic.fill(CORES))
        job.control.lift_limit()
        job.watch(params["warmup_s"])
        if interval is not None:
            _settle(job)
        if interval is None:
            return job.throughput(params["seconds"])
        since_ms = time.time_ns() // 1_000_000

        def taken() -> list[Checkpoint]:
            return [each for each in job.log.read() if each.triggered_ms >= since_ms]

        throughput = job.throughput(params["seconds"], enough=taken)
        figures = _checkpoint_figures(taken(), params["hot"])
        return {**throughput, **figures, "failed": len(job.log.failures())}
    finally:
        job.cancel()


def _settle(job: ScenarioJob) -> None:
    """Waits for checkpoints that began with the whole state there, so that the next ones contain changes alone."""
    begin_ms = time.time_ns() // 1_000_000
    job.wait(
        lambda: sum(each.triggered_ms >= begin_ms for each in job.log.read()) >= _SETTLED,
        "checkpoints of the full state",
    )


def _checkpoint_figures(taken: list[Checkpoint], hot: int) -> dict[str, Any]:
    """Pauses of all tasks; bytes in relation to those of the entries that changed, plainly pickled."""
    pauses = [pause for each in taken for pause in each.sync_ms]
    written = mean(each.bytes_written for each in taken)
    changed = len(pickle.dumps((list(range(hot)), [_LARGE + key for key in range(hot)]), 5))
    return {
        "checkpoints": len(taken),
        "duration_ms": percentile([each.duration_ms for each in taken], 0.5),
        "pause_p50_ms": percentile(pauses, 0.5),
        "pause_p99_ms": percentile(pauses, 0.99),
        "pause_max_ms": max(pauses),
        "written_kb": written / 1024,
        "written_over_changed": written / changed,
        "state_mb": taken[-1].state_bytes / 2**20,
    }
